package wal

import (
	"context"
	"log"
	"time"
)

// Next delivers at most one batch and returns how many records it has disposed of. An error may come with a number
// above 0: the records before the one that failed.
func (c *Consumer) Next(ctx context.Context) (n int, err error) {
	err = c.alone(ctx, func() (err error) {
		n, err = c.turn(ctx)
		return err
	})
	return n, err
}

// Drain delivers all that was appended before the call, batch after batch, and returns at the first error with the
// number of records disposed of so far. What is appended meanwhile is left for the next call.
func (c *Consumer) Drain(ctx context.Context) (total int, err error) {
	err = c.alone(ctx, func() error {
		mark, err := c.watermark(ctx)
		for first := true; err == nil && (first || c.acknowledged < mark); first = false {
			if err = ctx.Err(); err != nil {
				break
			}
			var n int
			n, err = c.step(ctx, mark)
			total += n
		}
		return err
	})
	return total, err
}

// Run delivers until ctx ends, which it returns as ctx.Err(). A failed Send or dead-letter handler is told to
// OnInternalError and tried again, less and less often; any other error ends Run.
func (c *Consumer) Run(ctx context.Context) error {
	return c.alone(ctx, func() error {
		delay := c.cfg.RetryDelay
		for {
			n, err := c.turn(ctx)
			if n > 0 || err == nil {
				delay = c.cfg.RetryDelay
			}
			switch {
			case err == nil && n == 0:
				err = c.pause(ctx, c.cfg.IdleDelay, false)
			case kindOf(err) == ErrSend || kindOf(err) == ErrDeadLetter:
				c.tell(err)
				err = c.pause(ctx, delay, true)
				delay = doubled(delay, c.cfg.MaxRetryDelay)
			}
			if err != nil {
				return err
			}
		}
	})
}

// alone runs f as the log's only consumer. The lock is the log's, so that two consumers of one log exclude each other.
func (c *Consumer) alone(ctx context.Context, f func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var release func()
	var ok bool
	if err := call("log", ErrLog, func() error {
		release, ok = c.cfg.Source.Consume()
		return nil
	}); err != nil {
		return err
	}
	if !ok {
		return ErrRunning
	}
	defer func() {
		fault := call("log", ErrLog, func() error {
			release()
			return nil
		})
		if kindOf(err) == nil && fault != nil { // nothing or the end of ctx
			err = fault
		}
	}()
	return f()
}

// turn is one batch under a watermark of its own.
func (c *Consumer) turn(ctx context.Context) (int, error) {
	mark, err := c.watermark(ctx)
	if err != nil {
		return 0, err
	}
	return c.step(ctx, mark)
}

// pause sleeps for d, or until ctx ends, which is no fault. Jitter makes it any time from a half of d to the whole.
func (c *Consumer) pause(ctx context.Context, d time.Duration, jitter bool) error {
	if jitter {
		err := call("Rand", ErrPanic, func() error {
			d = d/2 + time.Duration(c.cfg.Rand(int64(d-d/2)+1))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return call("Sleep", ErrPanic, func() error {
		_ = c.cfg.Sleep(ctx, d)
		return nil
	})
}

// doubled is twice d, at most limit.
func doubled(d, limit time.Duration) time.Duration {
	if d > limit/2 {
		return limit
	}
	return 2 * d
}

// tell reports an error to whoever still listens.
func (c *Consumer) tell(err error) {
	report := func(callback string, f func()) bool {
		return call(callback, ErrPanic, func() error {
			f()
			return nil
		}) == nil
	}
	if c.cfg.OnInternalError != nil && report("OnInternalError", func() { c.cfg.OnInternalError(err) }) {
		return
	}
	if !report("Logf", func() { c.cfg.Logf("wal consumer: %v", err) }) {
		log.Printf("wal consumer: %v", err)
	}
}
