// Package deploy reads template.yaml as CloudFormation and SAM would, so that a test can hold the deployment to the
// rules that exact counting needs, for every value its parameters allow, and so that a stand-in can make the same
// resources without AWS.
//
// It knows the intrinsic functions that the template uses and refuses any other. Of SAM it knows the Globals section;
// resources that SAM adds on its own account (the mapping of an event) are not made up here, but read from the function
// that asks for them.
package deploy
