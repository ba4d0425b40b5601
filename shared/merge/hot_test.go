package merge_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// table makes the rows of a commit busy while it is under way, as DynamoDB's transactions do: another that needs one of
// them is cancelled.
type table struct {
	merge.Store
	took      time.Duration // how long a commit is under way
	mu        sync.Mutex
	busy      map[mergetest.Row]bool
	conflicts int
}

func newTable(s *mergetest.Store, took time.Duration) *table {
	return &table{Store: s, took: took, busy: map[mergetest.Row]bool{}}
}

func (s *table) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	if conflict := s.enter(a); conflict != nil {
		return merge.Record{}, conflict
	}
	defer s.leave(a)
	time.Sleep(s.took)
	return s.Store.Commit(ctx, a)
}

func (s *table) enter(a merge.Attempt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var met []int
	for i, add := range a.Adds {
		if s.busy[mergetest.Row{Cell: add.Cell, Slot: add.Slot}] {
			met = append(met, i)
		}
	}
	if len(met) > 0 {
		s.conflicts++
		return &merge.ConflictError{Adds: met}
	}
	for _, add := range a.Adds {
		s.busy[mergetest.Row{Cell: add.Cell, Slot: add.Slot}] = true
	}
	return nil
}

func (s *table) leave(a merge.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, add := range a.Adds {
		delete(s.busy, mergetest.Row{Cell: add.Cell, Slot: add.Slot})
	}
}

func realSleep(c *merge.Config) { c.Sleep = nil }

func TestHot_SixteenBatchesAtOnceOnOneCounterAllCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := mergetest.New(t)
		s := newTable(strict, 20*time.Millisecond)
		var events []tally.Event
		var all sync.WaitGroup
		for sandbox := range 16 {
			mine := make([]tally.Event, 50)
			for i := range mine {
				mine[i] = event(fmt.Sprintf("s%d-e%d", sandbox, i), "hot")
			}
			events = append(events, mine...)
			m := newMerger(t, s, realSleep)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				for at := range 5 {
					wantAll(t, m.MergeMany(ctx, mine[at*10:at*10+10]), merge.Counted)
				}
			})
		}
		all.Wait()
		mergetest.Audit(t, strict.Snapshot(), events)
		t.Logf("%d conflicts in 80 commits", s.conflicts)
	})
}

func TestHot_ChunksOfOneBatchNeverMeet(t *testing.T) {
	for _, slots := range []int{1, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			strict := mergetest.New(t)
			s := newTable(strict, 20*time.Millisecond)
			events := numbered(1200, "all", "total") // in chunks that all move two counters
			m := newMerger(t, s, realSleep, func(c *merge.Config) { c.Slots = slots })
			wantAll(t, m.MergeMany(t.Context(), events[:150]), merge.Counted) // two chunks
			wantAll(t, m.MergeMany(t.Context(), events[150:]), merge.Counted)
			if s.conflicts > 0 {
				t.Errorf("%d slots: %d conflicts", slots, s.conflicts)
			}
			mergetest.Audit(t, strict.Snapshot(), events)
		})
	}
}

// forgetful leaves its first commit behind, and looks at that one's adds when the second has met a conflict.
type forgetful struct {
	merge.Store
	first chan struct{}
	adds  atomic.Pointer[[]merge.SlottedAdd] // of the first commit
}

func (s *forgetful) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	switch {
	case s.adds.CompareAndSwap(nil, &a.Adds):
		<-s.first
		return merge.Record{}, ctx.Err()
	case a.Adds[0].Slot == 0:
		return merge.Record{}, &merge.ConflictError{Adds: []int{0}}
	default:
		return s.Store.Commit(ctx, a)
	}
}

func TestHot_MovingAnAddLeavesACallUnderWayAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{Store: mergetest.New(t), first: make(chan struct{})}
		wantAll(t, newMerger(t, s).MergeMany(t.Context(), onOneKey(2)), merge.Counted)
		if slot := (*s.adds.Load())[0].Slot; slot != 0 {
			t.Errorf("the first commit was to move slot 0, and now moves slot %d", slot)
		}
		close(s.first)
	})
}

func TestHot_ColdCountersKeepOneRow(t *testing.T) {
	s := mergetest.New(t)
	m := newMerger(t, s)
	for _, e := range numbered(500) {
		m.MergeMany(t.Context(), []tally.Event{e})
	}
	m.MergeMany(t.Context(), numbered(700)[500:])
	for row := range s.Snapshot().Rows {
		if row.Slot != 0 {
			t.Fatalf("%v has left its first row without need", row)
		}
	}
}

func TestSlots_MemoryIsBounded(t *testing.T) {
	s := merge.NewSlots(8)
	for i := range 3 * merge.MaxRemembered {
		s.Move(cell(fmt.Sprint(i)), 0, 0, func(int64) int64 { return 0 })
		if n := s.Remembered(); n > merge.MaxRemembered {
			t.Fatalf("%d cells are remembered", n)
		}
	}
}

func TestSlots_MoveLeavesTheContendedSlotAndIsRemembered(t *testing.T) {
	for _, width := range []int{1, 2, 8, merge.MaxSlots} {
		for offset := range min(width, 20) {
			s := merge.NewSlots(width)
			c := cell("a")
			if s.Of(c, offset) != offset {
				t.Fatalf("a cell that never moved begins at slot %d of %d", s.Of(c, offset), width)
			}
			for from := range width {
				for _, drawn := range []int64{0, int64(width) - 2} {
					to := s.Move(c, from, offset, func(n int64) int64 { return max(0, min(drawn, n-1)) })
					if to < 0 || to >= width || width > 1 && to == from || s.Of(c, offset) != to {
						t.Fatalf("width %d, offset %d: %d moves to %d, remembered as %d", width, offset, from, to, s.Of(c, offset))
					}
				}
			}
		}
	}
}
