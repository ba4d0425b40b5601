package wal

import (
	"context"
	"fmt"
)

// watermark returns the last position that may be offered.
func (c *Consumer) watermark(ctx context.Context) (mark Position, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = call("log", ErrLog, func() (err error) {
		mark, err = c.cfg.Source.Flush(ctx, c.durability)
		return err
	})
	if kindOf(err) == ErrLog && ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return mark, err
}

// gather copies the next records into the consumer's own buffer. oversized says that the one record there is larger
// than a batch may be.
func (c *Consumer) gather(ctx context.Context, mark Position) (oversized bool, err error) {
	err = call("log", ErrLog, func() error {
		c.passed(c.cfg.Source.State().Truncated)
		if c.acknowledged >= mark {
			return nil
		}
		for r, err := range c.cfg.Source.Scan(c.acknowledged+1, mark) {
			if err != nil {
				return err
			}
			large := int64(len(r.Data)) > c.cfg.MaxBytes
			if len(c.batch) > 0 && int64(len(c.payload)+len(r.Data)) > c.cfg.MaxBytes {
				return nil
			}
			c.payload = append(c.payload, r.Data...)
			c.batch = append(c.batch, r)
			if oversized = large; large || len(c.batch) == c.cfg.MaxBatch {
				return nil
			}
		}
		return nil
	})
	if err == nil && len(c.batch) == 0 && c.acknowledged < mark {
		err = c.passOver(ctx, mark)
	}
	rest := c.payload
	for i := range c.batch { // only now does the buffer stay where it is
		size := len(c.batch[i].Data)
		c.batch[i].Data, rest = rest[:size:size], rest[size:]
	}
	return oversized, err
}

// passOver decides what it means that no record is readable up to the watermark.
func (c *Consumer) passOver(ctx context.Context, mark Position) error {
	var state State
	err := call("log", ErrLog, func() error {
		state = c.cfg.Source.State()
		if state.Truncated < mark && state.Lost <= c.lost {
			return fmt.Errorf("records up to %d are flushed but none after %d is readable", mark, c.acknowledged)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if state.Truncated < mark { // all of them were damaged, which the log has told
		if err := c.acknowledge(ctx, mark, ErrLog); err != nil {
			return err
		}
		c.lost = state.Lost
	}
	c.passed(max(mark, state.Truncated))
	return nil
}

// keepPayload bounds what a consumer holds on to between batches.
const keepPayload = 1 << 20

// forget ends the loan of the batch: what a callee kept of it reads as zeroes.
func (c *Consumer) forget() {
	clear(c.payload)
	clear(c.batch)
	c.payload, c.batch = c.payload[:0], c.batch[:0]
	if cap(c.payload) > keepPayload {
		c.payload = nil
	}
}
