package ingest

import (
	"context"
	"errors"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
)

// Status says what became of a replayed record.
type Status uint8

// Every replayed record ends in exactly one of these. The zero value is the one that loses nothing.
const (
	Failed    Status = iota // not counted, or not known to be: it must be replayed again
	Counted                 // by this replay, at least one document of it
	Duplicate               // counted before
	Skipped                 // no rule counts anything of it
	Bad                     // it can never be counted as it stands
)

// Outcome is the answer for one replayed record.
type Outcome struct {
	Status Status
	Reason error // for Failed and Bad; names rules and limits, nothing of the record
}

// errByPosition reports a replay through a Handler that counts by position.
var errByPosition = errors.New("a source that is counted by position cannot be replayed: its mark does not tell a " +
	"record that was counted from one that was passed")

// Replay counts records that their source has given up, of either kind, under the identities that they have, and
// answers for each in order. It parks nothing. It never panics, and keeps nothing of b.
//
// It takes no event from a delivery that is still at work on it: such a record is Failed, for its source may yet count
// it. So the records go under no serial source, whose deliveries take over each other's claims at once.
func (h *Handler) Replay(ctx context.Context, b *envelope.Batch) []Outcome {
	outcomes := make([]Outcome, len(b.Records))
	err := h.replay(ctx, b, outcomes)
	if err != nil {
		for i := range outcomes {
			outcomes[i] = Outcome{Failed, err}
		}
	}
	return outcomes
}

func (h *Handler) replay(ctx context.Context, b *envelope.Batch, outcomes []Outcome) (err error) {
	if h.position {
		return errByPosition
	}
	start := h.now()
	defer func() { h.finish(ctx, start, err) }()
	defer contain(&err)
	own := *h
	own.kind, own.parker = b.Kind, nil
	in := own.invocation(b, start)
	in.serial = ""
	w := &witness{Sink: h.sink, in: in, counted: make([]bool, len(outcomes)), merged: make([]bool, len(outcomes))}
	own.sink = w
	in.count(ctx)
	in.report(ctx)
	for i, f := range in.fates {
		outcomes[i] = w.outcome(i, f)
	}
	return nil
}

// witness is a Sink that remembers which records were counted by it, and which were merged at all.
type witness struct {
	Sink
	in              *invocation
	counted, merged []bool
}

func (w *witness) MergeMany(ctx context.Context, events []tally.Event) []merge.Outcome {
	outcomes := w.Sink.MergeMany(ctx, events)
	if len(outcomes) != len(events) {
		return outcomes
	}
	for _, p := range w.in.pending {
		w.merged[p.record] = true
		for _, o := range outcomes[p.from:p.to] {
			w.counted[p.record] = w.counted[p.record] || o.Status == merge.Counted
		}
	}
	return outcomes
}

func (w *witness) outcome(record int, f fate) Outcome {
	switch {
	case f.verdict == bad:
		return Outcome{Bad, f.reason}
	case f.verdict != done:
		return Outcome{Failed, f.reason}
	case w.counted[record]:
		return Outcome{Status: Counted}
	case w.merged[record]:
		return Outcome{Status: Duplicate}
	}
	return Outcome{Status: Skipped}
}
