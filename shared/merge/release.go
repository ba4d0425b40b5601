package merge

import (
	"context"
	"sync/atomic"
	"time"
)

// release gives back every claim that stands for nothing: those of attempts that did not commit, and those that a
// commit excepted. All share one budget and never outlast the invocation. It runs although the caller's context may be
// done.
//
// Crash window: a claim that is not given back stays behind an aborted or undecided attempt, or among the exceptions of
// a committed one. The next delivery takes it over in each case.
func (c *call) release(ctx context.Context) {
	if len(c.leftover) == 0 {
		return
	}
	n := 0
	for _, a := range c.leftover {
		n += len(a.leavings())
	}
	budget := min(releaseBudget(n), time.Until(c.times.release))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()

	abortErrs := make([]error, len(c.leftover))
	wide(len(c.leftover), releaseWidth, func(_, i int) { abortErrs[i] = c.leftover[i].abort(ctx) })
	jobs := make([]leaving, 0, n)
	for i, a := range c.leftover {
		a.settle()
		left := a.leavings()
		if a.record.State == Undecided { // its commit may still land, so its claims must stay
			c.m.record(MetricReleaseFailed, len(left), abortErrs[i])
			continue
		}
		for _, pos := range left {
			jobs = append(jobs, leaving{a, pos})
		}
	}
	c.giveBack(ctx, jobs)
}

// leaving is one claim to give back.
type leaving struct {
	a   *attempt
	pos int
}

// giveBack deletes claims, each only if it still carries its attempt's token: another may have taken it over.
func (c *call) giveBack(ctx context.Context, jobs []leaving) {
	var released atomic.Int64
	var failure atomic.Pointer[error]
	wide(len(jobs), releaseWidth, func(_, i int) {
		t := tries{m: c.m, call: "giving a claim back"}
		_, err := retry(ctx, &t, func() (struct{}, error) {
			return struct{}{}, c.store.Release(ctx, jobs[i].a.id(jobs[i].pos), jobs[i].a.token)
		})
		if err != nil {
			failure.CompareAndSwap(nil, &err)
			return
		}
		released.Add(1)
	})
	var cause error
	if first := failure.Load(); first != nil {
		cause = *first
	}
	c.m.record(MetricRelease, int(released.Load()), nil)
	c.m.record(MetricReleaseFailed, len(jobs)-int(released.Load()), cause)
}

// abort decides an attempt whose commit failed or was not tried: from then on it cannot commit, or it turns out that it
// had.
func (a *attempt) abort(ctx context.Context) error {
	if a.record.State != Undecided {
		return nil
	}
	t := tries{m: a.call.m, call: "aborting the attempt"}
	record, err := retry(ctx, &t, func() (Record, error) {
		return a.call.store.Abort(ctx, a.token, a.recordExpires())
	})
	if err != nil {
		return err
	}
	a.record = record
	if record.State == Committed {
		a.call.cache(ctx, a.order.Adds)
	}
	return nil
}
