package merge_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// failing is a store that never commits, and hands each release to f.
type failing struct {
	*mergetest.Store
	f func(ctx context.Context, event string) error
}

func (s failing) Commit(context.Context, merge.Attempt) (merge.Record, error) {
	return merge.Record{}, mergetest.ErrDenied
}

func (s failing) Release(ctx context.Context, event string, token merge.Token) error {
	if err := s.f(ctx, event); err != nil {
		return err
	}
	return s.Store.Release(ctx, event, token)
}

func onOneKey(n int) []tally.Event {
	events := make([]tally.Event, n)
	for i := range events {
		events[i] = event(fmt.Sprint("e", i), "a")
	}
	return events
}

func TestP18_P21_P22_OneBudgetSixteenWorkersEveryClaimAccountedFor(t *testing.T) {
	for _, n := range []int{1, 2, 16, 17, 1000, 20000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var under, most atomic.Int64
				s := failing{mergetest.New(t), func(ctx context.Context, _ string) error {
					most.Store(max(most.Load(), under.Add(1)))
					defer under.Add(-1)
					<-ctx.Done()
					return ctx.Err()
				}}
				h := new(heard)
				m := newMerger(t, s, recordTo(h), func(c *merge.Config) { c.CallTimeout = time.Hour })
				start := time.Now()
				wantAll(t, m.MergeMany(t.Context(), onOneKey(n)), merge.Failed)
				if took := time.Since(start); took != merge.ReleaseBudget(n) {
					t.Errorf("took %v, one budget is %v", took, merge.ReleaseBudget(n))
				}
				if got, want := most.Load(), int64(min(n, 16)); got != want {
					t.Errorf("%d releases at once, want %d", got, want)
				}
				h.want(t, map[string]int{merge.MetricFailed: n, merge.MetricReleaseFailed: n})
				wantIs(t, h.causes[merge.MetricReleaseFailed], context.DeadlineExceeded)
			})
		})
	}
}

func TestP22_EachClaimIsReleasedOrReportedNotBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		var calls atomic.Int64
		s := failing{mergetest.New(t), func(ctx context.Context, event string) error {
			if event == "e3" {
				return mergetest.ErrDenied
			}
			select {
			case <-time.After(time.Duration(calls.Add(1)%7) * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		s.DoneContexts = true // a release may be due at the very end of its budget
		h := new(heard)
		newMerger(t, s, recordTo(h)).MergeMany(t.Context(), onOneKey(n))
		ok, failed := h.counts[merge.MetricRelease], h.counts[merge.MetricReleaseFailed]
		if ok+failed != n || ok == 0 || failed == 0 {
			t.Errorf("%d released, %d failed, of %d", ok, failed, n)
		}
		if left := len(s.Snapshot().Claims); left != failed {
			t.Errorf("%d claims are left, %d are reported", left, failed)
		}
	})
}

func TestP19_P27_OneReleaseForAllChunksAndOnlyForThoseThatFailed(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	events := numbered(300)
	events = append(events, events[:50]...) // repeats have no claims of their own
	bad := map[merge.Token]bool{}
	var mu sync.Mutex
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if c.Method == mergetest.Commit && (bad[c.Token] || len(bad) < 2) {
			bad[c.Token] = true
			return before
		}
		return mergetest.Fault{}
	}
	got := newMerger(t, s, recordTo(h)).MergeMany(t.Context(), events)
	failed := map[string]bool{}
	for i, o := range got {
		if o.Status == merge.Failed {
			failed[events[i].ID] = true
		}
	}
	if len(failed) < 100 || len(failed) > 198 {
		t.Fatalf("%d identities failed; two of four chunks should", len(failed))
	}
	if s.Calls(mergetest.Release) != len(failed) || h.counts[merge.MetricRelease] != len(failed) {
		t.Errorf("%d releases, %d recorded, for %d failed identities", s.Calls(mergetest.Release),
			h.counts[merge.MetricRelease], len(failed))
	}
	for _, e := range events {
		if held := s.Snapshot().Claims[e.ID].Token != ""; held == failed[e.ID] {
			t.Errorf("%s: failed %t, claim stands %t", e.ID, failed[e.ID], held)
		}
	}
}

func TestP20_NothingToReleaseMakesNoCall(t *testing.T) {
	s := mergetest.New(t)
	hold(t, s, "e")
	s.Fault = always(mergetest.FindRecord, before)
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Failed)
	wantCalls(t, s, map[mergetest.Method]int{mergetest.PutClaims: 2, mergetest.FindRecord: 3})
}

func TestP21_OneClaimStartsNoWorker(t *testing.T) {
	caller := goroutine()
	for n, same := range map[int]bool{1: true, 2: false} {
		merge.Wide(n, 16, func(int, int) {
			if here := goroutine() == caller; here != same {
				t.Errorf("%d calls: in the caller's goroutine %t", n, here)
			}
		})
	}
	merge.Wide(0, 16, func(int, int) { t.Error("called for nothing") })
}

func goroutine() string {
	stack := make([]byte, 64)
	var id string
	_, _ = fmt.Sscanf(string(stack[:runtime.Stack(stack, false)]), "goroutine %s ", &id)
	return id
}

type key struct{}

func TestP16_A8_CancelledWorkStillReleasesOnALiveContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := mergetest.New(t)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		strict.Fault = func(c mergetest.Call) mergetest.Fault {
			if c.Method == mergetest.Commit {
				cancel()
				return mergetest.Fault{Hang: true}
			}
			return mergetest.Fault{}
		}
		released := 0
		s := failingRelease{strict, func(ctx context.Context) {
			released++
			if ctx.Err() != nil || ctx.Value(key{}) != "kept" {
				t.Errorf("release on a context that is %v, with value %v", ctx.Err(), ctx.Value(key{}))
			}
		}}
		got := newMerger(t, s).MergeMany(ctx, onOneKey(1))
		wantAll(t, got, merge.Failed)
		wantIs(t, got[0].Err, context.Canceled)
		if released != 1 || len(strict.Snapshot().Claims) != 0 {
			t.Errorf("%d releases, claims %v", released, strict.Snapshot().Claims)
		}
	})
}

type failingRelease struct {
	*mergetest.Store
	look func(context.Context)
}

func (s failingRelease) Release(ctx context.Context, event string, token merge.Token) error {
	s.look(ctx)
	return s.Store.Release(ctx, event, token)
}

func TestRelease_AbortThatFindsTheCommitMeansCounted(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	ids := []string{"e1"}
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		switch c.Method {
		case mergetest.Commit:
			return after
		case mergetest.PutClaims:
			return mergetest.Fault{Err: mergetest.ErrInjected, Applied: true, Events: ids}
		default:
			return mergetest.Fault{}
		}
	}
	got := newMerger(t, s, recordTo(h)).MergeMany(t.Context(), onOneKey(3))
	wantAll(t, []merge.Outcome{got[0], got[2]}, merge.Counted)
	wantAll(t, got[1:2], merge.Failed)
	if _, stands := s.Snapshot().Claims["e1"]; stands || total(s, "a") != 2 {
		t.Errorf("a=%d; the excepted claim stands: %t", total(s, "a"), stands)
	}
	h.want(t, map[string]int{merge.MetricMerged: 2, merge.MetricFailed: 1, merge.MetricRelease: 1, merge.MetricRetry: 4})
}

func TestRelease_AttemptThatCannotBeDecidedKeepsItsClaims(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		switch c.Method {
		case mergetest.Commit:
			return late
		case mergetest.Abort:
			return before
		default:
			return mergetest.Fault{}
		}
	}
	m := newMerger(t, s, recordTo(h))
	wantAll(t, m.MergeMany(t.Context(), onOneKey(3)), merge.Failed)
	h.want(t, map[string]int{merge.MetricFailed: 3, merge.MetricReleaseFailed: 3, merge.MetricRetry: 4})
	if len(s.Snapshot().Claims) != 3 {
		t.Fatalf("claims %v; without them the late commit would be repeated", s.Snapshot().Claims)
	}
	s.Land()
	s.Fault = nil
	wantAll(t, m.MergeMany(t.Context(), onOneKey(3)), merge.Duplicate)
	mergetest.Audit(t, s.Snapshot(), onOneKey(3))
}

func TestB1_13_ReleaseSparesARowThatAnotherTookOver(t *testing.T) {
	s := mergetest.New(silentTB{})
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		if c.Method == mergetest.Release { // between our abort and our release another process takes the event
			claim := merge.Claim{Event: "e0", Token: "heir", Lease: s.Now().Add(time.Minute), Expires: s.Now().Add(time.Hour)}
			if _, err := s.NewWorker("other").TakeClaim(t.Context(), claim, c.Token); err != nil {
				t.Error(err)
			}
		}
		if c.Method == mergetest.Commit {
			return before
		}
		return mergetest.Fault{}
	}
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), onOneKey(1)), merge.Failed)
	if claim := s.Snapshot().Claims["e0"]; claim.Token != "heir" {
		t.Errorf("the heir's claim is now %v", claim)
	}
}
