package merge

import (
	"context"
	"time"
)

const (
	releaseBase      = 5 * time.Second
	releaseStep      = 20 * time.Millisecond // for each releaseWidth claims
	releaseWidth     = 16
	maxReleaseBudget = 30 * time.Second

	maxMargin = 250 * time.Millisecond

	// maxLease is the longest that an attempt is left alone, whatever its deadline: the longest that Lambda lets a
	// function run. A row that says more was written by a clock that is wrong by at least leaseDoubt.
	maxLease   = 15 * time.Minute
	leaseDoubt = time.Minute
)

// releaseBudget is the most time that giving n claims back may take: 5 s, and 20 ms for each 16 claims begun, up to
// 30 s.
func releaseBudget(n int) time.Duration {
	if n <= 0 {
		return releaseBase
	}
	steps := (n-1)/releaseWidth + 1
	if steps >= int((maxReleaseBudget-releaseBase)/releaseStep) {
		return maxReleaseBudget
	}
	return releaseBase + time.Duration(steps)*releaseStep
}

// times divides what is left of an invocation:
//
//	now                          work            release      end
//	 | claims, takeovers, commits | aborts, giving | margin:    | deadline
//	 |                            | claims back    | the answer |
//
// The margin is 250 ms, or a tenth of what is left if that is less. The time kept for release is releaseBudget, or a
// quarter of what is left if that is less: a short deadline leaves most of its time for work.
type times struct {
	work, release, end time.Time
	grace              time.Duration // for a call that ends a little after its context
}

// divide reports false if no time is left at all.
func (m *Merger) divide(ctx context.Context, events int) (times, bool) {
	now := time.Now() // deadlines of contexts are told by this clock, not by Config.Now
	end, ok := ctx.Deadline()
	if !ok {
		end = now.Add(m.cfg.Timeout)
	}
	left := end.Sub(now)
	if left <= 0 || ctx.Err() != nil {
		return times{}, false
	}
	margin := min(maxMargin, left/10)
	reserve := min(releaseBudget(events), m.cfg.ReserveRelease, left/4)
	return times{
		work: end.Add(-margin - reserve), release: end.Add(-margin), end: end, grace: margin / 2,
	}, true
}

// lease returns until when, by Config.Now, an attempt that starts now may be at work.
func (c *call) lease() time.Time {
	left := min(time.Until(c.times.end), maxLease)
	return c.m.cfg.Now().Add(left + c.m.cfg.LeaseMargin)
}

// leaseOver reports whether an attempt with this lease need not be waited for.
func (m *Merger) leaseOver(lease, now time.Time) bool {
	return !now.Before(lease) || lease.Sub(now) > maxLease+m.cfg.LeaseMargin+leaseDoubt
}
