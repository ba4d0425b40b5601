package wal

import (
	"context"
	"errors"
	"fmt"
)

// step offers one batch of the records up to mark. Without an error it has made progress, or there is nothing left.
func (c *Consumer) step(ctx context.Context, mark Position) (n int, err error) {
	defer c.forget()
	oversized, err := c.gather(ctx, mark)
	if err != nil || len(c.batch) == 0 {
		return 0, err
	}
	if err := c.sawHead(c.batch[0].Position); err != nil {
		return 0, err
	}
	if oversized {
		n, err = c.dispose(ctx, c.batch[0], ErrBatchTooLarge, ErrBatchTooLarge)
	} else {
		n, err = c.offer(ctx)
	}
	if kindOf(err) != nil { // otherwise the caller has given up, which is nobody's failure
		c.failed()
	}
	if fault := c.checkStall(); fault != nil {
		err = errors.Join(err, fault)
	}
	return n, err
}

// offer sends the batch and does with it what the sender says.
func (c *Consumer) offer(ctx context.Context) (int, error) {
	offered := append([]Record(nil), c.batch...) // the sender may do with the slice as it likes
	var result Result
	err := call("sender", ErrSend, func() (err error) {
		result, err = c.cfg.Sender.Send(ctx, offered)
		return err
	})
	switch {
	case kindOf(err) == ErrSend && ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, err
	}
	accepted, err := c.check(result)
	if err != nil {
		return 0, &Fault{Kind: ErrInvalidSendResult, Cause: err}
	}
	// Here the downstream has the prefix and the log still offers it: a crash offers the same records again.
	if accepted > 0 {
		if err := c.acknowledge(ctx, result.Through, ErrAcknowledge); err != nil {
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

// check returns the length of the accepted prefix.
func (c *Consumer) check(r Result) (accepted int, err error) {
	for i := range c.batch {
		if c.batch[i].Position == r.Through {
			accepted = i + 1
		}
	}
	switch {
	case r.Through != 0 && accepted == 0:
		return 0, fmt.Errorf("position %d was not offered", r.Through)
	case r.Rejected == nil && accepted == 0:
		return 0, errors.New("neither a prefix nor a rejection, nor an error")
	case r.Rejected != nil && (accepted == len(c.batch) || c.batch[accepted].Position != r.Rejected.Position):
		return 0, fmt.Errorf("position %d is not the one behind the prefix", r.Rejected.Position)
	}
	return accepted, nil
}

// dispose does with a record that can never be delivered what the policy says.
func (c *Consumer) dispose(ctx context.Context, r Record, kind, reason error) (int, error) {
	if err := c.sawHead(r.Position); err != nil {
		return 0, err
	}
	c.rejected(r.Position)
	switch c.cfg.Policy {
	case DeadLetterRejected:
		if reason == nil {
			reason = kind
		}
		err := c.settle(ctx, "dead-letter handler", ErrDeadLetter, func(ctx context.Context) error {
			return c.cfg.DeadLetter(ctx, r, reason)
		})
		if err != nil {
			return 0, err
		}
		// Here the record is in two places: after a crash the handler is called again with the same position and id.
	case DiscardRejected:
	default:
		return 0, &Fault{Kind: kind, Cause: reason}
	}
	if err := c.acknowledge(ctx, r.Position, ErrDisposed); err != nil {
		return 0, err
	}
	c.disposed()
	return 1, nil
}

// acknowledge gives up the records up to through.
func (c *Consumer) acknowledge(ctx context.Context, through Position, kind error) error {
	err := c.settle(ctx, "acknowledger", kind, func(ctx context.Context) error {
		return c.cfg.Acknowledger.Acknowledge(ctx, through, c.durability)
	})
	if err == nil {
		c.acknowledged = through
	}
	return err
}

// settle calls what must not be stopped half-way by the end of ctx, and gives it a time of its own.
func (c *Consumer) settle(ctx context.Context, callback string, kind error, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.SettleTimeout)
	defer cancel()
	return call(callback, kind, func() error { return f(ctx) })
}
