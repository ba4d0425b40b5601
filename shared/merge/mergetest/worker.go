package mergetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"abacus/shared/merge"
)

// ErrStopped answers every call of a worker that has stopped. It is permanent, so that the dead worker's code winds up
// at once; what that code then says is of no account.
var ErrStopped = fmt.Errorf("worker stopped: %w", merge.ErrPermanent)

// Worker is a merge.Store as one process sees it.
type Worker struct {
	s    *Store
	name string

	// All under s.mu.
	limited bool
	left    int // writes until it stops, if limited
	zombie  int // calls of others after which the write that it stopped in lands; 0: never
	stopped bool
	writes  int
}

var _ merge.Store = (*Worker)(nil)

// NewWorker returns a further worker on s.
func (s *Store) NewWorker(name string) *Worker { return &Worker{s: s, name: name} }

// StopAfter makes the worker stop dead once it has made n more writes, each claim of PutClaims being one: the next
// write is not applied, nor is any later call. With late > 0 that next write is on its way already: it lands after so
// many further calls of other workers, or at Store.Land.
func (w *Worker) StopAfter(n, late int) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.limited, w.left, w.zombie = true, n, late
}

// Stopped reports whether the worker has stopped.
func (w *Worker) Stopped() bool {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.stopped
}

// Writes returns how many writes the worker has made.
func (w *Worker) Writes() int {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.writes
}

// PutClaims implements merge.Store.
func (w *Worker) PutClaims(ctx context.Context, claims []merge.Claim) []merge.ClaimReply {
	call := Call{Method: PutClaims}
	for _, claim := range claims {
		call.Events = append(call.Events, claim.Event)
		call.Token = claims[0].Token
	}
	replies := make([]merge.ClaimReply, len(claims))
	f, err := w.enter(ctx, call, func() { w.s.checkPut(claims) })
	if err == nil {
		for i, claim := range claims {
			healthy := f
			if !f.befalls(claim.Event) {
				healthy = Fault{}
			}
			apply := func() (merge.Claim, error) { return w.s.putClaim(claim), nil }
			replies[i].Standing, replies[i].Err = carry(w, healthy, true, apply)
		}
		err = f.end(ctx)
	}
	if w.Stopped() { // a dead process hears nothing, not even of the claims that stand
		f, err = Fault{}, ErrStopped
	}
	for i, claim := range claims {
		if err != nil && (f.befalls(claim.Event) || f.healthy()) {
			replies[i] = merge.ClaimReply{Err: err}
		}
		if replies[i].Err == nil {
			w.s.heard(claim.Event, claim.Token, replies[i].Standing)
		}
	}
	return replies
}

// TakeClaim implements merge.Store.
func (w *Worker) TakeClaim(ctx context.Context, claim merge.Claim, from merge.Token) (merge.Claim, error) {
	call := Call{Method: TakeClaim, Token: claim.Token, Events: []string{claim.Event}}
	standing, err := invoke(ctx, w, call, true, func() { w.s.checkTake(claim, from) }, func() (merge.Claim, error) {
		return w.s.takeClaim(claim, from), nil
	})
	if err == nil {
		w.s.heard(claim.Event, claim.Token, standing)
	}
	return standing, err
}

// FindRecord implements merge.Store.
func (w *Worker) FindRecord(ctx context.Context, token merge.Token) (merge.Record, error) {
	call := Call{Method: FindRecord, Token: token}
	return invoke(ctx, w, call, false, func() { w.s.checkToken(FindRecord, token) }, func() (merge.Record, error) {
		return w.s.find(token), nil
	})
}

// Abort implements merge.Store.
func (w *Worker) Abort(ctx context.Context, token merge.Token, expires time.Time) (merge.Record, error) {
	call := Call{Method: Abort, Token: token}
	return invoke(ctx, w, call, true, func() { w.s.checkAbort(token, expires) }, func() (merge.Record, error) {
		return w.s.abort(token, expires), nil
	})
}

// Commit implements merge.Store.
func (w *Worker) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	a.Adds, a.Except = slices.Clone(a.Adds), slices.Clone(a.Except)
	call := Call{Method: Commit, Token: a.Token, Adds: a.Adds}
	record, err := invoke(ctx, w, call, true, func() { w.s.checkCommit(a) }, func() (merge.Record, error) {
		return w.s.commit(a)
	})
	w.s.heardCommit(a, err)
	return record, err
}

// Release implements merge.Store.
func (w *Worker) Release(ctx context.Context, event string, token merge.Token) error {
	call := Call{Method: Release, Token: token, Events: []string{event}}
	_, err := invoke(ctx, w, call, true, func() { w.s.checkRelease(event, token) }, func() (struct{}, error) {
		w.s.release(event, token)
		return struct{}{}, nil
	})
	return err
}

// invoke makes one call: it checks for misuse, asks for its fault, applies it or not, and answers.
func invoke[T any](
	ctx context.Context, w *Worker, call Call, write bool, check func(), apply func() (T, error),
) (T, error) {
	var zero T
	f, err := w.enter(ctx, call, check)
	if err != nil {
		return zero, err
	}
	value, err := carry(w, f, write, apply)
	if failed := f.end(ctx); failed != nil {
		return zero, failed
	}
	return value, err
}

// enter counts a call, lands what is due, checks for misuse and returns the call's fault.
func (w *Worker) enter(ctx context.Context, call Call, check func()) (Fault, error) {
	s := w.s
	s.t.Helper()
	s.mu.Lock()
	if w.stopped {
		s.mu.Unlock()
		return Fault{}, ErrStopped
	}
	s.n++
	s.calls[call.Method]++
	call.N, call.Worker = s.n, w.name
	s.land(s.n)
	err := ctx.Err()
	if err != nil && !s.DoneContexts {
		s.misuse("%s is called on a context that is done: %v", call.Method, err)
	}
	if err == nil {
		check()
	}
	s.mu.Unlock()
	if err != nil {
		return Fault{}, fmt.Errorf("%s: %w", call.Method, err)
	}
	if s.Fault == nil {
		return Fault{}, nil
	}
	f := s.Fault(call)
	f.check(s.t, call)
	return f, nil
}

// carry applies a call now, later or never, as f says and as long as the worker lives.
func carry[T any](w *Worker, f Fault, write bool, apply func() (T, error)) (T, error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var zero T
	later := func(after int) {
		s.late = append(s.late, lateCall{s.n + after, func() { _, _ = apply() }})
	}
	if write && w.limited && w.left == 0 && !w.stopped {
		w.stopped = true
		if w.zombie > 0 {
			later(w.zombie)
		}
	}
	switch {
	case w.stopped:
		return zero, ErrStopped
	case f.Late > 0:
		later(f.Late)
		return zero, nil
	case !f.healthy() && !f.Applied:
		return zero, nil
	}
	if write {
		w.left--
		w.writes++
	}
	return apply()
}

// end is how the caller hears of the fault.
func (f Fault) end(ctx context.Context) error {
	switch {
	case f.Panic != nil:
		panic(f.Panic)
	case f.Hang:
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Err
}

// lateCall is a call that was sent and has not arrived.
type lateCall struct {
	at    int // number of the call before which it lands
	apply func()
}

func (s *Store) land(n int) {
	s.late = slices.DeleteFunc(s.late, func(l lateCall) bool {
		if l.at <= n {
			l.apply()
		}
		return l.at <= n
	})
}

// Land lets every late call take effect now.
func (s *Store) Land() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.late {
		l.apply()
	}
	s.late = nil
}
