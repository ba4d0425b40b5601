package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"abacus/shared/tally"
)

// Reasons for Failed and InFlight. All mean that the event was not lost: its source delivers it again.
var (
	ErrNoTime = errors.New("no time left to count the event and give its claim back; allow the function more time, or " +
		"give it smaller batches")
	ErrInFlight = errors.New("another delivery of the event is being counted; it is decided by the next delivery")
)

// MergeMany counts each event once, and answers each in order. Events may repeat an identity: the first counts, by its
// own adds, and the others follow it. An event without adds is Counted without a trace.
//
// It returns before ctx's deadline, with time to spare for an answer, and when ctx is done, it first gives claims back.
// It never panics, and keeps no reference to events unless the Store ignores its context.
func (m *Merger) MergeMany(ctx context.Context, events []tally.Event) []Outcome {
	outcomes := make([]Outcome, len(events))
	c := &call{m: m, outcomes: outcomes, known: map[Token]Record{}}
	c.fail(cmp.Or(c.merge(ctx, events), errUnfinished))
	c.report()
	return outcomes
}

// MergeOne is MergeMany of one event.
func (m *Merger) MergeOne(ctx context.Context, event tally.Event) Outcome {
	return m.MergeMany(ctx, []tally.Event{event})[0]
}

// call is one MergeMany under way.
type call struct {
	m        *Merger
	store    Store
	times    times
	plan     *plan
	outcomes []Outcome

	slowest atomic.Int64 // nanoseconds that the slowest chunk took so far

	mu       sync.Mutex
	known    map[Token]Record // what decided attempts of others are found to have done
	leftover []*attempt       // attempts that have claims to give back
}

// merge is the whole flow: plan, then for each chunk claim and commit, then release.
func (c *call) merge(ctx context.Context, events []tally.Event) (err error) {
	defer contain(&err)
	c.plan = newPlan(events, c.outcomes, limits{cells: MaxAdds, events: c.m.cfg.ChunkEvents})
	if len(c.plan.chunks) == 0 {
		return nil
	}
	var ok bool
	if c.times, ok = c.m.divide(ctx, len(events)); !ok {
		return errors.Join(ErrNoTime, ctx.Err())
	}
	c.store = guarded{c.m.cfg.Store, c.m.cfg.CallTimeout, c.times.grace}
	work, cancel := context.WithDeadline(ctx, c.times.work)
	defer cancel()
	width := c.m.cfg.Workers
	if c.plan.contended() { // workers keep to slots of their own, so no two of their attempts meet
		width = min(width, c.m.cfg.Slots)
	}
	wide(len(c.plan.chunks), width, func(worker, i int) { c.mergeChunk(work, c.plan.chunks[i], worker) })
	c.release(ctx)
	return nil
}

// mergeChunk makes one attempt at one chunk.
func (c *call) mergeChunk(ctx context.Context, ch chunk, worker int) {
	start := time.Now()
	if time.Until(c.times.work) < time.Duration(c.slowest.Load()) || ctx.Err() != nil {
		c.failChunk(ch, errors.Join(ErrNoTime, ctx.Err()))
		return
	}
	a := &attempt{call: c, chunk: ch, worker: worker}
	defer c.finish(a)
	defer contain(&a.err)
	if a.err = a.begin(); a.err != nil {
		return
	}
	a.claim(ctx)
	if err := a.commit(ctx); err != nil {
		a.err = fmt.Errorf("not counted: %w", err)
	}
	c.took(time.Since(start))
}

// took raises the slowest chunk's time.
func (c *call) took(d time.Duration) {
	for {
		slowest := c.slowest.Load()
		if int64(d) <= slowest || c.slowest.CompareAndSwap(slowest, int64(d)) {
			return
		}
	}
}

func (c *call) failChunk(ch chunk, err error) {
	for _, i := range ch.events {
		c.outcomes[i] = Outcome{Status: Failed, Err: err}
	}
}

// fail gives a reason to every event that failed without one.
func (c *call) fail(err error) {
	for i := range c.outcomes {
		if c.outcomes[i].Status == Failed && c.outcomes[i].Err == nil {
			c.outcomes[i].Err = err
		}
	}
}

// report lets repeats follow the first of their identity, and records what became of all.
func (c *call) report() {
	var n [Refused + 1]int
	var cause [Refused + 1]error
	for i := range c.outcomes {
		if c.plan != nil && c.plan.first[i] != none && c.plan.first[i] != int32(i) {
			c.outcomes[i] = c.outcomes[c.plan.first[i]]
			if c.outcomes[i].Status == Counted {
				c.outcomes[i].Status = Duplicate
			}
		}
		o := c.outcomes[i]
		if c.plan != nil && len(c.plan.events[i].Adds) == 0 && o.Status == Counted {
			continue
		}
		n[o.Status]++
		if cause[o.Status] == nil {
			cause[o.Status] = o.Err
		}
	}
	for status, name := range [...]string{MetricFailed, MetricMerged, MetricDuplicate, MetricInFlight, MetricDeadLetter} {
		c.m.record(name, n[status], cause[status])
	}
}

// wide calls f for 0 to n-1 on at most width goroutines, and tells each which of them it is. One call alone runs in the
// caller's goroutine. A panic in f ends that call and no other.
func wide(n, width int, f func(worker, i int)) {
	one := func(worker, i int) {
		var ignored error // f leaves behind what counts as a failure
		defer contain(&ignored)
		f(worker, i)
	}
	if n == 1 {
		one(0, 0)
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for worker := range min(n, width) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				one(worker, i)
			}
		})
	}
	workers.Wait()
}
