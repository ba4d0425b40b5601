package ingest

import (
	"context"
	"errors"
	"runtime/debug"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally/rules"
)

// verdict says what becomes of a record. The zero value is the one that loses nothing.
type verdict uint8

const (
	failed verdict = iota // must come again
	done                  // counted, a duplicate, or skipped by the rules
	bad                   // can never be counted as it stands, and is not parked yet
	parked                // kept where it can be replayed from
)

// fate is a verdict and, unless it is done, why.
type fate struct {
	verdict verdict
	reason  error
}

var (
	errHeld = errors.New("a record before it must come again first, and its source is counted in order")
	// errUnanswered guards against a Sink that breaks its contract.
	errUnanswered = errors.New("the merge did not answer for every event; this is a bug, report it")
)

// fateOf is the fate of a record that could not be read. Only what is bound to repeat makes a record bad; whatever else
// went wrong may go right on the next delivery.
func fateOf(err error) fate {
	if errors.Is(err, rules.ErrBadRecord) || errors.Is(err, envelope.ErrPayload) {
		return fate{bad, err}
	}
	return fate{failed, err}
}

// worstOf is the fate of a record whose events came out so. One that must be counted again outweighs one that never
// can: the record comes again, and is bad once nothing else is left.
func worstOf(outcomes []merge.Outcome) fate {
	worst := fate{verdict: done}
	for _, o := range outcomes {
		switch {
		case o.Done():
		case o.Status != merge.Refused:
			return fate{failed, o.Err}
		case worst.verdict == done:
			worst = fate{bad, o.Err}
		}
	}
	return worst
}

// ask has the pending events merged.
func (in *invocation) ask(ctx context.Context, outcomes []merge.Outcome) (err error) {
	if len(in.events) == 0 {
		return nil
	}
	defer contain(&err)
	if copy(outcomes, in.sink.MergeMany(ctx, in.events)) != len(in.events) {
		return errUnanswered
	}
	return nil
}

// failed returns the records that must come again.
func (in *invocation) failed() []int {
	var indices []int
	for i, f := range in.fates {
		if f.verdict != done && f.verdict != parked {
			indices = append(indices, i)
		}
	}
	return indices
}

// contain is deferred; it turns a panic into *err.
func contain(err *error) {
	if value := recover(); value != nil {
		*err = &merge.PanicError{Value: value, Stack: debug.Stack()}
	}
}
