package mergetest

import (
	"fmt"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// Delivery says how a source hands events out. The zero value is an SQS queue with batches of ten.
type Delivery struct {
	Batch  int  // events in a batch at most; 0 means 10
	Shard  bool // a Kinesis shard; otherwise a standard SQS queue
	Bisect bool // a shard's batch is halved after an invocation that died
	Rounds int  // deliveries after which the test fails; 0 means ten times what a healthy run needs, and 20
	// Pause, if set, runs between two deliveries: it moves the clock past the visibility timeout.
	Pause func()
}

// Deliver hands events to handle by the rules of Lambda's event sources with ReportBatchItemFailures until each is done
// or refused, and returns those refused. handle answers each event of a batch in order, or returns nil for an
// invocation that crashed or timed out: then the whole batch comes again.
//
// A queue brings back each message that failed, behind the others. A shard brings back everything from the lowest
// failure on, those that were done among it, and hands out nothing further until then.
func Deliver(t TB, events []tally.Event, d Delivery, handle func(batch []tally.Event) []merge.Outcome) []tally.Event {
	t.Helper()
	size := d.Batch
	if size == 0 {
		size = 10
	}
	rounds := d.Rounds
	if rounds == 0 {
		rounds = 10*(len(events)/size+1) + 20
	}
	var refused []tally.Event
	pending, limit := events, size
	for range rounds {
		if len(pending) == 0 {
			return refused
		}
		batch := pending[:min(limit, len(pending))]
		outcomes := handle(batch)
		if outcomes != nil && len(outcomes) != len(batch) {
			t.Fatalf("delivery: %d outcomes for %d events", len(outcomes), len(batch))
		}
		back, parked := d.failed(batch, outcomes)
		refused = append(refused, parked...)
		limit = size
		if d.Shard {
			if d.Bisect && outcomes == nil {
				limit = max(1, len(batch)/2)
			}
			pending = pending[len(batch)-len(back):]
		} else {
			pending = append(pending[len(batch):len(pending):len(pending)], back...)
		}
		if d.Pause != nil {
			d.Pause()
		}
	}
	if len(pending) > 0 {
		t.Fatalf("delivery: %d of %d events are not done after %d deliveries", len(pending), len(events), rounds)
	}
	return refused
}

// failed returns the events of batch that come again, and those that the function has parked.
func (d Delivery) failed(batch []tally.Event, outcomes []merge.Outcome) (back, parked []tally.Event) {
	if outcomes == nil {
		return batch, nil
	}
	for i, outcome := range outcomes {
		switch {
		case outcome.Done():
		case outcome.Status == merge.Refused:
			parked = append(parked, batch[i])
		case d.Shard:
			return batch[i:], parked
		default:
			back = append(back, batch[i])
		}
	}
	return back, parked
}

// Process is the code under test as one invocation of one process: it merges batch into store, telling the time by
// now, and answers each event in order.
type Process func(store merge.Store, now func() time.Time, batch []tally.Event) []merge.Outcome

// CrashMatrix delivers events once for each number of writes after which the first process can stop, and for each fate
// of the write that it stops in: never sent, landing at the next call, landing when all is over. A new process takes
// every later batch. Each time, every event must end up counted exactly once.
func CrashMatrix(t *testing.T, events []tally.Event, d Delivery, process Process) {
	t.Helper()
	const atTheEnd = 1 << 30
	fates := []struct {
		name string
		late int
	}{{"unsent", 0}, {"late", 1}, {"last", atTheEnd}}
	for _, fate := range fates {
		t.Run(fate.name, func(t *testing.T) {
			t.Parallel()
			stopped := true
			for k := 0; stopped; k++ {
				if t.Failed() {
					t.Fatalf("stopped after %d writes", k-1)
				}
				stopped = crashOnce(t, events, d, process, k, fate.late)
			}
		})
	}
}

// crashOnce reports whether the first process stopped at all.
func crashOnce(t TB, events []tally.Event, d Delivery, process Process, k, late int) bool {
	t.Helper()
	s := New(t)
	first := s.NewWorker("first")
	first.StopAfter(k, late)
	pause := d.Pause
	d.Pause = func() {
		s.Clock.Advance(20 * time.Minute) // past the longest lease: an invocation lasts 15 minutes at most
		if pause != nil {
			pause()
		}
	}
	processes := 1
	refused := Deliver(t, events, d, func(batch []tally.Event) []merge.Outcome {
		worker := first
		if first.Stopped() {
			processes++
			worker = s.NewWorker(fmt.Sprintf("process %d", processes))
		}
		outcomes := process(worker, s.Now, batch)
		AuditSoFar(t, s.Snapshot(), events)
		if worker.Stopped() {
			return nil
		}
		return outcomes
	})
	if len(refused) > 0 {
		t.Errorf("%d events were refused", len(refused))
	}
	s.Land()
	Audit(t, s.Snapshot(), events)
	return first.Stopped()
}
