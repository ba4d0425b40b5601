package merge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// slow takes its time for each commit, and obeys its context.
type slow struct {
	*mergetest.Store
	took time.Duration
}

func (s slow) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	select {
	case <-time.After(s.took):
		return s.Store.Commit(ctx, a)
	case <-ctx.Done():
		return merge.Record{}, ctx.Err()
	}
}

func TestC8_HandlerEndsInTimeAndListsExactlyWhatIsNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := mergetest.New(t), new(heard)
		m := newMerger(t, slow{s, 300 * time.Millisecond}, recordTo(h), func(c *merge.Config) {
			c.Workers, c.ChunkEvents = 1, 1
		})
		const timeout = 1500 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		start := time.Now()
		events := numbered(10)
		got := m.MergeMany(ctx, events)
		if left := timeout - time.Since(start); left < 100*time.Millisecond {
			t.Errorf("%v are left for the answer", left)
		}
		done := 0
		for i, o := range got {
			wantReason(t, o)
			if applied := total(s, fmt.Sprint("own", i)) == 1; applied != o.Done() {
				t.Errorf("event %d: applied %t, outcome %v", i, applied, o)
			}
			if o.Done() {
				done++
			} else {
				wantIs(t, o.Err, merge.ErrNoTime)
			}
		}
		if done != 3 || s.Calls(mergetest.Commit) != 3 { // a fourth would not have fitted
			t.Errorf("%d applied, %d commits begun", done, s.Calls(mergetest.Commit))
		}
		mergetest.AuditReleased(t, s.Snapshot(), events)
		for _, o := range m.MergeMany(t.Context(), events) {
			if !o.Done() {
				t.Fatal(o)
			}
		}
		mergetest.Audit(t, s.Snapshot(), events)
	})
}

// TestDeadline_BeforeAndInsideEveryCall lets the deadline come before, inside or after the k-th call of a merge, for
// each k: that call and all later ones hang until their context ends, applied or not.
func TestDeadline_BeforeAndInsideEveryCall(t *testing.T) {
	for _, keys := range [][]string{{"a"}, {"a", "b", "c"}} {
		for _, applied := range []bool{false, true} {
			for k, more := 1, true; more; k++ {
				synctest.Test(t, func(t *testing.T) { more = hangAt(t, k, applied, keys) })
				if t.Failed() {
					t.Fatalf("%d keys, applied %t, call %d", len(keys), applied, k)
				}
			}
		}
	}
}

func hangAt(t *testing.T, k int, applied bool, keys []string) (reached bool) {
	s, h := mergetest.New(t), new(heard)
	s.DoneContexts = true
	events := make([]tally.Event, 200)
	for i := range events {
		events[i] = event(fmt.Sprint("e", i), keys...)
	}
	dead := hold(t, s, "e7", "e8")
	s.Clock.Advance(time.Hour)
	_ = dead
	var mu sync.Mutex
	n := 0
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		n++
		if n >= k { // this call and all later ones take until the end of their time
			reached = true
			return mergetest.Fault{Hang: true, Applied: applied && c.Method != mergetest.FindRecord}
		}
		return mergetest.Fault{}
	}
	const timeout = 3 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	start := time.Now()
	m := newMerger(t, s, recordTo(h), func(c *merge.Config) { c.CallTimeout = time.Hour })
	got := m.MergeMany(ctx, events)
	if left := timeout - time.Since(start); left < timeout/20 {
		t.Errorf("%v are left for the answer", left)
	}
	for i, o := range got {
		wantReason(t, o)
		if o.Done() && !s.Snapshot().Counted(events[i].ID) {
			t.Fatalf("event %d is done and not counted", i)
		}
	}
	mergetest.AuditSoFar(t, s.Snapshot(), events)
	s.Fault = nil
	s.Clock.Advance(time.Hour)
	for i, o := range m.MergeMany(t.Context(), events) {
		if !o.Done() {
			t.Fatalf("redelivery of %d: %v", i, o)
		}
	}
	mergetest.Audit(t, s.Snapshot(), events)
	return reached
}

func TestA8_ShortDeadlineLeavesTimeToRelease(t *testing.T) {
	for name, applied := range map[string]bool{"never applied": false, "applied, then hanging": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mergetest.New(t)
				s.DoneContexts = true
				s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.Commit: {{Hang: true, Applied: applied}}})
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				m := newMerger(t, s)
				got := m.MergeMany(ctx, onOneKey(1))
				if ctx.Err() != nil {
					t.Error("returned after the deadline")
				}
				want := map[bool]merge.Status{false: merge.Failed, true: merge.Counted}[applied]
				wantAll(t, got, want)
				if released := len(s.Snapshot().Claims) == 0; released == applied {
					t.Errorf("released %t, applied %t", released, applied)
				}
				m.MergeMany(t.Context(), onOneKey(1))
				mergetest.Audit(t, s.Snapshot(), onOneKey(1))
			})
		})
	}
}

// deaf ignores its context in one method.
type deaf struct {
	*mergetest.Store
	free chan struct{}
}

func (s deaf) Commit(_ context.Context, a merge.Attempt) (merge.Record, error) {
	<-s.free
	return s.Store.Commit(context.Background(), a)
}

func TestB1_16_StoreThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict, h := mergetest.New(silentTB{}), new(heard) // it takes calls left behind for misuse
		s := deaf{strict, make(chan struct{})}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		m := newMerger(t, s, recordTo(h))
		wantAll(t, m.MergeMany(ctx, onOneKey(3)), merge.Failed)
		if ctx.Err() != nil {
			t.Error("returned after the deadline")
		}
		h.want(t, map[string]int{merge.MetricFailed: 3, merge.MetricRelease: 3, merge.MetricRetry: 1})
		close(s.free) // the commits arrive at last, and find their attempt aborted
		synctest.Wait()
		if total(strict, "a") != 0 {
			t.Fatalf("a=%d", total(strict, "a"))
		}
		wantAll(t, m.MergeMany(t.Context(), onOneKey(3)), merge.Counted)
		mergetest.Audit(t, strict.Snapshot(), onOneKey(3))
	})
}

func TestB1_12_ReleaseEndsBeforeTheDeadlineWhateverItsBudget(t *testing.T) {
	for _, timeout := range []time.Duration{
		time.Millisecond, 100 * time.Millisecond, 2 * time.Second, 20 * time.Second, time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := failing{mergetest.New(t), func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			start, h := time.Now(), new(heard)
			newMerger(t, s, recordTo(h), func(c *merge.Config) { c.CallTimeout = time.Hour }).MergeMany(ctx, onOneKey(500))
			margin := min(merge.MaxMargin, timeout/10)
			if left := timeout - time.Since(start); left < margin {
				t.Errorf("deadline in %v: %v are left, want at least %v", timeout, left, margin)
			}
			if h.counts[merge.MetricReleaseFailed] != 500 {
				t.Errorf("deadline in %v: recorded %v", timeout, h.counts)
			}
		})
	}
}

func TestB5_ThrottledBurstOfManyGoroutinesEndsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mergetest.New(t)
		var mu sync.Mutex
		calls := 0
		s.Fault = func(mergetest.Call) mergetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls <= 300 {
				return mergetest.Fault{Err: mergetest.ErrThrottle}
			}
			return mergetest.Fault{}
		}
		events := numbered(500, "hot")
		m := newMerger(t, s, realSleep)
		merged := make([]int, 50)
		for round := range 2 {
			var all sync.WaitGroup
			for worker := range 50 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					merged[worker] = 0
					for _, o := range m.MergeMany(ctx, events[worker*10:worker*10+10]) {
						if o.Done() {
							merged[worker]++
						}
					}
				})
			}
			all.Wait()
			t.Logf("round %d: %v", round, merged)
		}
		for _, n := range merged {
			if n != 10 {
				t.Errorf("%d of 10 events are done after one redelivery", n)
			}
		}
		mergetest.Audit(t, s.Snapshot(), events)
	})
}
