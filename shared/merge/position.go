package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"abacus/shared/tally"
)

// Move is what one batch of an ordered source adds to one cell: a row of the cell that is this source's alone keeps the
// total and a mark, the position of the last event in it.
type Move struct {
	Cell    tally.Cell
	Serial  string // tally.Event.Serial; the row is the cell's and the source's
	Delta   tally.Sum
	Expires int64  // as tally.Add.Expires
	Below   string // apply only if the row has no mark or a lower one
	At      string // apply only if the row's mark is this; instead of Below if it is not empty
	Last    string // the row's mark afterwards; not below Below, and above At
}

// MarkStore keeps the rows of the position guard. Its errors are those of Store; a *RefusedError names add 0.
type MarkStore interface {
	// Advance adds m.Delta to the row and sets its mark to m.Last, in one step, if the row's mark allows it. It returns
	// the mark that stands afterwards, and whether this call moved it. A call whose reply was lost is seen by the next
	// one, which finds the mark m.Last.
	Advance(ctx context.Context, m Move) (mark string, moved bool, err error)
}

// Positional counts the events of ordered sources once for each position, without claims: one conditional write for
// each cell and batch. See DESIGN.md for what it does not cover.
type Positional struct {
	m     *Merger
	store MarkStore
}

// ByPosition returns a Positional that retries, waits and records as m does.
func (m *Merger) ByPosition(store MarkStore) *Positional { return &Positional{m, store} }

// ErrNoPosition reports an event that is not from an ordered source.
var ErrNoPosition = errors.New("the event has no position in an ordered source; count this source with the claim guard")

// MergeMany counts events of ordered sources, each of which runs one batch at a time, and answers each in order. Unlike
// Merger.MergeMany it counts an event's cells one by one: where some fail the event is Failed, and its next delivery
// moves what is missing and nothing else. It refuses no event for what a row holds, since a record that is given up
// half counted could not be counted again by another guard: such an event fails until the row is mended.
func (p *Positional) MergeMany(ctx context.Context, events []tally.Event) []Outcome {
	outcomes := make([]Outcome, len(events))
	counted := make([]bool, len(events))
	tracks := p.tracks(events, outcomes)
	err := p.advanceAll(ctx, tracks)
	for _, t := range tracks {
		for _, s := range t.steps {
			if failure := cmp.Or(t.err, err); failure != nil && outcomes[s.event].Status != Refused {
				outcomes[s.event] = Outcome{Status: Failed, Err: failure}
			}
			counted[s.event] = counted[s.event] || s.moved
		}
	}
	for i := range outcomes {
		if outcomes[i].Status == Duplicate && (counted[i] || len(events[i].Adds) == 0) {
			outcomes[i].Status = Counted
		}
	}
	p.report(events, outcomes)
	return outcomes
}

// errForeignMark reports a row that this guard did not write. To take its mark for a position would pass over events.
var errForeignMark = errors.New("a counter's row of this shard has a mark that is no position; nothing moves it until " +
	"that row is mended: give its attribute p the position of the last record in n, or delete the row if n is 0")

// track is what a batch moves of one cell, in the order of the source.
type track struct {
	serial string
	cell   tally.Cell
	steps  []step
	err    error
}

// step is one event's part of a track.
type step struct {
	event    int
	position string
	delta    int64
	expires  int64
	moved    bool // by this call
}

// tracks sorts out which cells move. An event is a Duplicate until something is found to be missing of it.
func (p *Positional) tracks(events []tally.Event, outcomes []Outcome) []*track {
	type row struct {
		serial string
		cell   tally.Cell
	}
	byRow := map[row]*track{}
	var all []*track
	for i, event := range events {
		outcomes[i].Status = Duplicate
		if len(event.Adds) > 0 && (event.Serial == "" || event.Position == "") {
			outcomes[i] = Outcome{Status: Refused, Err: ErrNoPosition}
			continue
		}
		for _, add := range event.Adds {
			key := row{event.Serial, add.Cell}
			t := byRow[key]
			if t == nil {
				t = &track{serial: event.Serial, cell: add.Cell}
				byRow[key] = t
				all = append(all, t)
			}
			t.steps = append(t.steps, step{event: i, position: event.Position, delta: add.Delta, expires: add.Expires})
		}
	}
	for _, t := range all {
		slices.SortStableFunc(t.steps, func(a, b step) int { return cmp.Compare(a.position, b.position) })
	}
	return all
}

func (p *Positional) advanceAll(ctx context.Context, tracks []*track) error {
	if len(tracks) == 0 {
		return nil
	}
	times, ok := p.m.divide(ctx, 0)
	if !ok {
		return errors.Join(ErrNoTime, ctx.Err())
	}
	// There is nothing to give back, so the time for that is used for work.
	work, cancel := context.WithDeadline(ctx, times.release)
	defer cancel()
	wide(len(tracks), p.m.cfg.Workers, func(_, i int) {
		t := tracks[i]
		t.err = errUnfinished // stays if the call panics
		t.err = p.advance(work, t, times.grace)
	})
	return nil
}

// markRounds bounds how often a track looks at a mark that others move.
const markRounds = 4

// advance moves the cell by the steps that its mark shows to be missing.
//
// Crash window: after Advance is applied the batch may be delivered again, whole or in part and cut elsewhere. Then the
// mark stands at or above some of its steps, and those are left out. A call of a dead invocation that lands late finds
// the mark moved or not: in either case it is applied whole or not at all, and what follows reads what it left.
func (p *Positional) advance(ctx context.Context, t *track, grace time.Duration) error {
	missing, at := t.steps, ""
	for range markRounds {
		mark, moved, err := p.ask(ctx, t.move(missing, at), grace)
		if err != nil {
			return err
		}
		last := missing[len(missing)-1].position
		if !tally.ValidPosition(mark) {
			return errForeignMark
		}
		if moved {
			for i := range missing {
				missing[i].moved = true
			}
		}
		if mark >= last {
			return nil
		}
		from, _ := slices.BinarySearchFunc(missing, mark, func(s step, mark string) int {
			if s.position <= mark {
				return -1
			}
			return 1
		})
		missing, at = missing[from:], mark
	}
	return fmt.Errorf("the mark of a row moved %d times, as another invocation counts the same shard: %w", markRounds,
		ErrInFlight)
}

func (p *Positional) ask(ctx context.Context, move Move, grace time.Duration) (mark string, moved bool, err error) {
	type answer struct {
		mark  string
		moved bool
	}
	start := time.Now()
	t := tries{m: p.m, call: "advancing a row"}
	a, err := retry(ctx, &t, func() (answer, error) {
		return bounded(ctx, p.m.cfg.CallTimeout, grace, func(ctx context.Context) (answer, error) {
			mark, moved, err := p.store.Advance(ctx, move)
			if err == nil && mark == "" {
				err = errors.New("the store answered without a mark where one must stand")
			}
			return answer{mark, moved}, err
		})
	})
	if err == nil && a.moved {
		p.m.observe(TimeStoreMerge, time.Since(start))
	}
	return a.mark, a.moved, err
}

// move sums steps. A total of 0 is written too: the mark must move with it.
func (t *track) move(steps []step, at string) Move {
	m := Move{Cell: t.cell, Serial: t.serial, Below: steps[0].position, At: at, Last: steps[len(steps)-1].position}
	for i, s := range steps {
		m.Delta = m.Delta.Plus(tally.SumOf(s.delta))
		if i == 0 || s.expires == 0 {
			m.Expires = s.expires
		} else if m.Expires != 0 {
			m.Expires = max(m.Expires, s.expires)
		}
	}
	return m
}

func (p *Positional) report(events []tally.Event, outcomes []Outcome) {
	var n [Refused + 1]int
	var cause [Refused + 1]error
	for i, o := range outcomes {
		if len(events[i].Adds) == 0 && o.Status == Counted {
			continue
		}
		n[o.Status]++
		cause[o.Status] = cmp.Or(cause[o.Status], o.Err)
	}
	for status, name := range [...]string{MetricFailed, MetricMerged, MetricDuplicate, MetricInFlight, MetricDeadLetter} {
		p.m.record(name, n[status], cause[status])
	}
}
