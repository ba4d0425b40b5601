// Package ingest is the whole flow on one page: an invocation's JSON becomes records, records become events, events are
// merged, and the answer names exactly the records that must come again.
//
// Nothing is acknowledged before it is durable. Each document of a record ends in exactly one of: counted, duplicate,
// skipped by the rules, parked with its payload, or failed and delivered again.
package ingest

import (
	"context"
	"fmt"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

// Invoke handles one invocation of a function: raw is the event, the answer is what Lambda reads. It returns an error
// and no answer, so that the whole batch comes again, where raw is not an event of the handler's source or anything
// failed outside a single record. It never panics, and keeps nothing of raw.
//
// It implements the Handler of package lambda, which hands over the event's bytes without parsing them first.
func (h *Handler) Invoke(ctx context.Context, raw []byte) (answer []byte, err error) {
	var start time.Time
	defer func() { h.finish(ctx, start, err) }()
	defer contain(&err)
	start = h.now()
	batch, err := envelope.Decode(h.kind, raw)
	if err == nil && h.position {
		err = inOrder(&batch)
	}
	if err != nil {
		return nil, err
	}
	in := h.invocation(&batch, start)
	in.count(ctx)
	in.park(ctx)
	in.report(ctx)
	return envelope.Respond(&batch, in.failed())
}

// invocation is one batch on its way through.
type invocation struct {
	*Handler
	batch  *envelope.Batch
	start  time.Time
	serial string
	fates  []fate // of each record
	docs   documents

	events  []tally.Event   // not yet merged
	pending []pending       // whose they are
	load    int             // what they move
	busy    map[string]bool // FIFO groups with a message among pending
	held    map[string]bool // FIFO groups with a message that must come again

	record *envelope.Record // the one being read
	weight int              // what its events move so far
}

// count turns records into events and merges them. What a record says is counted whole or not at all: one bad
// document makes a bad record of it before any of its events is merged. On a FIFO queue a message waits for the merge
// of the one before it in its group. There, and under the position guard, what stands behind a record that must come
// again must too.
func (in *invocation) count(ctx context.Context) {
	ctx, cancel := in.leaveTimeToPark(ctx)
	defer cancel()
	fifo, read := in.batch.FIFO(), in.read
	ordered := fifo || in.position
	for i := range in.batch.Records {
		in.record = &in.batch.Records[i]
		if fifo && in.busy[in.record.Group] || in.full() {
			in.merge(ctx)
		}
		if ordered && in.held[in.record.Group] {
			in.fates[i] = fate{failed, errHeld}
			continue
		}
		from := len(in.events)
		in.weight = 0
		switch err := in.open(read); {
		case err != nil:
			in.events = in.events[:from]
			in.settle(i, in.parkInOrder(ctx, i, fateOf(err)))
		case len(in.events) == from:
			in.settle(i, fate{verdict: done})
		default:
			in.pending, in.load = append(in.pending, pending{i, from, len(in.events)}), in.load+in.weight
			in.busy[in.record.Group] = fifo
		}
	}
	in.merge(ctx)
}

// open hands each document of the record to read. A panic on the way is that record's failure alone.
func (in *invocation) open(read func(envelope.Document) error) (err error) {
	defer contain(&err)
	skipped, err := in.opener.Documents(in.record.Payload, read)
	if err == nil {
		in.docs.passed += skipped
	}
	return err
}

// read appends the events of one document.
func (in *invocation) read(doc envelope.Document) error {
	arrived := in.record.Arrived
	if !doc.Arrived.IsZero() {
		arrived = doc.Arrived
	}
	events, expired, err := in.rules.Events(in.events, rules.Document{
		Source: doc.Identity(in.batch.Source, in.record.Identity),
		Serial: in.serial, Arrived: arrived, JSON: doc.JSON,
	}, in.start)
	if err == nil {
		err = in.weigh(events[len(in.events):])
	}
	if err != nil {
		return fmt.Errorf("document %d: %w", doc.Index, err)
	}
	if in.position {
		in.place(events[len(in.events):])
	}
	in.docs.add(len(events)-len(in.events), expired)
	in.events = events
	return nil
}

// merge counts the pending events and settles the fate of their records.
func (in *invocation) merge(ctx context.Context) {
	outcomes := make([]merge.Outcome, len(in.events))
	if err := in.ask(ctx, outcomes); err != nil {
		for i := range outcomes {
			outcomes[i] = merge.Outcome{Status: merge.Failed, Err: err}
		}
	}
	for _, p := range in.pending {
		in.settle(p.record, worstOf(outcomes[p.from:p.to]))
	}
	// The events are not reused: a call of the store that was given up may still read them.
	in.events, in.pending, in.load = nil, in.pending[:0], 0
	clear(in.busy)
}

// settle says what becomes of a record.
func (in *invocation) settle(record int, f fate) {
	in.fates[record] = f
	if f.verdict == failed || f.verdict == bad {
		in.held[in.batch.Records[record].Group] = true
	}
}
