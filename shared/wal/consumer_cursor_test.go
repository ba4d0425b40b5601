package wal_test

import (
	"context"

	"abacus/shared/wal"
)

// cursor is an Acknowledger whose mark is not in the log.
type cursor struct {
	through    wal.Position
	durability wal.Durability
	lacks      wal.Durability
	err        error
}

func (c *cursor) Supports(d wal.Durability) bool { return d != c.lacks }

func (c *cursor) Acknowledge(ctx context.Context, through wal.Position, d wal.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.err == nil {
		c.through, c.durability = through, d
	}
	return c.err
}
