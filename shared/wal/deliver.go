package wal

import (
	"context"
	"errors"
	"fmt"
)

// Fault is an error of a Consumer: a sentinel, whose text it shows, and a cause, which it does not.
type Fault struct {
	Kind  error
	Cause error // may be nil
}

func (f *Fault) Error() string   { return "consume: " + f.Kind.Error() }
func (f *Fault) Unwrap() []error { return []error{f.Kind, f.Cause} }

func fault(kind, cause error) error { return &Fault{kind, cause} }

// retryable reports whether offering the same records again may help.
func retryable(err error) bool { return errors.Is(err, ErrSend) || errors.Is(err, ErrDeadLetter) }

// Next delivers at most one batch and returns how many records it has disposed of. An error may come with a number
// above 0: the records before the one that failed.
func (c *Consumer) Next(ctx context.Context) (int, error) {
	release, ok := c.cfg.Source.Consume()
	if !ok {
		return 0, ErrRunning
	}
	defer release()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	mark, err := c.watermark(ctx)
	if err != nil {
		return 0, err
	}
	return c.step(ctx, mark)
}

// Drain delivers all that was appended before the call, batch after batch, and returns at the first error with the
// number of records disposed of so far.
func (c *Consumer) Drain(ctx context.Context) (int, error) {
	release, ok := c.cfg.Source.Consume()
	if !ok {
		return 0, ErrRunning
	}
	defer release()
	mark, err := c.watermark(ctx)
	total := 0
	for err == nil {
		if err = ctx.Err(); err != nil {
			break
		}
		var n int
		n, err = c.step(ctx, mark)
		total += n
		if n == 0 {
			break
		}
	}
	return total, err
}

func (c *Consumer) watermark(ctx context.Context) (mark Position, err error) {
	defer contain("log", &err)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if mark, err = c.cfg.Source.Flush(ctx, c.durability); err != nil {
		return 0, c.orDone(ctx, fault(ErrLog, err))
	}
	return mark, nil
}

// orDone returns the context's own error where that is why err happened.
func (c *Consumer) orDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// step offers one batch of the records up to mark.
func (c *Consumer) step(ctx context.Context, mark Position) (int, error) {
	defer c.forget()
	oversized, err := c.gather(mark)
	switch {
	case err != nil:
		return 0, c.orDone(ctx, err)
	case oversized:
		c.sawHead(c.batch[0].Position)
		return c.dispose(ctx, c.batch[0], ErrBatchTooLarge, ErrBatchTooLarge)
	case len(c.batch) == 0:
		return 0, nil
	}
	c.sawHead(c.batch[0].Position)
	result, err := c.send(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.failed(errors.Is(err, ErrSend))
		}
		return 0, c.orDone(ctx, err)
	}
	accepted, err := c.check(result)
	if err != nil {
		c.failed(true)
		return 0, err
	}
	// Here the downstream has the prefix and the log still offers it. From now on the caller's cancellation must not
	// stop the acknowledgement half-way; a crash offers the same records again.
	ctx = context.WithoutCancel(ctx)
	if accepted > 0 {
		if err := c.acknowledge(ctx, result.Through); err != nil {
			return 0, err
		}
		c.delivered(accepted)
	}
	if result.Rejected == nil {
		return accepted, nil
	}
	n, err := c.dispose(ctx, c.batch[accepted], ErrPermanentRejection, result.Rejected.Reason)
	return accepted + n, err
}

// gather copies the next records into the consumer's own buffer. oversized says that the one record there is larger
// than a batch may be.
func (c *Consumer) gather(mark Position) (oversized bool, err error) {
	defer contain("log", &err)
	state := c.cfg.Source.State()
	if state.Truncated >= mark {
		return false, nil
	}
	offsets := make([]int, 0, 64)
	for r, err := range c.cfg.Source.Scan(state.Truncated+1, mark) {
		if err != nil {
			return false, fault(ErrLog, err)
		}
		large := int64(len(r.Data)) > c.cfg.MaxBytes
		if len(c.batch) > 0 && (large || int64(len(c.payload)+len(r.Data)) > c.cfg.MaxBytes) {
			break
		}
		offsets = append(offsets, len(c.payload))
		c.payload = append(c.payload, r.Data...)
		c.batch = append(c.batch, Record{Position: r.Position, ID: r.ID})
		if oversized = large; large || len(c.batch) == c.cfg.MaxBatch {
			break
		}
	}
	for i, from := range offsets {
		to := len(c.payload)
		if i+1 < len(offsets) {
			to = offsets[i+1]
		}
		c.batch[i].Data = c.payload[from:to:to]
	}
	if len(c.batch) > 0 {
		return oversized, nil
	}
	return false, c.nothing(mark)
}

// nothing decides what it means that no record is readable below the watermark.
func (c *Consumer) nothing(mark Position) error {
	state := c.cfg.Source.State()
	switch {
	case state.Truncated >= mark:
		return nil
	case state.Lost > 0: // all of them were damaged, which the log has told
		return c.acknowledge(context.Background(), mark)
	default:
		return fault(ErrLog, fmt.Errorf("records up to %d are flushed but none after %d is readable", mark, state.Truncated))
	}
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

func (c *Consumer) send(ctx context.Context) (r Result, err error) {
	defer contain("sender", &err)
	offered := make([]Record, len(c.batch)) // the sender may do with the slice as it likes
	copy(offered, c.batch)
	r, err = c.cfg.Sender.Send(ctx, offered)
	if err != nil {
		return Result{}, fault(ErrSend, err)
	}
	return r, nil
}

// check returns the length of the accepted prefix.
func (c *Consumer) check(r Result) (accepted int, err error) {
	for i := range c.batch {
		if c.batch[i].Position == r.Through {
			accepted = i + 1
		}
	}
	switch {
	case r.Through != 0 && accepted == 0:
		return 0, fault(ErrInvalidSendResult, fmt.Errorf("position %d was not offered", r.Through))
	case r.Rejected == nil && accepted == 0:
		return 0, fault(ErrInvalidSendResult, errors.New("neither a prefix nor a rejection, nor an error"))
	case r.Rejected != nil && (accepted == len(c.batch) || c.batch[accepted].Position != r.Rejected.Position):
		return 0, fault(ErrInvalidSendResult, fmt.Errorf("position %d is not the one behind the prefix", r.Rejected.Position))
	}
	return accepted, nil
}

func (c *Consumer) acknowledge(ctx context.Context, through Position) (err error) {
	defer contain("acknowledger", &err)
	if err := c.cfg.Acknowledger.Acknowledge(ctx, through, c.durability); err != nil {
		return fault(ErrAcknowledge, err)
	}
	return nil
}

// dispose does with a record that can never be delivered what the policy says.
func (c *Consumer) dispose(ctx context.Context, r Record, kind, reason error) (int, error) {
	switch c.cfg.Policy {
	case DeadLetterRejected:
		// Here the record may be in two places after a crash: the handler is called again with the same position and id.
		if err := c.deadLetter(ctx, r, reason); err != nil {
			c.failed(true)
			return 0, err
		}
	case DiscardRejected:
	default:
		c.failed(true)
		return 0, fault(kind, reason)
	}
	if err := c.acknowledge(ctx, r.Position); err != nil {
		return 0, fmt.Errorf("the record was disposed of: %w", err)
	}
	c.disposed(c.cfg.Policy)
	return 1, nil
}

func (c *Consumer) deadLetter(ctx context.Context, r Record, reason error) (err error) {
	defer contain("dead-letter handler", &err)
	if err := c.cfg.DeadLetter(ctx, r, reason); err != nil {
		return fault(ErrDeadLetter, err)
	}
	return nil
}

// contain turns a panic into an error that names the callback.
func contain(callback string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: %w", callback, fault(ErrPanic, fmt.Errorf("%v", p)))
	}
}
