// Package local runs the whole suite on one machine: it makes the resources that template.yaml asks for on strict
// stand-ins for DynamoDB, Kinesis and SQS, starts the real function binaries under a broker of the Lambda Runtime API,
// and polls their event sources by Lambda's rules.
//
//	template.yaml -> plan -> tables, streams, queues      on one loopback listener, over the AWS wire protocols
//	                      -> functions/* (go build)       real processes, package sandbox
//	                      -> mappings                     pollers, package mapping
//
// The template is what is run: a property without effect here is listed by name, and one that is on no list is an
// error. No function imports this package.
package local
