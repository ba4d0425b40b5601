package mergetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

func undecided(s *suite) { s.wantState(s.token(), merge.Undecided) }

func abortOnce(s *suite) {
	token := s.token()
	for range 2 {
		if record := s.abort(token); record.State != merge.Aborted || len(record.Except) > 0 {
			s.Errorf("Abort answers %+v", record)
		}
	}
	s.wantState(token, merge.Aborted)
}

func abortAfterCommit(s *suite) {
	token := s.token()
	a := s.attempt(token, s.add("k", 3, 0))
	a.Except = []string{s.event(2), s.event(1)}
	s.commit(a)
	for _, record := range []merge.Record{s.abort(token), s.wantState(token, merge.Committed)} {
		if record.State != merge.Committed || !sameSet(record.Except, a.Except) {
			s.Errorf("after a commit the record is %+v", record)
		}
	}
	s.wantTotal(s.cell("k"), "3")
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func commitApplies(s *suite) {
	token := s.token()
	record := s.commit(s.attempt(token, s.add("up", 7, 0), s.add("down", -7, 0), s.add("none", 0, 0)))
	if record.State != merge.Committed || len(record.Except) > 0 {
		s.Errorf("Commit answers %+v", record)
	}
	s.wantState(token, merge.Committed)
	s.commit(s.attempt(s.token(), s.add("up", 1, 0), s.add("down", -1, 0)))
	s.wantTotal(s.cell("up"), "8")
	s.wantTotal(s.cell("down"), "-8")
	s.wantTotal(s.cell("none"), "0")
	s.wantTotal(s.cell("untouched"), "0")
}

func cellsDiffer(s *suite) {
	base := s.cell("k")
	cells := []tally.Cell{base}
	for _, key := range []string{"k|", "|k", "K", "k ", "ключ 鍵", "k|1h"} {
		cells = append(cells, s.cell(key))
	}
	for _, bucket := range []int64{base.Bucket + 3600, 0, -3600} {
		other := base
		other.Bucket = bucket
		cells = append(cells, other)
	}
	for _, window := range []string{"1d", "all"} {
		other := base
		other.Window, other.Bucket = window, 0
		cells = append(cells, other)
	}
	other := base
	other.Counter += "x"
	cells = append(cells, other)
	var adds []merge.SlottedAdd
	for i, cell := range cells {
		adds = append(adds, merge.SlottedAdd{Cell: cell, Delta: tally.SumOf(int64(i + 1))})
	}
	s.commit(s.attempt(s.token(), adds...))
	for i, cell := range cells {
		s.wantTotal(cell, fmt.Sprint(i+1))
	}
}

func slotsAreSummed(s *suite) {
	s.commit(s.attempt(s.token(), s.add("k", 1, 0), s.add("k", 10, 1), s.add("k", 100, 7)))
	s.commit(s.attempt(s.token(), s.add("k", 1000, 7), s.add("k", 10000, 12)))
	s.wantTotal(s.cell("k"), "11111")
}

func sumsAreExact(s *suite) {
	for range 3 {
		s.commit(s.attempt(s.token(), s.add("max", math.MaxInt64, 0), s.add("min", math.MinInt64, 0)))
	}
	wide := s.add("wide", 0, 0)
	wide.Delta = tally.SumOf(math.MaxInt64).Plus(tally.SumOf(math.MaxInt64))
	s.commit(s.attempt(s.token(), wide))
	s.wantTotal(s.cell("max"), "27670116110564327421")
	s.wantTotal(s.cell("min"), "-27670116110564327424")
	s.wantTotal(s.cell("wide"), "18446744073709551614")
}

func commitLimits(s *suite) {
	token := s.token()
	a := s.attempt(token)
	for i := range merge.MaxAdds {
		a.Adds = append(a.Adds, s.add(fmt.Sprint("k", i), int64(i), i%8))
	}
	for i := range merge.MaxExcept {
		a.Except = append(a.Except, tally.BoundID(fmt.Sprintf("%s%0240d", s.prefix, i)))
	}
	s.commit(a)
	if record := s.wantState(token, merge.Committed); !sameSet(record.Except, a.Except) {
		s.Errorf("%d exceptions came back, want %d", len(record.Except), len(a.Except))
	}
	s.wantTotal(s.cell("k0"), "0")
	s.wantTotal(s.cell("k98"), "98")
}

func commitWithoutAdds(s *suite) {
	token := s.token()
	s.commit(s.attempt(token))
	s.wantState(token, merge.Committed)
}

func commitAgain(s *suite) {
	a := s.attempt(s.token(), s.add("k", 5, 0))
	a.Except = []string{s.event(1)}
	s.commit(a)
	if record := s.commit(a); record.State != merge.Committed || !sameSet(record.Except, a.Except) {
		s.Errorf("a second Commit answers %+v", record)
	}
	s.wantTotal(s.cell("k"), "5")
}

func commitAgainOnOtherSlots(s *suite) {
	token := s.token()
	s.commit(s.attempt(token, s.add("k", 5, 0), s.add("j", 5, 0)))
	if record := s.commit(s.attempt(token, s.add("k", 5, 1), s.add("j", 5, 2))); record.State != merge.Committed {
		s.Errorf("a second Commit answers %+v", record)
	}
	s.wantTotal(s.cell("k"), "5")
	s.wantTotal(s.cell("j"), "5")
}

func commitAfterAbort(s *suite) {
	token := s.token()
	s.abort(token)
	if record := s.commit(s.attempt(token, s.add("k", 5, 0))); record.State != merge.Aborted {
		s.Errorf("Commit of an aborted attempt answers %+v", record)
	}
	s.wantState(token, merge.Aborted)
	s.wantTotal(s.cell("k"), "0")
}

func commitRefused(s *suite) {
	full := s.add("full", 0, 0)
	full.Delta, _ = tally.ParseSum("99999999999999999999999999999999999999") // 38 digits
	s.commit(s.attempt(s.token(), full))
	token := s.token()
	_, err := s.Store.Commit(s.ctx, s.attempt(token, s.add("good", 1, 0), s.add("full", 2, 0), s.add("fine", 1, 0)))
	var refused *merge.RefusedError
	if !errors.As(err, &refused) || !slices.Equal(refused.Adds, []int{1}) {
		s.Fatalf("Commit past 38 digits: %v, want a RefusedError that names add 1", err)
	}
	s.wantState(token, merge.Undecided)
	s.wantTotal(s.cell("good"), "0")
	s.wantTotal(s.cell("fine"), "0")
	s.wantTotal(s.cell("full"), full.Delta.String())
}

// persist makes one attempt until the store gives a definite answer, on another slot after each conflict.
func (s *suite) persist(a merge.Attempt) merge.Record {
	for try := 0; ; try++ {
		record, err := s.Store.Commit(s.ctx, a)
		var conflict *merge.ConflictError
		switch {
		case err == nil:
			return record
		case !errors.As(err, &conflict):
			s.Errorf("Commit: %v", err)
			return merge.Record{}
		}
		for _, i := range conflict.Adds {
			a.Adds[i].Slot = (a.Adds[i].Slot + 1) % 8
		}
		pause := time.Duration(min(1+try, 20)) * time.Millisecond // gives way to the other transaction; asserts nothing
		select {
		case <-s.ctx.Done():
			s.Errorf("Commit: no end of conflicts")
			return merge.Record{}
		case <-time.After(pause):
		}
	}
}

func commitByMany(s *suite) {
	token := s.token()
	together(16, func(int) {
		if record := s.persist(s.attempt(token, s.add("k", 1, 0))); record.State != merge.Committed {
			s.Errorf("Commit answers %+v", record)
		}
	})
	s.wantTotal(s.cell("k"), "1")
}

func manyTokensOneCell(s *suite) {
	together(16, func(i int) {
		for range 5 {
			s.persist(s.attempt(s.token(), s.add("k", int64(i), 0), s.add(fmt.Sprint("own", i), 1, 0)))
		}
	})
	s.wantTotal(s.cell("k"), "600")
	s.wantTotal(s.cell("own15"), "5")
}

func commitAgainstAbort(s *suite) {
	const rounds = 10
	committed := 0
	for i := range rounds {
		token := s.token()
		states := make([]merge.State, 6)
		together(len(states), func(w int) {
			if w == 0 || w == i%len(states) {
				states[w] = s.persist(s.attempt(token, s.add("k", 1, 0))).State
				return
			}
			states[w] = s.persistAbort(token)
		})
		want := s.wantState(token, states[0]).State
		if want == merge.Undecided || slices.ContainsFunc(states, func(got merge.State) bool { return got != want }) {
			s.Fatalf("round %d: the record says %d, the callers heard %d", i, want, states)
		}
		if want == merge.Committed {
			committed++
		}
	}
	s.wantTotal(s.cell("k"), fmt.Sprint(committed))
}

func (s *suite) persistAbort(token merge.Token) merge.State {
	for {
		record, err := s.Store.Abort(s.ctx, token, s.outlives())
		var conflict *merge.ConflictError
		if err == nil || !errors.As(err, &conflict) {
			if err != nil {
				s.Errorf("Abort: %v", err)
			}
			return record.State
		}
	}
}
