package merge_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

func calls(s *mergetest.Store) map[mergetest.Method]int {
	made := map[mergetest.Method]int{}
	for _, m := range []mergetest.Method{mergetest.PutClaims, mergetest.TakeClaim, mergetest.FindRecord, mergetest.Abort,
		mergetest.Commit, mergetest.Release} {
		if n := s.Calls(m); n > 0 {
			made[m] = n
		}
	}
	return made
}

func wantCalls(t *testing.T, s *mergetest.Store, want map[mergetest.Method]int) {
	t.Helper()
	got := calls(s)
	for m, n := range want {
		if got[m] != n {
			t.Errorf("%d calls of %s, want %d", got[m], m, n)
		}
		delete(got, m)
	}
	if len(got) > 0 {
		t.Errorf("calls beyond those wanted: %v", got)
	}
}

func TestP1_EventWithoutAddsIsANoOp(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	events := []tally.Event{event("e"), event("e"), event("f")}
	wantAll(t, newMerger(t, s, recordTo(h)).MergeMany(t.Context(), events), merge.Counted)
	wantCalls(t, s, nil)
	h.want(t, nil)
	if got := newMerger(t, s).MergeMany(t.Context(), nil); len(got) != 0 {
		t.Errorf("no events, outcomes %v", got)
	}
	wantCalls(t, s, nil)
}

func TestP2_MergeOneIsMergeManyOfOne(t *testing.T) {
	for name, e := range map[string]tally.Event{
		"counted": event("e", "a", "b"), "refused": event("", "a"), "empty": event("e"),
	} {
		one, many := mergetest.New(t), mergetest.New(t)
		a := newMerger(t, one).MergeOne(t.Context(), e)
		b := newMerger(t, many).MergeMany(t.Context(), []tally.Event{e})
		if len(b) != 1 || a != b[0] || total(one, "a") != total(many, "a") {
			t.Errorf("%s: %v and %v", name, a, b)
		}
	}
}

func TestP3_OneClaimPerEventAndOneTransactionForAll(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	events := []tally.Event{event("e", "a", "b", "c")}
	wantAll(t, newMerger(t, s, recordTo(h)).MergeMany(t.Context(), events), merge.Counted)
	wantCalls(t, s, map[mergetest.Method]int{mergetest.PutClaims: 1, mergetest.Commit: 1})
	if len(s.Snapshot().Claims) != 1 || total(s, "a") != 1 || total(s, "b") != 1 || total(s, "c") != 1 {
		t.Errorf("%d claims; a=%d b=%d c=%d", len(s.Snapshot().Claims), total(s, "a"), total(s, "b"), total(s, "c"))
	}
	h.want(t, map[string]int{merge.MetricMerged: 1}) // P13: once an event, for its adds are one write
	if h.timed[merge.TimeStoreMerge] != 1 {
		t.Error("the commit's time is not recorded (P14)")
	}
}

func TestP4_EventWithoutIdentityIsRefusedWithoutAStoreCall(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	events := []tally.Event{event("", "a"), event("", "a")}
	wantAll(t, newMerger(t, s, recordTo(h)).MergeMany(t.Context(), events), merge.Refused)
	wantCalls(t, s, nil)
	h.want(t, map[string]int{merge.MetricDeadLetter: 2})
}

func TestP5_P9_DuplicateIsDoneAndMovesNothing(t *testing.T) {
	s, g, h := mergetest.New(t), new(gains), new(heard)
	m := newMerger(t, s, recordTo(h), cacheIn(g))
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Counted)
	wantCalls(t, s, map[mergetest.Method]int{mergetest.PutClaims: 1, mergetest.Commit: 1}) // P9: no release
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Duplicate)
	wantCalls(t, s, map[mergetest.Method]int{mergetest.PutClaims: 2, mergetest.Commit: 1, mergetest.FindRecord: 1})
	if total(s, "a") != 1 || g.calls != 1 {
		t.Errorf("a=%d, %d calls of the cache", total(s, "a"), g.calls)
	}
	h.want(t, map[string]int{merge.MetricMerged: 1, merge.MetricDuplicate: 1})
}

func TestMergeMany_RepeatsOfOneBatchFollowTheFirst(t *testing.T) {
	e, f := event("e", "a"), event("f", "b")
	for name, tt := range map[string]struct {
		fault func(mergetest.Call) mergetest.Fault
		want  []merge.Status
	}{
		"counted": {nil, []merge.Status{merge.Counted, merge.Duplicate, merge.Counted, merge.Duplicate}},
		"failed":  {always(mergetest.Commit, before), []merge.Status{0, 0, 0, 0}},
		"refused": {func(c mergetest.Call) mergetest.Fault {
			if c.Method != mergetest.Commit {
				return mergetest.Fault{}
			}
			return mergetest.RefuseOn(c, func(add merge.SlottedAdd) bool { return add.Cell == cell("a") })
		}, []merge.Status{merge.Refused, merge.Refused, merge.Counted, merge.Refused}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mergetest.New(t)
			s.Fault = tt.fault
			got := newMerger(t, s).MergeMany(t.Context(), []tally.Event{e, e, f, e})
			if !slices.Equal(statuses(got), tt.want) {
				t.Errorf("%v, want %v", statuses(got), tt.want)
			}
			if want := int64(0); name != "counted" && total(s, "a") != want {
				t.Errorf("a=%d, want %d", total(s, "a"), want)
			}
		})
	}
}

func TestMergeMany_RepeatInFlightIsInFlight(t *testing.T) {
	s := mergetest.New(t)
	hold(t, s, "e")
	got := newMerger(t, s).MergeMany(t.Context(), []tally.Event{event("e", "a"), event("e", "a")})
	wantAll(t, got, merge.InFlight)
}

func TestMergeMany_TotalsBeyondInt64DoNotWrap(t *testing.T) {
	s := mergetest.New(t)
	var events []tally.Event
	for _, e := range numbered(4) {
		e.Adds = []tally.Add{{Cell: cell("a"), Delta: math.MaxInt64}}
		events = append(events, e)
	}
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), events), merge.Counted)
	if got := s.Total(cell("a")).String(); got != "36893488147419103228" {
		t.Errorf("4 * MaxInt64 = %s", got)
	}
}

func TestMergeMany_TotalOfZeroIsCountedWithoutAnAdd(t *testing.T) {
	s := mergetest.New(t)
	adds := -1
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		if c.Method == mergetest.Commit {
			adds = len(c.Adds)
		}
		return mergetest.Fault{}
	}
	up, down := event("up", "a"), event("down", "a")
	down.Adds[0].Delta = -1
	m := newMerger(t, s)
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{up, down}), merge.Counted)
	if adds != 0 {
		t.Errorf("the commit has %d adds", adds)
	}
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{up, down}), merge.Duplicate)
	mergetest.Audit(t, s.Snapshot(), []tally.Event{up, down})
}

func TestP24_ExpiryOfABucketGoesWithItsTotal(t *testing.T) {
	s := mergetest.New(t)
	with := func(id string, expires int64) tally.Event {
		e := event(id, "a")
		e.Adds[0].Expires = expires
		return e
	}
	m := newMerger(t, s)
	m.MergeMany(t.Context(), []tally.Event{with("1", 2e9), with("2", 3e9), with("3", 1e9)})
	if got := s.Snapshot().Rows[mergetest.Row{Cell: cell("a")}]; got.Expires != 3e9 {
		t.Errorf("expires %d; the latest is right", got.Expires)
	}
	m.MergeMany(t.Context(), []tally.Event{with("4", 2e9), with("5", 0), with("6", 3e9)})
	if got := s.Snapshot().Rows[mergetest.Row{Cell: cell("a")}]; got.Expires != 0 {
		t.Errorf("expires %d; one add that never does is enough", got.Expires)
	}
}

func TestMergeMany_ConcurrentCallsOnOneMergerAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mergetest.New(t)
		events := numbered(120, "hot")
		m := newMerger(t, s, func(c *merge.Config) { c.ChunkEvents = 7 })
		var all sync.WaitGroup
		for worker := range 6 {
			all.Go(func() {
				mine := slices.Concat(events[worker*20:], events[:worker*20])
				for round := 0; len(mine) > 0 && round < 1000; round++ {
					outcomes := m.MergeMany(t.Context(), mine)
					left := mine[:0:0]
					for i, o := range outcomes {
						if !o.Done() {
							left = append(left, mine[i])
						}
					}
					mine = left
					time.Sleep(time.Second) // until the source delivers the rest again, to all six at once
				}
				if len(mine) > 0 {
					t.Errorf("%d events are not done", len(mine))
				}
			})
		}
		all.Wait()
		mergetest.Audit(t, s.Snapshot(), events)
	})
}

func TestMergeMany_ManyChunksOfOneBatchAreExact(t *testing.T) {
	s := mergetest.New(t)
	events := numbered(2500, "all", "total")
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), events), merge.Counted)
	mergetest.Audit(t, s.Snapshot(), events)
	if n := s.Calls(mergetest.Commit); n < 25 || n > 27 {
		t.Errorf("%d commits; 2500 events with a counter of their own need 26", n)
	}
}
