package wal

import (
	"context"
	"fmt"
)

// Range is the positions of one append call, first to last without a gap.
type Range struct{ First, Last Position }

// Append adds the entries as one frame: after a crash either all of them are there or none. It returns their positions
// once they have the durability d. Entries are copied before it returns. A full log answers ErrFull at once and goes on
// taking entries when Truncate has made room. ctx only bounds the waiting: when it ends while the entries are already
// with the disk, the error wraps ErrUncertain.
func (l *Log) Append(ctx context.Context, entries []Entry, d Durability) (Range, error) {
	if err := ctx.Err(); err != nil {
		return Range{}, fmt.Errorf("append: %w", err)
	}
	size, err := l.opts.sizeOf(entries)
	if err != nil || len(entries) == 0 {
		return Range{}, err
	}
	m := &member{kind: kindRecords, count: uint32(len(entries)), wake: make(chan verdict, 1)}
	err = l.submit(ctx, m, int64(size), d == Synced, func(buf []byte) []byte { return appendRecords(buf, entries) })
	if err != nil {
		return Range{}, fmt.Errorf("append: %w", err)
	}
	return m.got, nil
}

// Flush returns the last position that has the durability d, after making it so for every record appended before the
// call.
func (l *Log) Flush(ctx context.Context, d Durability) (Position, error) {
	if s := l.State(); d == Volatile || s.Synced == s.Written {
		if l.isClosed() {
			return 0, fmt.Errorf("flush: %w", ErrClosed)
		}
		return s.Written, nil
	}
	m := &member{wake: make(chan verdict, 1)}
	if err := l.submit(ctx, m, 0, true, nil); err != nil {
		return 0, fmt.Errorf("flush: %w", err)
	}
	return m.got.Last, nil
}

// Truncate gives up the records up to and including through, which need not exist. With Synced a crash does not bring
// them back; with Volatile it may. Whole segments are deleted only once their truncation is on disk.
func (l *Log) Truncate(ctx context.Context, through Position, d Durability) error {
	s := l.State()
	if through > s.Written {
		return fmt.Errorf("truncate through %d: the last record is %d; truncate only what was appended", through, s.Written)
	}
	m := &member{kind: kindTruncate, through: through, wake: make(chan verdict, 1)}
	fill, size := appendTruncate, int64(truncateSize)
	if through <= s.Truncated {
		if l.isClosed() {
			return fmt.Errorf("truncate: %w", ErrClosed)
		}
		if d == Volatile || through <= l.keptTruncation() {
			return nil
		}
		m.kind, fill, size = 0, nil, 0 // an earlier frame says so, but may not be on disk
	}
	if err := l.submit(ctx, m, size, d == Synced, fill); err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	return nil
}

// keptTruncation is how far a truncation is known to be on disk.
func (l *Log) keptTruncation() Position {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.kept
}

func (l *Log) isClosed() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.closed
}
