package merge

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// PanicError is a panic that was contained. Its text leaves the value out unless it is the runtime's own, since it
// could carry an event's payload.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	if fault, ok := e.Value.(runtime.Error); ok {
		return fmt.Sprintf("panic: %v; this is a bug, report it with the stack", fault)
	}
	return fmt.Sprintf("panic with a value of type %T; this is a bug, report it with the stack", e.Value)
}

// contain is deferred; it turns a panic into *err.
func contain(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

var (
	// errUnsent reports a call that was not made because its time was up already.
	errUnsent = errors.New("not sent")
	// errOverrun reports a call that went on after its context was done. It is left behind, and may still be applied.
	errOverrun = errors.New("the call did not end when its context did; the store must obey its context")
)

// bounded runs f for at most timeout, in a goroutine of its own, so that neither a panic nor a call that ignores its
// context reaches the caller. A call that is left behind is one more that may land late, which is what the protocol is
// built for.
func bounded[T any](
	ctx context.Context, timeout, grace time.Duration, f func(context.Context) (T, error),
) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%w: %w", errUnsent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() { answers <- a }()
		defer contain(&a.err)
		a.value, a.err = f(ctx)
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-timer.C:
		return none, errors.Join(ctx.Err(), errOverrun)
	}
}

// guarded is a Store whose calls are bounded and never panic.
type guarded struct {
	store          Store
	timeout, grace time.Duration
}

var _ Store = guarded{}

func (g guarded) PutClaims(ctx context.Context, claims []Claim) []ClaimReply {
	replies, err := bounded(ctx, g.timeout, g.grace, func(ctx context.Context) ([]ClaimReply, error) {
		return g.store.PutClaims(ctx, claims), nil
	})
	if err == nil && len(replies) != len(claims) {
		err = fmt.Errorf("the store answered %d of %d claims; each must have its answer", len(replies), len(claims))
	}
	if err != nil {
		replies = make([]ClaimReply, len(claims))
		for i := range replies {
			replies[i].Err = err
		}
	}
	return replies
}

func (g guarded) TakeClaim(ctx context.Context, claim Claim, from Token) (Claim, error) {
	return bounded(ctx, g.timeout, g.grace, func(ctx context.Context) (Claim, error) {
		return g.store.TakeClaim(ctx, claim, from)
	})
}

func (g guarded) FindRecord(ctx context.Context, token Token) (Record, error) {
	return bounded(ctx, g.timeout, g.grace, func(ctx context.Context) (Record, error) {
		return g.store.FindRecord(ctx, token)
	})
}

func (g guarded) Abort(ctx context.Context, token Token, expires time.Time) (Record, error) {
	return bounded(ctx, g.timeout, g.grace, func(ctx context.Context) (Record, error) {
		return decided(g.store.Abort(ctx, token, expires))
	})
}

func (g guarded) Commit(ctx context.Context, a Attempt) (Record, error) {
	return bounded(ctx, g.timeout, g.grace, func(ctx context.Context) (Record, error) {
		return decided(g.store.Commit(ctx, a))
	})
}

func (g guarded) Release(ctx context.Context, event string, token Token) error {
	_, err := bounded(ctx, g.timeout, g.grace, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, g.store.Release(ctx, event, token)
	})
	return err
}

// decided makes sure that a definite answer is one: after Abort and Commit a record stands.
func decided(r Record, err error) (Record, error) {
	if err == nil && r.State != Committed && r.State != Aborted {
		err = errors.New("the store answered without a commit record where one must stand")
	}
	return r, err
}
