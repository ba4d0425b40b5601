// Package dynamo keeps claims, commit records and counters in DynamoDB: Store implements merge.Store and merge.MarkStore,
// Reader reads counters back. It is the only package that knows DynamoDB; its errors leave as those of merge.Store's contract.
//
// # Rows
//
// Two tables, drawn here as a specification: rows outlive every version of this code. All keys are strings.
//
//	counters   pk  <counter>|<key>            a counter's name has no '|', a key may have any
//	           sk  <window>|<bucket>|<slot>   1h|2026-01-02T03:00:00Z|0   all|-|0
//	           n   N  the sum, a whole number
//	           ttl N  epoch seconds; absent: kept for ever
//
//	           sk  <window>|<bucket>|<serial>  a row of the position guard: that of one shard, <stream ARN>|<shard id>
//	           p   S  position of the last event in n: the digits of its sequence number behind their count in three
//	                  digits, so that the order of texts is that of numbers
//
//	dedup      pk  claim|<event>              a claim; bytes|<hex> where the identity is not UTF-8
//	           token   S  the attempt that took the event
//	           lease   N  epoch milliseconds, rounded up
//	           source  S  tally.Event.Serial; absent: none
//	           ttl     N  epoch seconds, rounded down
//
//	           pk  commit|<token>             a commit record
//	           state   S  "committed" or "aborted"
//	           except  SS pk of each claim that the attempt left out; absent: none
//	           ttl     N  epoch seconds, rounded up: later than that of every claim that names the token
//
// A bucket is the start of its interval in UTC, always 20 characters in the years 0 to 9999, so that the order of sort
// keys is the order of time and a range of buckets is one Query; the window "all" has the bucket "-". A counter is the
// sum of its rows, those of slots and those of shards; a slot is a decimal number, and a reader takes any text for either.
//
// # Time
//
// DynamoDB deletes a row some time after its ttl, hours or days later, and shows it until then
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html). So a counter counts as absent from the
// second that its ttl names. A claim is returned with its ttl for as long as it is there: package merge decides what
// one past it is worth. A commit record holds for as long as it is there.
package dynamo
