package merge_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"

	"context"

	"pgregory.net/rapid"
)

func TestP17_ReleaseBudget(t *testing.T) {
	ms := time.Millisecond
	for n, want := range map[int]time.Duration{
		math.MinInt: 5000 * ms, -1: 5000 * ms, 0: 5000 * ms, 1: 5020 * ms, 16: 5020 * ms, 17: 5040 * ms, 1600: 7000 * ms,
		19984: 29980 * ms, 19985: 30000 * ms, 20000: 30000 * ms, math.MaxInt: 30000 * ms,
	} {
		if got := merge.ReleaseBudget(n); got != want {
			t.Errorf("budget(%d) = %v, want %v", n, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := int(anyInt64().Draw(t, "n"))
		b := merge.ReleaseBudget(n)
		if b < 5*time.Second || b > 30*time.Second || n < math.MaxInt && merge.ReleaseBudget(n+1) < b {
			t.Fatalf("budget(%d) = %v", n, b)
		}
	})
}

// leases returns the lease of the claim that a merge under ctx writes, from the time at which it starts.
func leaseUnder(t *testing.T, ctx context.Context, change ...func(*merge.Config)) (time.Duration, merge.Claim) {
	t.Helper()
	s := mergetest.New(t)
	start := s.Now()
	newMerger(t, s, change...).MergeOne(ctx, event("e", "a"))
	claim := s.Snapshot().Claims["e"]
	return claim.Lease.Sub(start), claim
}

func TestA2_LeaseEndsAMarginAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if lease, _ := leaseUnder(t, ctx); lease != time.Minute+merge.DefaultLeaseMargin {
			t.Errorf("lease of %v under a deadline in 1m", lease)
		}
	})
}

func TestA2_WithoutADeadlineTheLeaseIsFinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, claim := leaseUnder(t, context.Background())
		if lease != merge.DefaultTimeout+merge.DefaultLeaseMargin {
			t.Errorf("lease of %v", lease)
		}
		if left := claim.Expires.Sub(claim.Lease); left < 30*24*time.Hour {
			t.Errorf("the claim expires %v after its lease; it must remember the identity for the horizon", left)
		}
	})
}

func TestA2_LeaseIsBoundWhateverTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
		defer cancel()
		lease, claim := leaseUnder(t, ctx, func(c *merge.Config) { c.Horizon = merge.MinHorizon })
		if lease != 15*time.Minute+merge.DefaultLeaseMargin || claim.Expires.Before(claim.Lease) {
			t.Errorf("lease of %v; expires %v later", lease, claim.Expires.Sub(claim.Lease))
		}
	})
}

func TestA2_B1_18_NoTimeLeftWritesNoClaim(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	over, cancelOver := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelOver()
	for name, ctx := range map[string]context.Context{"cancelled": gone, "deadline passed": over} {
		s, h := mergetest.New(t), new(heard)
		outcomes := newMerger(t, s, recordTo(h)).MergeMany(ctx, numbered(3))
		wantAll(t, outcomes, merge.Failed)
		wantIs(t, outcomes[0].Err, merge.ErrNoTime)
		wantIs(t, outcomes[0].Err, ctx.Err())
		if len(s.Snapshot().Claims) > 0 || s.Calls(mergetest.PutClaims) > 0 {
			t.Errorf("%s: claims were written", name)
		}
		h.want(t, map[string]int{merge.MetricFailed: 3})
	}
}
