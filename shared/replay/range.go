package replay

import (
	"errors"
	"fmt"

	"abacus/shared/envelope"
)

// Range is a piece of a Kinesis shard, both ends within it, in which Size records failed. Others may stand between
// them.
type Range struct {
	Stream, Shard string // ARN and shard id
	First, Last   envelope.SequenceNumber
	Size          int
}

func (r Range) String() string {
	return fmt.Sprintf("records %s to %s of %s in %s", r.First, r.Last, r.Shard, r.Stream)
}

func (r Range) check() error {
	if !plain(r.Stream, r.Shard) || !r.First.Valid() || !r.Last.Valid() || r.Size < 1 || r.First.Compare(r.Last) > 0 {
		return errors.New("it lacks a stream, a shard, a batch size, or two sequence numbers in their order")
	}
	return nil
}

// Round is what a replay said of a record that it could not count.
type Round struct {
	Round  int    `json:"round"`
	At     string `json:"at"` // RFC 3339
	Reason string `json:"reason"`
	Rules  string `json:"rules,omitempty"`
}
