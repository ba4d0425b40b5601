package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"abacus/shared/tally"
)

// commit writes, in one transaction, the commit record and the totals of all events held. It returns nil if there is
// nothing to commit, and otherwise says why they are not known to be durable.
//
// Crash window: until the transaction is applied nothing of the attempt is durable but its claims, and whoever finds
// those aborts it. Afterwards all of it is, and they read in the record which events it counted.
func (a *attempt) commit(ctx context.Context) error {
	if err := a.assemble(); err != nil || a.count(held) == 0 {
		return err
	}
	t := tries{m: a.call.m, call: "commit"}
	maybe := false // a call's outcome is unknown, so it may still land
	for {
		start := time.Now()
		record, err := a.call.store.Commit(ctx, a.order)
		if err == nil {
			return a.decide(ctx, record, start)
		}
		maybe = maybe || !notApplied(err)
		var refusal *RefusedError
		var conflict *ConflictError
		switch {
		case errors.As(err, &refusal):
			// Nothing of this token can land, so it may still commit other totals. Not so after an unknown outcome.
			if !maybe && a.drop(refusal) {
				if failed := a.assemble(); failed != nil || a.count(held) == 0 {
					return errors.Join(failed, err)
				}
				continue
			}
		case errors.As(err, &conflict):
			a.call.m.record(MetricConflict, 1, nil)
			a.dodge(conflict)
		}
		if err := t.next(ctx, err); err != nil {
			return err
		}
	}
}

// decide notes the record that stands.
func (a *attempt) decide(ctx context.Context, record Record, start time.Time) error {
	a.record = record
	if record.State != Committed {
		return ErrTakenOver
	}
	a.call.m.observe(TimeStoreMerge, time.Since(start))
	a.call.cache(ctx, a.order.Adds)
	return nil
}

// assemble sums what the held events move. A total of 0 needs no write: it changes no count, and an absent row reads
// as 0. An attempt without adds still commits, for its record is what makes its events counted.
func (a *attempt) assemble() error {
	totals := make([]SlottedAdd, len(a.chunk.cells))
	moved := make([]bool, len(a.chunk.cells))
	var except []string
	for pos, h := range a.holds {
		switch h {
		case held:
			refs := a.call.plan.refsOf(a.chunk.events[pos])
			for j, add := range a.event(pos).Adds {
				k, _ := slices.BinarySearch(a.chunk.cells, refs[j])
				total := &totals[k]
				total.Delta = total.Delta.Plus(tally.SumOf(add.Delta))
				if !moved[k] || add.Expires == 0 {
					total.Expires = add.Expires
				} else if total.Expires != 0 {
					total.Expires = max(total.Expires, add.Expires)
				}
				moved[k] = true
			}
		case loose, unsure, elsewhere, refused:
			except = append(except, a.id(pos))
		case counted: // whoever finds our token on it, which nobody can, would be right to call it counted
		}
	}
	if len(except) > MaxExcept {
		return tooMany(len(except))
	}
	a.cells = a.cells[:0]
	adds := make([]SlottedAdd, 0, len(totals))
	for k, total := range totals {
		if total.Delta.IsZero() {
			continue
		}
		cell := a.chunk.cells[k]
		total.Cell = a.call.plan.cells[cell]
		total.Slot = a.call.m.slots.of(total.Cell, a.offset(cell))
		adds, a.cells = append(adds, total), append(a.cells, cell)
	}
	a.order = Attempt{Token: a.token, Adds: adds, Except: except, Expires: a.recordExpires()}
	return nil
}

func tooMany(n int) error {
	return fmt.Errorf("%d claims of the chunk are not settled, and a commit record names at most %d; their source will "+
		"deliver the events again", n, MaxExcept)
}

// offset keeps attempts of one call that move the same cell apart: no two workers have the same.
func (a *attempt) offset(cell int32) int {
	if a.call.plan.shared[cell] {
		return a.worker
	}
	return 0
}

func (a *attempt) count(h hold) int {
	n := 0
	for _, is := range a.holds {
		if is == h {
			n++
		}
	}
	return n
}

// drop excludes the events that move a refused cell. It reports false if that names none.
func (a *attempt) drop(refusal *RefusedError) bool {
	dropped := false
	for pos := range a.holds {
		touches := func(k int) bool {
			return k >= 0 && k < len(a.cells) && slices.Contains(a.call.plan.refsOf(a.chunk.events[pos]), a.cells[k])
		}
		if a.holds[pos] == held && slices.ContainsFunc(refusal.Adds, touches) {
			a.holds[pos], dropped = refused, true
			a.blame(pos, refusal)
		}
	}
	return dropped
}

// dodge moves contended adds to other slots. The earlier call may still be reading its own adds.
func (a *attempt) dodge(conflict *ConflictError) {
	adds := slices.Clone(a.order.Adds)
	for _, k := range conflict.Adds {
		if k >= 0 && k < len(adds) {
			adds[k].Slot = a.call.m.slots.move(adds[k].Cell, adds[k].Slot, a.offset(a.cells[k]), a.call.m.draw)
		}
	}
	a.order.Adds = adds
}
