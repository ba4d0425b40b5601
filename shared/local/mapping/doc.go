// Package mapping is the part of Lambda that reads a stream or a queue and invokes a function with what it finds: an
// event source mapping, with AWS's rules for batches, partial responses, retries, bisecting, ageing out, failure
// notices, visibility and deletion. It speaks to Kinesis and SQS through the SDK's clients, so any endpoint will do,
// and to the function through Invoke. DESIGN.md beside this file names the AWS page behind each rule.
package mapping
