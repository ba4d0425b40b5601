package merge_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// gains is a Cache that adds up what it is told.
type gains struct {
	mu    sync.Mutex
	calls int
	sums  map[tally.Cell]tally.Sum
	fail  func(ctx context.Context) error
}

func (g *gains) Gain(ctx context.Context, adds []merge.SlottedAdd) error {
	g.mu.Lock()
	g.calls++
	if g.sums == nil {
		g.sums = map[tally.Cell]tally.Sum{}
	}
	for _, add := range adds {
		g.sums[add.Cell] = g.sums[add.Cell].Plus(add.Delta)
	}
	g.mu.Unlock()
	if g.fail != nil {
		return g.fail(ctx)
	}
	return nil
}

func (g *gains) called() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

func cacheIn(g *gains) func(*merge.Config) { return func(c *merge.Config) { c.Cache = g } }

func TestP23_CacheHearsTotalsOnceTheyAreDurable(t *testing.T) {
	for name, faults := range map[string][]mergetest.Fault{
		"healthy": nil, "lost reply": {after}, "found committed when it is to be aborted": times(3, after),
	} {
		s, g, h := mergetest.New(t), new(gains), new(heard)
		s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.Commit: faults})
		g.fail = func(context.Context) error {
			if total(s, "a") != 2 {
				t.Errorf("%s: the cache is told of what is not durable", name)
			}
			return nil
		}
		events := []tally.Event{event("x", "a"), event("y", "a")}
		outcomes := newMerger(t, s, cacheIn(g), recordTo(h)).MergeMany(t.Context(), events)
		wantAll(t, outcomes, merge.Counted)
		if n, _ := g.sums[cell("a")].Int64(); n != 2 || g.calls != 1 || h.timed[merge.TimeCacheMerge] != 1 {
			t.Errorf("%s: cache has %d after %d calls, %d of them timed", name, n, g.calls, h.timed[merge.TimeCacheMerge])
		}
	}
}

func TestP23_CacheFailureFailsNoMergeAndIsNotRetried(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errors.New("cache down") },
		"panic": func(context.Context) error { panic("cache") },
		"hang":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, g, h := mergetest.New(t), &gains{fail: fail}, new(heard)
				start := time.Now()
				outcomes := newMerger(t, s, cacheIn(g), recordTo(h)).MergeMany(t.Context(), []tally.Event{event("x", "a")})
				wantAll(t, outcomes, merge.Counted)
				if g.called() != 1 || time.Since(start) > merge.DefaultCacheWait {
					t.Errorf("%d calls, %v", g.called(), time.Since(start))
				}
				h.want(t, map[string]int{merge.MetricMerged: 1, merge.MetricCacheFailed: 1})
				if h.timed[merge.TimeCacheMerge] != 1 {
					t.Error("the cache's time is not recorded (P14)")
				}
			})
		})
	}
}

func TestP23_StoreFailureLeavesTheCacheAlone(t *testing.T) {
	s, g, h := mergetest.New(t), new(gains), new(heard)
	s.Fault = always(mergetest.Commit, before)
	wantAll(t, newMerger(t, s, cacheIn(g), recordTo(h)).MergeMany(t.Context(), numbered(3)), merge.Failed)
	if g.calls != 0 || h.timed[merge.TimeStoreMerge] != 0 {
		t.Errorf("%d calls of the cache, %d commits timed (P14)", g.calls, h.timed[merge.TimeStoreMerge])
	}
}

func TestP23_CacheHearsOfEveryCommit(t *testing.T) {
	s, g := mergetest.New(t), new(gains)
	m := newMerger(t, s, cacheIn(g), func(c *merge.Config) { c.Workers = 2 })
	for _, e := range onOneKey(20) {
		m.MergeOne(t.Context(), e)
	}
	if n, _ := g.sums[cell("a")].Int64(); n != 20 {
		t.Errorf("the cache has %d of 20", n)
	}
}

func TestP23_CacheThatIgnoresItsContextGathersNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		s, g := mergetest.New(t), &gains{fail: func(context.Context) error { <-free; return nil }}
		m := newMerger(t, s, cacheIn(g), func(c *merge.Config) { c.Workers = 2 })
		for _, e := range numbered(20) {
			wantAll(t, []merge.Outcome{m.MergeOne(t.Context(), e)}, merge.Counted)
		}
		if n := g.called(); n != 2 {
			t.Errorf("%d calls are under way; no more than there are workers may be", n)
		}
		close(free)
	})
}
