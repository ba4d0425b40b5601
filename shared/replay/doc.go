// Package replay counts what ended in a dead-letter queue, under the identities that it always had, so that a letter
// that is replayed twice, or while its source still delivers it, counts once.
//
//	message --Queues.Open--> Letter: records in hand, a range of a shard, or objects to fetch
//	             |                      |                |
//	             | ErrLetter: kept      |          Reader.Read: page by page, LostError where retention was faster
//	                                    v                v
//	                                 Counter.Replay: counted, duplicate, skipped | bad | failed
//	                                    |                                          |      |
//	                             all durable: Delete <--parked again, or for good--+      +--> Keep: it comes again
//
// A message is deleted only when all that it stands for is durable: counted, or parked in another queue. It is never
// parked in the queue that it came from, nor in one that feeds the replay: Lambda cuts such a loop after about 16
// rounds (https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html).
//
// What comes in five forms:
//
//	a parked record       the document of package envelope, which function kinesis and this package send
//	a notice              Lambda's on-failure message for a Kinesis mapping: where the records are, not what they say
//	a document            the same from S3, with the whole event in it, so that the stream need not be read again
//	an object             an S3 notification of such a document; it takes an Objects that can fetch it
//	an original message   what a queue's redrive policy moved, as its producer sent it
//
// Identities. Amazon SQS keeps a message's id when it moves it to a dead-letter queue, so an original message keeps its
// identity: source queue and message id. A redrive (StartMessageMoveTask) gives it a new id and so a new identity: what
// was counted of it under the old one can count again, unless its events carry an id of their own that the rule file
// names. Replay such letters from the dead-letter queue instead of redriving them.
//
// Not covered: SNS around a notice (subscribe the queue with raw delivery), notices of DynamoDB streams, remnants of a
// spool, and sources that are counted by position (a mark that has passed a record tells nothing of whether it was
// counted). All of these are kept in their queue and said to be so. A record missing from the middle of a range shows
// only if fewer records are found than the batch had. A lost notice does not name which of its records were in the
// failed batch, since Lambda does not say.
package replay
