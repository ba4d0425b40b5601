package ingest

import (
	"fmt"

	"abacus/shared/envelope"
	"abacus/shared/tally"
)

const (
	// maxPending is how many events wait in memory for one merge, and maxPendingAdds how many moves of counters: more than
	// most batches have, so that only records of many documents are merged in more than one go. A move takes about half a
	// kilobyte on its way through a merge.
	maxPending     = 16_384
	maxPendingAdds = 32_768
	// maxRecordAdds is how many moves one record may make. It is counted whole, so all of them are in memory at once; what
	// makes more would end the smallest function for want of memory, at every delivery.
	maxRecordAdds = 131_072
	// maxDigits is the most that Kinesis gives a sequence number
	// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_Record.html); envelope's positions count on it.
	maxDigits = 129
)

// pending is a record whose events wait for a merge.
type pending struct{ record, from, to int }

// documents counts what became of documents before any merge, and what records held that was none.
type documents struct{ read, skipped, expired, passed int }

// weigh notes what the events of a document move, and refuses those of a record that moves too much.
func (in *invocation) weigh(events []tally.Event) error {
	for i := range events {
		in.weight += len(events[i].Adds)
	}
	if in.weight > maxRecordAdds {
		return fmt.Errorf("%w: its documents move counters more than %d times in all; send them in several records",
			envelope.ErrPayload, maxRecordAdds)
	}
	return nil
}

// full reports whether what waits should be merged before more is read.
func (in *invocation) full() bool { return len(in.events) >= in.mergeAt || in.load >= maxPendingAdds }

// inOrder holds a batch to what counting by position rests on. Kinesis keeps it always; a batch that does not keep it
// would lose records behind the mark of another.
func inOrder(batch *envelope.Batch) error {
	var last envelope.SequenceNumber
	for i := range batch.Records {
		number := envelope.SequenceNumber(batch.Records[i].ID)
		if len(number) > maxDigits || i > 0 && last.Compare(number) >= 0 {
			return fmt.Errorf("%w: record %d is not behind the one before it in its shard, or its sequence number has over "+
				"%d digits; the position guard counts a shard in order", envelope.ErrEvent, i, maxDigits)
		}
		last = number
	}
	return nil
}
