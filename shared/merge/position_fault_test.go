package merge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// advanceFunc is a merge.MarkStore.
type advanceFunc func(ctx context.Context, m merge.Move) (string, bool, error)

func (f advanceFunc) Advance(ctx context.Context, m merge.Move) (string, bool, error) {
	return f(ctx, m)
}

// onlyOn breaks the calls for one key of laneOf and leaves the others to the strict store.
func onlyOn(key string, s *marks, broken advanceFunc) advanceFunc {
	return func(ctx context.Context, m merge.Move) (string, bool, error) {
		if m.Cell.Key == key {
			return broken(ctx, m)
		}
		return s.Advance(ctx, m)
	}
}

func TestC7_PositionGuard_PanicOfTheStoreFailsTheEventsOfThatRowAlone(t *testing.T) {
	s := &marks{rows: map[tally.Cell]markRow{}}
	events := laneOf([]int{0, 1, 0})
	for i := range events {
		events[i].Adds = events[i].Adds[:1] // its own key, without the total
	}
	p := positional(t, onlyOn("1", s, func(context.Context, merge.Move) (string, bool, error) { panic("store") }), 1)
	outcomes := p.MergeMany(t.Context(), events)
	var panicked *merge.PanicError
	if !outcomes[0].Done() || outcomes[1].Status != merge.Failed || !outcomes[2].Done() {
		t.Errorf("outcomes %+v", outcomes)
	}
	if !errors.As(outcomes[1].Err, &panicked) || len(panicked.Stack) == 0 {
		t.Errorf("error %v", outcomes[1].Err)
	}
	for i, o := range positional(t, s, 1).MergeMany(t.Context(), events[1:]) {
		if want := []merge.Status{merge.Counted, merge.Duplicate}[i]; o.Status != want {
			t.Errorf("event %d delivered again: %+v, want %v", i+1, o, want)
		}
	}
}

func TestPositionGuard_RefusedRowFailsItsEventsUntilItIsMended(t *testing.T) {
	s := &marks{rows: map[tally.Cell]markRow{}}
	refusals := 0
	p := positional(t, onlyOn("1", s, func(context.Context, merge.Move) (string, bool, error) {
		refusals++
		return "", false, &merge.RefusedError{Adds: []int{0}, Cause: errLost}
	}), 1)
	events := laneOf([]int{0, 1, 0})
	for range 2 {
		outcomes := p.MergeMany(t.Context(), events)
		var refused *merge.RefusedError
		if !outcomes[0].Done() || outcomes[1].Status != merge.Failed || !errors.As(outcomes[1].Err, &refused) {
			t.Errorf("outcomes %+v", outcomes)
		}
	}
	if refusals != 2 {
		t.Errorf("%d calls in two deliveries: a refusal was tried again", refusals)
	}
	positional(t, s, 1).MergeMany(t.Context(), events[1:])
	if got := s.rows[events[1].Adds[0].Cell].n.String(); got != "2" {
		t.Errorf("after the row was mended it is %s, want 2", got)
	}
	if got := s.rows[events[1].Adds[1].Cell].n.String(); got != "1" {
		t.Errorf("the total is %s, want 1", got)
	}
}

// A call that obeys no context is left behind, and the merge ends before the invocation does.
func TestPositionGuard_CallThatHangsEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &marks{rows: map[tally.Cell]markRow{}}
		free := make(chan struct{})
		defer close(free)
		m, err := merge.New(merge.Config{Store: mergetest.New(t)})
		if err != nil {
			t.Fatal(err)
		}
		p := m.ByPosition(onlyOn("1", s, func(context.Context, merge.Move) (string, bool, error) {
			<-free
			return "", false, errLost
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		events := laneOf([]int{0, 1, 0})
		outcomes := p.MergeMany(ctx, events)
		if ctx.Err() != nil {
			t.Error("the merge ended after the deadline")
		}
		if !outcomes[0].Done() || outcomes[1].Done() || outcomes[1].Err == nil || !outcomes[2].Done() {
			t.Errorf("outcomes %+v", outcomes)
		}
	})
}

func TestPositionGuard_WithoutTimeNothingMoves(t *testing.T) {
	s := &marks{rows: map[tally.Cell]markRow{}}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, o := range positional(t, s, 1).MergeMany(ctx, laneOf([]int{0, 1})) {
		if o.Done() || !errors.Is(o.Err, merge.ErrNoTime) {
			t.Errorf("%+v", o)
		}
	}
	if s.calls != 0 {
		t.Errorf("%d calls", s.calls)
	}
}

func TestPositionGuard_AnswerWithoutAMarkIsNoSuccess(t *testing.T) {
	p := positional(t, advanceFunc(func(context.Context, merge.Move) (string, bool, error) { return "", true, nil }), 1)
	for _, o := range p.MergeMany(t.Context(), laneOf([]int{0})) {
		if o.Done() {
			t.Errorf("%+v", o)
		}
	}
}

// Each shard has a row of its own in a cell, so a child's positions may be below its parent's.
func TestPositionGuard_ShardsDoNotHideEachOther(t *testing.T) {
	type key struct {
		serial string
		cell   tally.Cell
	}
	rows := map[key]markRow{}
	p := positional(t, advanceFunc(func(_ context.Context, m merge.Move) (string, bool, error) {
		k := key{m.Serial, m.Cell}
		row, there := rows[k]
		if there && row.mark >= m.Below {
			return row.mark, false, nil
		}
		rows[k] = markRow{row.n.Plus(m.Delta), m.Last}
		return m.Last, true, nil
	}), 1)
	parent, child := laneOf([]int{0, 0, 0}), laneOf([]int{0, 0})
	for i := range child {
		child[i].Serial = "child"
	}
	for _, o := range p.MergeMany(t.Context(), append(parent, child...)) {
		if o.Status != merge.Counted {
			t.Errorf("%+v", o)
		}
	}
	cell := parent[0].Adds[0].Cell
	if a, b := rows[key{"shard", cell}].n.String(), rows[key{"child", cell}].n.String(); a != "6" || b != "3" {
		t.Errorf("rows %s and %s, want 6 and 3", a, b)
	}
}
