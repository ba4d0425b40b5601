package wal

import (
	"context"
	"errors"
	"log"
	"time"
)

// Stats is one consistent picture of a Consumer.
type Stats struct {
	Delivered           uint64 // records that the sender took
	DeadLettered        uint64
	Discarded           uint64
	PermanentRejections uint64 // records disposed of, or kept by StopOnRejection: counted once each
	Failures            uint64 // sends and dispositions that failed
	Head                Position
	HeadSince           time.Time // when Head was first offered; zero while nothing is
	HeadAttempts        int       // how often offering it has failed
	Stalled             bool
}

// Stats returns one consistent picture of the consumer. It may be called at any time.
func (c *Consumer) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Run delivers until ctx ends, which it returns as ctx.Err(). A failed Send or dead-letter handler is told to
// OnInternalError and tried again, less and less often; any other error ends Run.
func (c *Consumer) Run(ctx context.Context) error {
	release, ok := c.cfg.Source.Consume()
	if !ok {
		return ErrRunning
	}
	defer release()
	delay := c.cfg.RetryDelay
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		mark, err := c.watermark(ctx)
		n := 0
		if err == nil {
			n, err = c.step(ctx, mark)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if n > 0 {
			delay = c.cfg.RetryDelay
		}
		switch {
		case err == nil && n == 0:
			delay = c.cfg.RetryDelay
			c.pause(ctx, c.cfg.IdleDelay)
		case err != nil && retryable(err):
			c.tell(err)
			c.checkStall()
			c.pause(ctx, delay/2+time.Duration(c.cfg.Rand(int64(delay-delay/2)+1)))
			delay = min(delay, c.cfg.MaxRetryDelay/2) * 2
			if delay == 0 {
				delay = c.cfg.MaxRetryDelay
			}
		case err != nil:
			return err
		}
	}
}

func (c *Consumer) pause(ctx context.Context, d time.Duration) { _ = c.cfg.Sleep(ctx, d) }

// checkStall tells once that the head does not get through.
func (c *Consumer) checkStall() {
	c.mu.Lock()
	s := &c.stats
	old := !s.HeadSince.IsZero() && c.cfg.Now().Round(0).Sub(s.HeadSince) >= c.cfg.StallAfter
	stalls := !s.Stalled && (old || s.HeadAttempts >= c.cfg.StallAttempts)
	s.Stalled = s.Stalled || stalls
	c.mu.Unlock()
	if stalls {
		c.tell(fault(ErrConsumerStalled, nil))
	}
}

// tell reports an error to whoever still listens.
func (c *Consumer) tell(err error) {
	if c.cfg.OnInternalError == nil {
		c.logf(err)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.logf(errors.Join(err, ErrPanic))
		}
	}()
	c.cfg.OnInternalError(err)
}

func (c *Consumer) logf(err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Printf("wal consumer: %v", err)
		}
	}()
	c.cfg.Logf("wal consumer: %v", err)
}

// sawHead notes which record is offered next. Ages are of the wall clock: the other one stops in a frozen process.
func (c *Consumer) sawHead(p Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.Head != p || c.stats.HeadSince.IsZero() {
		c.stats.Head, c.stats.HeadSince, c.stats.HeadAttempts, c.stats.Stalled = p, c.cfg.Now().Round(0), 0, false
	}
}

func (c *Consumer) failed(attempt bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Failures++
	if attempt {
		c.stats.HeadAttempts++
	}
}

func (c *Consumer) delivered(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Delivered += uint64(n)
	c.newHead()
}

func (c *Consumer) disposed(p Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.PermanentRejections++
	if p == DeadLetterRejected {
		c.stats.DeadLettered++
	} else {
		c.stats.Discarded++
	}
	c.newHead()
}

func (c *Consumer) newHead() {
	c.stats.Head, c.stats.HeadSince, c.stats.HeadAttempts, c.stats.Stalled = 0, time.Time{}, 0, false
}
