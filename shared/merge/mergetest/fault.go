package mergetest

import (
	"errors"
	"fmt"
	"slices"

	"abacus/shared/merge"
)

// Method names a method of merge.Store.
type Method string

// The methods of merge.Store.
const (
	PutClaims  Method = "PutClaims"
	TakeClaim  Method = "TakeClaim"
	FindRecord Method = "FindRecord"
	Abort      Method = "Abort"
	Commit     Method = "Commit"
	Release    Method = "Release"
)

// Call is one call as a fault decision sees it.
type Call struct {
	N      int // 1 for the store's first call
	Method Method
	Worker string             // name of the worker that calls; empty for the Store's own methods
	Token  merge.Token        // the attempt that calls, or is asked about
	Events []string           // of PutClaims, TakeClaim and Release
	Adds   []merge.SlottedAdd // of Commit
}

// Fault says how one call goes wrong. The zero value is a healthy call. One of Err, Panic, Hang and Gone says how the
// caller hears of it; Applied and Late say whether the call takes effect all the same.
type Fault struct {
	Err   error // the caller's answer: ErrInjected, ErrThrottle, ErrDenied, a *merge.ConflictError, ...
	Panic any   // the call panics with this value
	Hang  bool  // the call ends when its context does, with the context's error
	Gone  bool  // PutClaims and TakeClaim answer that the row in the way is gone again

	Applied bool // the call took effect before it went wrong: a lost reply
	Late    int  // the call takes effect when this many further calls have been made, or at Store.Land

	// Events narrows a fault of PutClaims to the claims on these events; none means all.
	Events []string
}

// Errors for Fault.Err.
var (
	ErrInjected = errors.New("injected fault") // an outcome that the caller cannot know
	ErrThrottle = fmt.Errorf("injected fault: %w", merge.ErrThrottled)
	ErrDenied   = fmt.Errorf("injected fault: %w", merge.ErrPermanent)
)

// ConflictOn is a fault for Commit: another transaction holds the adds that held picks. It is healthy where none is.
func ConflictOn(call Call, held func(merge.SlottedAdd) bool) Fault {
	if adds := pick(call.Adds, held); len(adds) > 0 {
		return Fault{Err: &merge.ConflictError{Adds: adds}}
	}
	return Fault{}
}

// RefuseOn is a fault for Commit: the adds that bad picks can never be applied. It is healthy where none is.
func RefuseOn(call Call, bad func(merge.SlottedAdd) bool) Fault {
	if adds := pick(call.Adds, bad); len(adds) > 0 {
		return Fault{Err: &merge.RefusedError{Adds: adds, Cause: ErrInjected}}
	}
	return Fault{}
}

func pick(adds []merge.SlottedAdd, wanted func(merge.SlottedAdd) bool) []int {
	var picked []int
	for i, add := range adds {
		if wanted(add) {
			picked = append(picked, i)
		}
	}
	return picked
}

func (f Fault) healthy() bool { return f.Err == nil && f.Panic == nil && !f.Hang && !f.Gone }

func (f Fault) befalls(event string) bool {
	return len(f.Events) == 0 || slices.Contains(f.Events, event)
}

// check reports a fault that no store could show.
func (f Fault) check(t TB, call Call) {
	t.Helper()
	took := f.Applied || f.Late > 0
	switch {
	case f.healthy() && took:
		t.Fatalf("fault on %s: Applied and Late need Err, Panic or Hang", call.Method)
	case f.Applied && f.Late > 0:
		t.Fatalf("fault on %s: a call is Applied or Late, not both", call.Method)
	case f.Gone && call.Method != PutClaims && call.Method != TakeClaim:
		t.Fatalf("fault on %s: only claims can be Gone", call.Method)
	case took && (f.Gone || notApplied(f.Err)):
		t.Fatalf("fault on %s: this answer promises that the call was not applied", call.Method)
	}
}
