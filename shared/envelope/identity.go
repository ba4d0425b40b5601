package envelope

import (
	"strconv"
	"strings"
)

// What stands between the parts of an identity. No part has either.
const separator, documentMark = "|", "#"

// KinesisIdentity is the identity of a record of a stream: "<stream ARN>|<shard id>|<sequence number>". A sequence
// number alone is not promised to be unique in its stream. The ARN of an enhanced fan-out consumer stands for its
// stream, so that a record keeps its identity whichever way it is read.
func KinesisIdentity(arn, shard string, number SequenceNumber) string {
	return streamARN(arn) + separator + shard + separator + string(number)
}

// SQSIdentity is the identity of a message of a queue: "<queue ARN>|<message id>". A message that is moved to a
// dead-letter queue keeps its id; one that is moved back by a redrive gets a new one, and so a new identity
// (Amazon SQS Developer Guide, "Configure a dead-letter queue redrive").
func SQSIdentity(arn, message string) string { return arn + separator + message }

// DocumentIdentity is the identity of the i-th document, from 0, in the record that has the given identity: the first
// has the record's own, a later one "<record>#<i>".
func DocumentIdentity(record string, i int) string {
	if i == 0 {
		return record
	}
	return record + documentMark + strconv.Itoa(i)
}

func streamARN(arn string) string {
	stream, _, _ := strings.Cut(arn, "/consumer/")
	return stream
}
