package merge

import (
	"context"
	"errors"
	"time"
)

// Cache is told what each counter gained, after that is durable. It is never read, and never authoritative: what it
// does or fails to do changes no outcome.
type Cache interface {
	// Gain adds each delta to its cell; slots have no meaning here. It must not change or keep adds. The error is
	// recorded, and the call is not tried again.
	Gain(ctx context.Context, adds []SlottedAdd) error
}

var errCacheBusy = errors.New("earlier calls of the cache have not ended; make it obey its context")

// cache passes durable totals on, for as long as CacheWait and the time before the deadline allow.
func (c *call) cache(ctx context.Context, adds []SlottedAdd) {
	if c.m.cfg.Cache == nil || len(adds) == 0 {
		return
	}
	start := time.Now()
	err := errCacheBusy
	select {
	case c.m.gains <- struct{}{}:
		wait := min(c.m.cfg.CacheWait, time.Until(c.times.release))
		_, err = bounded(context.WithoutCancel(ctx), wait, 0, func(ctx context.Context) (struct{}, error) {
			defer func() { <-c.m.gains }()
			return struct{}{}, c.m.cfg.Cache.Gain(ctx, adds)
		})
	default:
	}
	c.m.observe(TimeCacheMerge, time.Since(start))
	if err != nil {
		c.m.record(MetricCacheFailed, len(adds), err)
	}
}
