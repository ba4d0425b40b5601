// Package queue stands in for Amazon SQS on one machine, over its real wire protocol: standard and FIFO queues,
// visibility, long polls, receive counts, redrive to a dead-letter queue and back. An operation or a request member
// that it does not know is an error.
//
// A message is received once for each time it becomes visible, in the order of arrival: the stand-in never delivers
// twice on its own. Duplicates come from what a consumer does, or from an injected fault.
//
// Not emulated: permissions, encryption (its settings are kept and returned), tags, ReceiveRequestAttemptId, the minute
// during which AWS refuses to make a deleted queue again, the pace of a message move task (it is done when the call
// returns).
package queue
