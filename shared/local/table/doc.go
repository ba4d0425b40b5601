// Package table stands in for DynamoDB in tests and on one machine: an http.Handler that answers the real SDK over the
// real wire protocol, from memory, for the operations that Abacus uses. It is strict. What DynamoDB refuses it refuses,
// and what it does not know itself (an operation, a member of a request, a function in an expression) is an error,
// never ignored; DESIGN.md says how far that goes and what is left out.
//
// Every Service has tables of its own. A test breaks it on purpose: whole calls with Fault and Inject of the
// embedded wire.Service, parts of batches with Config.Part, and real conflicts of transactions with Config.Hold.
//
// # Cases
//
// The files of testdata/cases hold sequences of calls and DynamoDB's answers. They run here against a Service, and by
// shared/local/oracle/run against other implementations; testdata/lacks.yaml names what those do not do, and why. In a
// file
//
//	cases:
//	- name: ADD makes an absent item
//	  source: an address at AWS, where implementations disagree
//	  tables: {T: "pk S, sk S"}            this is what a case has unless it says otherwise
//	  steps:
//	  - UpdateItem: {Key: {pk: {S: a}, sk: {S: b}}, UpdateExpression: "REMOVE x"}
//	    want: {Attributes: null}
//
// a step is an operation with its input as on the wire, where TableName may be left out and $T stands for the table's
// name. want holds members of the answer, or of the error that error and message demand. There is a shorthand for steps
// on the one item with the key a, b: put, do (an update), if (a condition) and now, in whose values a text stands for
// an S, a whole number for an N, and so on.
package table
