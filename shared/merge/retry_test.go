package merge_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"

	"pgregory.net/rapid"
)

// edges are the numbers at which arithmetic on durations goes wrong.
var edges = []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, 3, math.MaxInt64/2 - 1, math.MaxInt64 / 2,
	math.MaxInt64/2 + 1, math.MaxInt64 - 1, math.MaxInt64}

func anyInt64() *rapid.Generator[int64] { return rapid.OneOf(rapid.Int64(), rapid.SampledFrom(edges)) }

func TestP26_BackoffStaysWithinItsCapForAnyBaseCapAndAttempt(t *testing.T) {
	check := func(fatal func(string, ...any), base, limit time.Duration, attempt int) {
		ceiling := limit
		if limit <= 0 {
			ceiling = merge.DefaultBackoffCap
		}
		lowest := merge.Backoff(base, limit, attempt, func(int64) int64 { return 0 })
		highest := merge.Backoff(base, limit, attempt, func(n int64) int64 {
			if n <= 0 {
				fatal("draws from %d numbers for base %d, cap %d, attempt %d", n, base, limit, attempt)
			}
			return n - 1
		})
		if lowest != 0 || highest < 1 || highest > ceiling {
			fatal("waits %v to %v for base %d, cap %d, attempt %d; want 0 to at most %v, and not always 0", lowest, highest,
				base, limit, attempt, ceiling)
		}
		if next := merge.Backoff(base, limit, max(attempt, attempt+1), func(n int64) int64 { return n - 1 }); next < highest {
			fatal("the wait shrinks from %v to %v after attempt %d", highest, next, attempt)
		}
		if drawn := merge.Backoff(base, limit, attempt, rand.Int64N); drawn < 0 || drawn > ceiling {
			fatal("waits %v for cap %v", drawn, ceiling)
		}
	}
	for _, base := range edges {
		for _, limit := range edges {
			for _, attempt := range append(edges, 38, 39, 57, 58, 63, 64, 1000) {
				check(t.Fatalf, time.Duration(base), time.Duration(limit), int(attempt))
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t.Fatalf, time.Duration(anyInt64().Draw(t, "base")), time.Duration(anyInt64().Draw(t, "cap")),
			int(anyInt64().Draw(t, "attempt")))
	})
}

func TestP26_BackoffDoublesUntilItsCap(t *testing.T) {
	highest := func(n int64) int64 { return n - 1 }
	var got []time.Duration
	for attempt := range 8 {
		got = append(got, merge.Backoff(50*time.Millisecond, 2*time.Second, attempt, highest))
	}
	ms := time.Millisecond
	want := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2000 * ms, 2000 * ms}
	if !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
}

// failCommits merges one event while every commit fails by fault.
func failCommits(t *testing.T, fault mergetest.Fault) (merge.Outcome, *mergetest.Store) {
	t.Helper()
	s := mergetest.New(t)
	s.Fault = always(mergetest.Commit, fault)
	return newMerger(t, s).MergeOne(t.Context(), event("e", "a")), s
}

// highestSource draws close to the highest number each time.
type highestSource struct{}

func (highestSource) Uint64() uint64 { return math.MaxUint64 - 1 }

func TestP12_AttemptsEndAtTheirLimitAndTheErrorWrapsTheLastCause(t *testing.T) {
	outcome, s := failCommits(t, before)
	if got := s.Calls(mergetest.Commit); got != merge.DefaultAttempts {
		t.Errorf("%d commits, want %d", got, merge.DefaultAttempts)
	}
	if outcome.Status != merge.Failed {
		t.Fatalf("outcome %v", outcome)
	}
	wantIs(t, outcome.Err, mergetest.ErrInjected)
	if !strings.Contains(outcome.Err.Error(), "3 tries") {
		t.Errorf("%q does not say how often it was tried", outcome.Err)
	}
}

func TestB3_PermanentErrorIsNotRetried(t *testing.T) {
	outcome, s := failCommits(t, mergetest.Fault{Err: mergetest.ErrDenied})
	if got := s.Calls(mergetest.Commit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	wantIs(t, outcome.Err, merge.ErrPermanent)
	if outcome.Status != merge.Failed {
		t.Errorf("outcome %v; what ails the deployment is not the event's fault", outcome)
	}
}

func TestB3_PermanentErrorOfAClaimIsNotRetriedAndSaysSo(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	s.Fault = always(mergetest.PutClaims, mergetest.Fault{Err: mergetest.ErrDenied})
	got := newMerger(t, s, recordTo(h)).MergeMany(t.Context(), onOneKey(3))
	wantAll(t, got, merge.Failed)
	wantIs(t, got[0].Err, merge.ErrPermanent)
	wantCalls(t, s, map[mergetest.Method]int{mergetest.PutClaims: 1}) // nothing stands, so nothing is given back
	h.want(t, map[string]int{merge.MetricFailed: 3})
}

func TestB3_ThrottlingIsRetriedMoreOftenAndMoreSlowly(t *testing.T) {
	s := mergetest.New(t)
	s.Fault = script(map[mergetest.Method][]mergetest.Fault{
		mergetest.PutClaims: times(5, mergetest.Fault{Err: mergetest.ErrThrottle}),
		mergetest.Commit: {
			{Err: mergetest.ErrThrottle}, {Err: mergetest.ErrThrottle}, {Err: &merge.ConflictError{Adds: []int{0}}},
		},
	})
	var slept []time.Duration
	h := new(heard)
	m := newMerger(t, s, recordTo(h), func(c *merge.Config) {
		c.Rand = highestSource{}
		c.Sleep = func(_ context.Context, d time.Duration) error {
			slept = append(slept, d.Round(time.Millisecond))
			return nil
		}
	})
	wantAll(t, []merge.Outcome{m.MergeOne(t.Context(), event("e", "a"))}, merge.Counted)
	ms := time.Millisecond
	want := []time.Duration{400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 400 * ms, 800 * ms, 200 * ms}
	if !slices.Equal(slept, want) {
		t.Errorf("waits %v, want %v", slept, want)
	}
	h.want(t, map[string]int{
		merge.MetricMerged: 1, merge.MetricRetry: 8, merge.MetricThrottled: 7, merge.MetricConflict: 1,
	})
}

func TestB1_11_TimeoutOfOneCallIsRetriedWhileTheCallerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mergetest.New(t)
		s.Fault = script(map[mergetest.Method][]mergetest.Fault{
			mergetest.PutClaims: {{Hang: true}},
			mergetest.Commit:    {{Hang: true, Applied: true}, {Err: context.DeadlineExceeded}},
		})
		start := time.Now()
		m := newMerger(t, s, func(c *merge.Config) { c.CallTimeout = 2 * time.Second })
		wantAll(t, []merge.Outcome{m.MergeOne(t.Context(), event("e", "a"))}, merge.Counted)
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("took %v; two calls hang for 2 s each", took)
		}
		if total(s, "a") != 1 {
			t.Errorf("counted %d", total(s, "a"))
		}
	})
}

func TestP15_B1_15_EndOfTimeStopsTheWaitAndKeepsBothCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mergetest.New(t)
		s.Fault = always(mergetest.Commit, before)
		h := new(heard)
		m := newMerger(t, s, recordTo(h), func(c *merge.Config) {
			c.Sleep, c.Backoff, c.BackoffCap, c.Rand = nil, time.Hour, time.Hour, highestSource{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, cancel)
		outcome := m.MergeOne(ctx, event("e", "a"))
		if took := time.Since(start); took != time.Second {
			t.Errorf("went on for %v after the cancellation", took-time.Second)
		}
		wantIs(t, outcome.Err, context.Canceled)
		wantIs(t, outcome.Err, mergetest.ErrInjected)
		h.want(t, map[string]int{merge.MetricFailed: 1, merge.MetricRelease: 1}) // no retry, no dead letter
	})
}

func TestErrors_NamePayloadsAndIdentitiesNowhere(t *testing.T) {
	const secret = "card-4111"
	for _, method := range []mergetest.Method{mergetest.PutClaims, mergetest.Commit} {
		for _, f := range []mergetest.Fault{before, {Err: mergetest.ErrDenied}, {Panic: errors.New(secret)}} {
			s := mergetest.New(t)
			s.Fault = always(method, f)
			outcome := newMerger(t, s).MergeOne(t.Context(), event(secret, secret))
			if outcome.Err == nil || strings.Contains(outcome.Err.Error(), secret) {
				t.Errorf("%s: %v", method, outcome.Err)
			}
		}
	}
}
