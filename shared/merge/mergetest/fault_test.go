package mergetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
)

func TestFault_DecidesWhetherAndWhenACallTakesEffect(t *testing.T) {
	tests := []struct {
		name             string
		fault            Fault
		now, next, atEnd string
	}{
		{"before", Fault{Err: ErrInjected}, "0", "0", "0"},
		{"after", Fault{Err: ErrInjected, Applied: true}, "1", "1", "1"},
		{"late", Fault{Err: ErrInjected, Late: 1}, "0", "1", "1"},
		{"very late", Fault{Err: ErrInjected, Late: 99}, "0", "0", "1"},
		{"throttled", Fault{Err: ErrThrottle}, "0", "0", "0"},
		{"conflict", Fault{Err: &merge.ConflictError{Adds: []int{0}}}, "0", "0", "0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := New(t)
			s.Fault = func(c Call) Fault {
				if c.Method == Commit {
					return test.fault
				}
				return Fault{}
			}
			_, err := s.Commit(t.Context(), attemptOf(s, "t", one))
			if !errors.Is(err, test.fault.Err) {
				t.Errorf("Commit: %v", err)
			}
			now := s.Total(hour).String()
			_, _ = s.FindRecord(t.Context(), "t")
			next := s.Total(hour).String()
			s.Land()
			if end := s.Total(hour).String(); now != test.now || next != test.next || end != test.atEnd {
				t.Errorf("%s, after a further call %s, at the end %s; want %s, %s, %s", now, next, end, test.now,
					test.next, test.atEnd)
			}
		})
	}
}

func TestFault_BefallsChosenClaimsOnly(t *testing.T) {
	s := New(t)
	s.Fault = func(c Call) Fault { return Fault{Err: ErrInjected, Applied: c.N == 1, Events: []string{"f"}} }
	claims := []merge.Claim{claimOf(s, "e", "t"), claimOf(s, "f", "t"), claimOf(s, "g", "t")}
	for i, reply := range s.PutClaims(t.Context(), claims) {
		if (reply.Err != nil) != (i == 1) || i != 1 && reply.Standing.Token != "t" {
			t.Errorf("reply %d: %+v", i, reply)
		}
	}
	if len(s.Snapshot().Claims) != 3 {
		t.Error("a claim whose reply was lost does not stand")
	}
}

func TestFault_GoneAnswersAnEmptyToken(t *testing.T) {
	s := New(t)
	s.Fault = func(Call) Fault { return Fault{Gone: true} }
	reply := s.PutClaims(t.Context(), []merge.Claim{claimOf(s, "e", "t")})[0]
	if reply.Err != nil || reply.Standing.Token != "" || len(s.Snapshot().Claims) != 0 {
		t.Errorf("reply %+v", reply)
	}
}

func TestFault_HangLastsAsLongAsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		s.Fault = func(Call) Fault { return Fault{Hang: true, Applied: true} }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := s.Commit(ctx, attemptOf(s, "t", one))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if s.Total(hour).String() != "1" {
			t.Error("the call was to be applied before it hung")
		}
	})
}

func TestFault_Panics(t *testing.T) {
	s := New(t)
	s.Fault = func(Call) Fault { return Fault{Panic: "boom", Applied: true} }
	defer func() {
		if recover() != "boom" || s.Total(hour).String() != "1" {
			t.Error("no panic after applying")
		}
	}()
	_, _ = s.Commit(t.Context(), attemptOf(s, "t", one))
}

func TestFault_ThatNoStoreCouldShowIsAFaultOfTheTest(t *testing.T) {
	for _, fault := range []Fault{
		{Applied: true}, {Late: 1}, {Err: ErrInjected, Applied: true, Late: 1}, {Err: ErrThrottle, Applied: true},
		{Err: ErrDenied, Late: 1}, {Err: &merge.ConflictError{}, Applied: true}, {Gone: true},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was taken", fault)
				}
			}()
			s := New(&journal{})
			s.Fault = func(Call) Fault { return fault }
			_, _ = s.Commit(t.Context(), attemptOf(s, "t", one))
		}()
	}
}

func TestConflictOn_NamesTheAddsThatAreHeld(t *testing.T) {
	s := New(t)
	s.Fault = func(c Call) Fault { return ConflictOn(c, func(a merge.SlottedAdd) bool { return a.Slot == 2 }) }
	two := one
	two.Slot = 2
	_, err := s.Commit(t.Context(), attemptOf(s, "t", one, two))
	var conflict *merge.ConflictError
	if !errors.As(err, &conflict) || len(conflict.Adds) != 1 || conflict.Adds[0] != 1 {
		t.Errorf("Commit: %v", err)
	}
	if record, err := s.Commit(t.Context(), attemptOf(s, "u", one)); err != nil || record.State != merge.Committed {
		t.Errorf("Commit off the held slot: %+v, %v", record, err)
	}
}

func TestWorker_StopsDeadAfterItsWrites(t *testing.T) {
	for _, late := range []int{0, 1} {
		s := New(t)
		w := s.NewWorker("w")
		w.StopAfter(2, late)
		claims := []merge.Claim{claimOf(s, "a", "t"), claimOf(s, "b", "t"), claimOf(s, "c", "t"), claimOf(s, "d", "t")}
		for _, reply := range w.PutClaims(t.Context(), claims) {
			if !errors.Is(reply.Err, ErrStopped) {
				t.Errorf("a dead worker hears %+v", reply)
			}
		}
		if _, err := w.FindRecord(t.Context(), "t"); !errors.Is(err, ErrStopped) || !w.Stopped() {
			t.Errorf("a dead worker reads: %v", err)
		}
		if n := len(s.Snapshot().Claims); n != 2 || w.Writes() != 2 {
			t.Errorf("%d claims stand, %d writes", n, w.Writes())
		}
		_, _ = s.FindRecord(t.Context(), "t")
		if n := len(s.Snapshot().Claims); n != 2+late {
			t.Errorf("%d claims stand after a further call", n)
		}
	}
}

func TestStore_SweepDeletesWhatIsPastItsExpiry(t *testing.T) {
	s := New(t)
	s.PutClaims(t.Context(), []merge.Claim{claimOf(s, "e", "t")})
	passing := one
	passing.Expires = s.Now().Add(time.Hour).Unix()
	kept := one
	kept.Slot = 1
	_, _ = s.Commit(t.Context(), attemptOf(s, "t", passing, kept))
	s.Sweep()
	if snap := s.Snapshot(); len(snap.Claims) != 1 || len(snap.Records) != 1 || len(snap.Rows) != 2 {
		t.Errorf("swept too early: %+v", snap)
	}
	s.Clock.Advance(3 * time.Hour)
	s.Sweep()
	if snap := s.Snapshot(); len(snap.Claims) != 0 || len(snap.Records) != 0 || len(snap.Rows) != 1 {
		t.Errorf("not swept: %+v", snap)
	}
}

func TestStore_CountsCalls(t *testing.T) {
	s := New(t)
	_, _ = s.FindRecord(t.Context(), "t")
	_, _ = s.NewWorker("w").FindRecord(t.Context(), "t")
	if s.Calls(FindRecord) != 2 || s.Calls(Commit) != 0 {
		t.Errorf("%d, %d", s.Calls(FindRecord), s.Calls(Commit))
	}
}
