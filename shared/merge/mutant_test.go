package merge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"abacus/shared/merge"
)

// TestModel_EachRuleIsNeeded leaves out one rule of the protocol at a time and finds a schedule that goes wrong.
func TestModel_EachRuleIsNeeded(t *testing.T) {
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed, _ := schedules(t, 0)
			const most = 20000
			for i := range most {
				v, _ := runSchedule(t, silentTB{}, seed+uint64(i), m)
				if v == lost || v == over {
					t.Logf("%s after %d schedules", v, i+1)
					return
				}
			}
			t.Fatalf("%d schedules from seed %d found nothing wrong without the rule", most, seed)
		})
	}
}

// silentTB lets mutants misuse the store, which reports every misuse; what counts here is the harm.
type silentTB struct{}

func (silentTB) Helper()                           {}
func (silentTB) Errorf(string, ...any)             {}
func (silentTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// mutant changes what one process does to the store, so that one rule of the protocol is not kept.
type mutant func(p *process) merge.Store

var mutants = map[string]mutant{
	"no-except":             func(p *process) merge.Store { return noExcept{p} },
	"no-abort":              func(p *process) merge.Store { return noAbort{p} },
	"release-without-abort": func(p *process) merge.Store { return noOwnAbort{p} },
	"known-is-done":         func(p *process) merge.Store { return knownIsDone{p} },
	"release-without-token": func(p *process) merge.Store { return bareRelease{p} },
	"takeover-of-counted":   func(p *process) merge.Store { return alwaysAborted{p} },
	"takeover-of-any":       func(p *process) merge.Store { return bareTakeover{p} },
	"exceptions-not-read":   func(p *process) merge.Store { return blind{p} },
	"failed-is-absent":      func(p *process) merge.Store { return hasty{p} },
}

type noExcept struct{ *process }

func (s noExcept) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	a.Except = nil
	return s.process.Commit(ctx, a)
}

// noAbort takes claims over without aborting their attempt.
type noAbort struct{ *process }

func (s noAbort) Abort(ctx context.Context, token merge.Token, expires time.Time) (merge.Record, error) {
	if !s.owns(token) {
		return merge.Record{State: merge.Aborted}, nil
	}
	return s.process.Abort(ctx, token, expires)
}

// noOwnAbort gives claims back without aborting its own attempt.
type noOwnAbort struct{ *process }

func (s noOwnAbort) Abort(ctx context.Context, token merge.Token, expires time.Time) (merge.Record, error) {
	if s.owns(token) {
		return merge.Record{State: merge.Aborted}, nil
	}
	return s.process.Abort(ctx, token, expires)
}

type knownIsDone struct{ *process }

func (s knownIsDone) FindRecord(ctx context.Context, token merge.Token) (merge.Record, error) {
	record, err := s.process.FindRecord(ctx, token)
	if err == nil && record.State == merge.Undecided {
		record.State = merge.Committed
	}
	return record, err
}

type bareRelease struct{ *process }

func (s bareRelease) Release(ctx context.Context, event string, _ merge.Token) error {
	return s.process.Release(ctx, event, s.schedule.store.Snapshot().Claims[event].Token)
}

// alwaysAborted does not ask what became of the attempt whose claim it finds.
type alwaysAborted struct{ *process }

func (s alwaysAborted) FindRecord(context.Context, merge.Token) (merge.Record, error) {
	return merge.Record{State: merge.Aborted}, nil
}

// bareTakeover replaces whatever row stands, not only that of the attempt that it has looked at.
type bareTakeover struct{ *process }

func (s bareTakeover) TakeClaim(ctx context.Context, claim merge.Claim, _ merge.Token) (merge.Claim, error) {
	return s.process.TakeClaim(ctx, claim, s.schedule.store.Snapshot().Claims[claim.Event].Token)
}

// blind reads commit records without their exceptions.
type blind struct{ *process }

func (s blind) FindRecord(ctx context.Context, token merge.Token) (merge.Record, error) {
	record, err := s.process.FindRecord(ctx, token)
	record.Except = nil
	return record, err
}

// hasty takes a claim whose reply is unknown for its own.
type hasty struct{ *process }

func (s hasty) PutClaims(ctx context.Context, claims []merge.Claim) []merge.ClaimReply {
	replies := s.process.PutClaims(ctx, claims)
	for i := range replies {
		if replies[i].Err != nil {
			replies[i] = merge.ClaimReply{Standing: claims[i]}
		}
	}
	return replies
}

// coverage counts the paths of the protocol that schedules reached.
type coverage map[string]int

// watched tells the paths apart by the store's answers.
type watched struct {
	*process
	seen coverage
}

func (w watched) saw(path string, is bool) {
	if is {
		w.schedule.mu.Lock()
		defer w.schedule.mu.Unlock()
		w.seen[path]++
	}
}

func (w watched) FindRecord(ctx context.Context, token merge.Token) (merge.Record, error) {
	record, err := w.process.FindRecord(ctx, token)
	w.saw("duplicate", record.State == merge.Committed && len(record.Except) == 0)
	return record, err
}

func (w watched) TakeClaim(ctx context.Context, claim merge.Claim, from merge.Token) (merge.Claim, error) {
	standing, err := w.process.TakeClaim(ctx, claim, from)
	if err == nil && standing.Token == claim.Token {
		record := w.schedule.store.Snapshot().Records[from]
		w.saw("excepted event taken over", record.State == merge.Committed)
		w.saw("aborted event taken over", record.State == merge.Aborted)
	}
	return standing, err
}

func (w watched) Abort(ctx context.Context, token merge.Token, expires time.Time) (merge.Record, error) {
	record, err := w.process.Abort(ctx, token, expires)
	w.saw("another attempt aborted", !w.owns(token) && record.State == merge.Aborted)
	w.saw("another attempt found committed by its abort", !w.owns(token) && record.State == merge.Committed)
	w.saw("own attempt found committed by its abort", w.owns(token) && record.State == merge.Committed)
	return record, err
}

func (w watched) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	record, err := w.process.Commit(ctx, a)
	var refused *merge.RefusedError
	w.saw("own attempt found aborted by its commit", record.State == merge.Aborted)
	w.saw("refused event left out", errors.As(err, &refused))
	return record, err
}

func (w watched) Release(ctx context.Context, event string, token merge.Token) error {
	err := w.process.Release(ctx, event, token)
	record := w.schedule.store.Snapshot().Records[token]
	w.saw("claim given back after a commit", err == nil && record.State == merge.Committed)
	return err
}
