package merge_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// matrixEvents is what the matrix counts: 200 events of 1 or 3 keys each, a few counters hot and most cold.
func matrixEvents(keys int, serial string) []tally.Event {
	events := make([]tally.Event, 200)
	for i := range events {
		names := []string{fmt.Sprint("page", i%60), "all", fmt.Sprint("own", i)}
		events[i] = event(fmt.Sprint("e", i), names[:keys]...)
		events[i].Serial = serial
	}
	return events
}

// TestCrashMatrix stops the process at every write: 0 events are lost and 0 counted twice, by the rules of each source.
func TestCrashMatrix(t *testing.T) {
	queue := mergetest.Delivery{Batch: 200}
	shard := mergetest.Delivery{Batch: 200, Shard: true, Bisect: true}
	for name, m := range map[string]struct {
		keys int
		from mergetest.Delivery
	}{"1 key from a queue": {1, queue}, "3 keys from a queue": {3, queue}, "3 keys from a shard": {3, shard}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serial := ""
			if m.from.Shard {
				serial = "shard"
			}
			mergetest.CrashMatrix(t, matrixEvents(m.keys, serial), m.from, invocation)
		})
	}
}

// invocation is one process, with small chunks so that there is more to stop between.
func invocation(store merge.Store, now func() time.Time, batch []tally.Event) []merge.Outcome {
	m, err := merge.New(merge.Config{
		Store: store, Now: now, ChunkEvents: 80,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		panic(err)
	}
	return m.MergeMany(context.Background(), batch)
}

// deliver merges events under one fault until all are done, by the rules of a queue, and audits after every batch.
func deliver(t *testing.T, s *mergetest.Store, events []tally.Event, between func()) {
	t.Helper()
	pause := func() {
		s.Clock.Advance(20 * time.Minute)
		if between != nil {
			between()
		}
	}
	queue := mergetest.Delivery{Batch: 100, Pause: pause}
	refused := mergetest.Deliver(t, events, queue, func(batch []tally.Event) []merge.Outcome {
		outcomes := invocation(s, s.Now, batch)
		mergetest.AuditSoFar(t, s.Snapshot(), events)
		return outcomes
	})
	if len(refused) > 0 {
		t.Errorf("%d events were refused", len(refused))
	}
	s.Land()
	mergetest.Audit(t, s.Snapshot(), events)
}

func TestMatrix_OneKeyFailsForAWholeDelivery(t *testing.T) {
	for _, keys := range []int{1, 3} {
		s := mergetest.New(t)
		broken := true
		s.Fault = func(c mergetest.Call) mergetest.Fault {
			if broken && c.Method == mergetest.Commit {
				return mergetest.ConflictOn(c, func(add merge.SlottedAdd) bool { return add.Cell.Key == "page7" })
			}
			return mergetest.Fault{}
		}
		rounds := 0
		deliver(t, s, matrixEvents(keys, ""), func() { rounds++; broken = rounds < 2 })
	}
}

func TestMatrix_ThreeWritesInARowFail(t *testing.T) {
	for _, keys := range []int{1, 3} {
		for name, fault := range map[string]mergetest.Fault{
			"before": before, "after": after, "late": {Err: mergetest.ErrInjected, Late: 4},
		} {
			var reached atomic.Bool
			reached.Store(true)
			for k := 1; reached.Swap(false); k++ {
				s := mergetest.New(t)
				s.Fault = func(c mergetest.Call) mergetest.Fault {
					if c.N == k {
						reached.Store(true)
					}
					if c.N >= k && c.N < k+3 && c.Method != mergetest.FindRecord {
						return fault
					}
					return mergetest.Fault{}
				}
				deliver(t, s, matrixEvents(keys, ""), nil)
				if t.Failed() {
					t.Fatalf("%d keys, %s, from call %d", keys, name, k)
				}
			}
		}
	}
}

func TestMatrix_EveryReplyIsLostOnce(t *testing.T) {
	for _, keys := range []int{1, 3} {
		s := mergetest.New(t)
		lost := map[string]bool{}
		s.Fault = func(c mergetest.Call) mergetest.Fault {
			if c.Method == mergetest.FindRecord {
				return before
			}
			f := after
			key := fmt.Sprint(c.Method, c.Token, c.Events)
			if lost[key] {
				return mergetest.Fault{}
			}
			lost[key] = true
			return f
		}
		m := newMerger(t, s, func(c *merge.Config) { c.Workers, c.Attempts = 1, 4 })
		events := matrixEvents(keys, "")
		wantAll(t, m.MergeMany(t.Context(), events), merge.Counted)
		mergetest.Audit(t, s.Snapshot(), events)
	}
}

// fates are the ways in which one call can go, for the exhaustive test.
var fates = []struct {
	fault mergetest.Fault
	crash bool
}{
	{}, {fault: before}, {fault: after}, {fault: late}, {fault: mergetest.Fault{Hang: true}},
	{fault: mergetest.Fault{Panic: "boom", Applied: true}}, {crash: true},
}

// TestE1_EveryCombinationOfFates gives each of the first calls of overlapping deliveries each fate in turn: an event of
// three keys, then that event with another, then both until they are done. ABACUS_DEPTH says of how many calls.
func TestE1_EveryCombinationOfFates(t *testing.T) {
	depth := 4
	if text := os.Getenv("ABACUS_DEPTH"); text != "" {
		var err error
		if depth, err = strconv.Atoi(text); err != nil {
			t.Fatalf("ABACUS_DEPTH: %v", err)
		}
	}
	runs := 0
	for plan := []int{}; plan != nil; runs++ {
		used := 0
		synctest.Test(t, func(t *testing.T) { used = runFates(t, plan) })
		if t.Failed() {
			t.Fatalf("run %d", runs)
		}
		plan = nextPlan(plan, min(used, depth))
	}
	t.Logf("%d combinations", runs)
}

// nextPlan counts up: the next sequence of fates for so many calls, in an order that visits each once.
func nextPlan(plan []int, calls int) []int {
	next := slices.Clone(plan)
	for len(next) < calls {
		next = append(next, 0)
	}
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] < len(fates) {
			return next[:i+1]
		}
	}
	return nil
}

// runFates returns how many calls there were to give a fate to.
func runFates(t *testing.T, plan []int) int {
	s := mergetest.New(t)
	s.DoneContexts = true
	x, y := event("x", "a", "b", "c"), event("y", "a")
	made, crashed := 0, false
	var worker *mergetest.Worker
	var mu sync.Mutex
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		made++
		if made > len(plan) {
			return mergetest.Fault{}
		}
		fate := fates[plan[made-1]]
		if fate.crash {
			crashed = true
			worker.StopAfter(0, 0)
		}
		if fate.fault.Late > 0 && c.Method == mergetest.FindRecord {
			return before
		}
		return fate.fault
	}
	done := map[string]bool{}
	merged := func(batch ...tally.Event) {
		worker = s.NewWorker(fmt.Sprint("w", made))
		crashed = false
		m := newMerger(t, worker, func(c *merge.Config) { c.Now, c.Workers, c.Attempts = s.Now, 1, 2 })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		outcomes := m.MergeMany(ctx, batch)
		mergetest.AuditSoFar(t, s.Snapshot(), []tally.Event{x, y})
		for i, o := range outcomes {
			if crashed || worker.Stopped() || !o.Done() {
				continue
			}
			done[batch[i].ID] = true
			if !s.Snapshot().Counted(batch[i].ID) {
				t.Errorf("%s is called done and is not counted", batch[i].ID)
			}
		}
	}
	merged(x)
	merged(y, x)
	for range len(plan) + 3 { // a crash in each of them, and three without
		s.Clock.Advance(time.Minute)
		merged(x, y)
	}
	if !done["x"] || !done["y"] {
		t.Errorf("fates %v: done %v", plan, done)
	}
	s.Land()
	mergetest.Audit(t, s.Snapshot(), []tally.Event{x, y})
	return made
}
