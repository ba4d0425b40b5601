// Package shared holds no code: it is the map of the packages below it. An arrow reads "is imported by"; a test beside
// this file fails where one points the other way.
//
//	event JSON                                                            response JSON
//	     |                                                                      ^
//	     v                                                                      |
//	+--------- functions/kinesis, functions/sqs: wiring, nothing else -------------+
//	|                                                                              |
//	|          ingest: decode, count, merge, respond        park, env, telemetry   |
//	|                         ^              ^           ^                         |
//	|                      envelope     tally/rules    merge  <---  dynamo         |
//	|                         ^              ^           ^            ^            |
//	|                         +------------ tally -------+------------+            |
//	+------------------------------------------------------------------------------+
//
//	tally        what an event moves: cells, adds, windows, exact sums. Pure, standard library only
//	tally/rules  the rule file, and what it makes of a record
//	envelope     event JSON to records, and outcomes to the response that Lambda reads
//	merge        the core: claim, commit, release, so that an event counts once; declares what it needs of a Store
//	merge/mergetest  a strict Store that can break, the suite that every Store passes, and the auditor
//	dynamo       the Store over DynamoDB; alone imports its SDK
//	ingest       the whole flow on one page
//	replay       counts what ended in a dead-letter queue, under the identities that it always had
//	park         keeps bad records in a queue; alone sends to SQS
//	env          a function's settings, all their faults at once
//	telemetry    a function's log
//	wal          a log on disk for counts on their way; standard library and x/sys only
//	deploy       reads template.yaml, and holds it to the rules that exact counting needs
//	local        the suite on one machine: strict stand-ins for the AWS services, and Lambda's own rules. No function
//	             imports it
//	cmd/abacus   the command line
package shared
