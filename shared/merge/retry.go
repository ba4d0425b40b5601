package merge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// throttledPace is how much slower than others a throttled call is tried again: 400 ms at first by default.
const throttledPace = 8

// tries counts the tries of one call and waits between them.
type tries struct {
	m         *Merger
	call      string // what is tried, for error texts
	unknown   int    // tries so far whose outcome nobody knows
	contended int    // tries so far that were turned away by throttling or another transaction
}

// next waits before the next try after one that failed with err. It returns nil if there is to be one; otherwise why
// not, with err in it.
func (t *tries) next(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return t.ended(ctx, err)
	}
	if !retryable(err) {
		return t.stopped(err)
	}
	n, limit, base := &t.unknown, t.m.cfg.Attempts, t.m.cfg.Backoff
	if turnedAway(err) {
		n, limit = &t.contended, t.m.cfg.Contended
	}
	if errors.Is(err, ErrThrottled) {
		base = saturate(base, throttledPace)
		t.m.record(MetricThrottled, 1, nil)
	}
	*n++
	if *n >= limit {
		return fmt.Errorf("%s gave up after %d tries; its source will deliver the events again: %w", t.call,
			t.unknown+t.contended, err)
	}
	if slept := t.m.cfg.Sleep(ctx, backoff(base, t.m.cfg.BackoffCap, *n-1, t.m.draw)); slept != nil || ctx.Err() != nil {
		return t.ended(ctx, err)
	}
	t.m.record(MetricRetry, 1, nil)
	return nil
}

// stopped says that err ended the tries at once.
func (t *tries) stopped(err error) error {
	return fmt.Errorf("%s failed and was not tried again: %w", t.call, err)
}

// retry calls f until it succeeds or t allows no further try.
func retry[T any](ctx context.Context, t *tries, f func() (T, error)) (T, error) {
	for {
		value, err := f()
		if err == nil {
			return value, nil
		}
		if err = t.next(ctx, err); err != nil {
			return value, err
		}
	}
}

// ended keeps both causes: that time is up, and what the last try met.
func (t *tries) ended(ctx context.Context, last error) error {
	return fmt.Errorf("%s ran out of time; its source will deliver the events again: %w", t.call,
		errors.Join(ctx.Err(), last))
}

// turnedAway reports whether err says that the call was not applied and may go through later.
func turnedAway(err error) bool {
	var conflict *ConflictError
	return errors.Is(err, ErrThrottled) || errors.As(err, &conflict)
}

// retryable reports whether a further try can help. A timeout of the single try can be cured; only the caller's own
// context ends all tries, and tries.next looks at that one itself.
func retryable(err error) bool {
	var refused *RefusedError
	var panicked *PanicError
	return !errors.Is(err, ErrPermanent) && !errors.As(err, &refused) && !errors.As(err, &panicked)
}

// notApplied reports whether err says that the call had no effect and never will.
func notApplied(err error) bool {
	var refused *RefusedError
	return turnedAway(err) || errors.Is(err, ErrPermanent) || errors.Is(err, errUnsent) || errors.As(err, &refused)
}

// backoff returns a wait before the try that follows attempt (0 for the first): uniform between 0 and base doubled
// attempt times, and never above limit ("full jitter",
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). Bounds that are not positive stand for
// the defaults, so that there is no base, limit or attempt that panics, wraps, or makes all waits 0.
func backoff(base, limit time.Duration, attempt int, draw func(n int64) int64) time.Duration {
	if base <= 0 {
		base = DefaultBackoff
	}
	if limit <= 0 {
		limit = DefaultBackoffCap
	}
	ceiling := min(base, limit)
	for range attempt {
		if ceiling > limit/2 {
			ceiling = limit
			break
		}
		ceiling *= 2
	}
	if ceiling == maxDuration {
		return time.Duration(draw(int64(ceiling)))
	}
	return time.Duration(draw(int64(ceiling) + 1))
}

const maxDuration = time.Duration(1<<63 - 1)

// saturate returns d times n, or the longest duration.
func saturate(d time.Duration, n int64) time.Duration {
	if d > maxDuration/time.Duration(n) {
		return maxDuration
	}
	return d * time.Duration(n)
}

// sleep is the default Config.Sleep.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
