// Package envelope turns the JSON of a Lambda invocation into records and the fate of those records into the answer
// that Lambda expects. It knows the shapes of Kinesis and SQS events, what a record's payload may be wrapped in, and
// the document in which a bad record is kept; nobody else needs to. It does no I/O and reads no clock.
package envelope

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is a source of records, spelt as its events spell eventSource.
type Kind string

// The sources whose events can be decoded.
const (
	Kinesis Kind = "aws:kinesis"
	SQS     Kind = "aws:sqs"
)

// ErrEvent reports an invocation that is not an event of the function's source, whole and well formed. No record of it
// can be trusted, so none may be acknowledged.
var ErrEvent = errors.New("not an event of this function's source")

// Batch is one invocation's records, all of one stream or queue, and for Kinesis of one shard.
type Batch struct {
	Kind    Kind
	Source  string // ARN of the stream or queue
	Shard   string // Kinesis shard id; empty for SQS
	Records []Record
	// State is the JSON of a tumbling window's state, which the answer must carry on; nil where there is no window
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html).
	State []byte
}

// Record is one Kinesis record or SQS message. Its strings and its payload hold on to memory that belongs to the Batch;
// the payload may share the bytes given to Decode, so it is valid as long as they are.
type Record struct {
	// ID is what an answer names the record by: a Kinesis sequence number or an SQS message id. Never empty.
	ID string
	// Identity is the record's own identity; see KinesisIdentity and SQSIdentity.
	Identity string
	// Payload is the record's data: base64 taken off for Kinesis, the message body for SQS.
	Payload []byte
	// Arrived is when the source took the record, to the millisecond; zero where the event does not say so in a form
	// that can be read.
	Arrived time.Time
	// Group is an SQS message's group id, on FIFO queues and where a producer set one; else empty.
	Group string
	// Receives counts the deliveries of an SQS message up to this one; 0 where the event does not say.
	Receives int
}

// FIFO reports whether the batch is of a queue that keeps the order within each message group.
func (b *Batch) FIFO() bool { return b.Kind == SQS && strings.HasSuffix(b.Source, ".fifo") }

// Serial names the batch's source if it delivers one batch at a time, as a Kinesis shard does, or is empty.
func (b *Batch) Serial() string {
	if b.Kind != Kinesis {
		return ""
	}
	return b.Source + separator + b.Shard
}

// Decode reads an invocation of a function that serves kind. It passes once over raw, in any order of members, skips
// members that it does not know and takes a name for a member's only if it is the same byte for byte.
//
// It returns an error that wraps ErrEvent, and no batch, for anything that is not wholly such an event: JSON that is
// malformed, a missing or null list of records, a record of another source or of another stream, queue or shard than
// the first, or without what its identity is made of. An empty list is an event of Kinesis, where the last call for a
// tumbling window may carry one, and of nobody else. An arrival time never makes an event wrong, and text is not
// checked to be UTF-8 but where it names something: a payload is for its reader to judge.
func Decode(kind Kind, raw []byte) (Batch, error) {
	d := decoder{scanner: scanner{src: raw}, batch: Batch{Kind: kind}}
	d.event()
	if d.err == nil {
		d.check()
	}
	if d.err != nil {
		return Batch{}, fmt.Errorf("decode event: %w: it %w", ErrEvent, d.err)
	}
	d.identify()
	return d.batch, nil
}
