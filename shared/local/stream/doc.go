// Package stream stands in for Amazon Kinesis Data Streams on one machine, over its real wire protocol: streams and
// shards with AWS's hash ranges and 56-digit sequence numbers, reusable iterators that expire, splits and merges,
// retention, and the throttling limits if asked. An operation or a request member that it does not know is an error.
//
// Not emulated: enhanced fan-out, on-demand mode, encryption, tags, UpdateShardCount, the seconds a stream spends in
// CREATING or UPDATING (changes are done when the call returns).
package stream
