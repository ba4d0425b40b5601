package wal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
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

// ledger is a downstream that keeps, in one transaction, what it was sent and how far that goes. It is the Sender and
// the Acknowledger: its own mark is the true one, and the log's truncation only follows.
type ledger struct {
	log    *wal.Log
	rows   []string
	cursor wal.Position
	naive  bool                    // keeps no cursor
	point  func(committed *ledger) // is called wherever a crash would make a difference
}

func (b *ledger) Supports(wal.Durability) bool { return true }

func (b *ledger) Send(_ context.Context, records []wal.Record) (wal.Result, error) {
	b.point(b)
	for _, r := range records[:1+len(records)/2] {
		if r.Position > b.cursor || b.naive {
			b.rows, b.cursor = append(b.rows, r.ID), r.Position
		}
	}
	b.point(b) // accepted, and the log still offers it
	return wal.Result{Through: records[len(records)/2].Position}, nil
}

func (b *ledger) Acknowledge(ctx context.Context, through wal.Position, d wal.Durability) error {
	b.point(b)
	defer b.point(b)
	return b.log.Truncate(ctx, through, d)
}

// resume opens the log and gives up what the ledger already has.
func (b *ledger) resume(t *testing.T, disk *waltest.Disk) {
	b.log = mustOpen(t, small(disk))
	if b.naive {
		b.cursor = 0
		return
	}
	if err := b.log.Truncate(t.Context(), min(b.cursor, b.log.State().Written), wal.Volatile); err != nil {
		t.Fatal(err)
	}
}

func (b *ledger) drain(t *testing.T, g wal.Guarantee) error {
	c := mustConsume(t, wal.ConsumerConfig{Source: b.log, Sender: b, Acknowledger: b, Guarantee: g, MaxBatch: 3})
	_, err := c.Drain(t.Context())
	return err
}

// crashed lives once up to the given point, loses its host or only its process there, and lives on to the end. more
// tells whether the first life had that many points.
func crashed(t *testing.T, g wal.Guarantee, naive bool, point int, rng *rand.Rand) (b *ledger, more bool) {
	t.Helper()
	disk, d := waltest.New(), wal.Synced
	if g == wal.ProcessLifetime {
		d = wal.Volatile
	}
	var left *waltest.Disk
	var kept ledger
	first := &ledger{naive: naive, point: func(now *ledger) {
		if point--; point != 0 {
			return
		}
		if kept = *now; rng == nil {
			left = disk.Kill()
		} else {
			left = disk.Crash(rng)
		}
		kept.rows = slices.Clone(kept.rows)
	}}
	first.resume(t, disk)
	for i := range 8 {
		mustAppend(t, first.log, fmt.Sprint("a", i), 10, d)
	}
	if err := first.drain(t, g); err != nil {
		t.Fatal(err)
	}
	if left == nil {
		return first, false
	}
	kept.point = func(*ledger) {}
	kept.resume(t, left)
	for i := range 5 {
		mustAppend(t, kept.log, fmt.Sprint("b", i), 10, d)
	}
	if err := kept.drain(t, g); err != nil {
		t.Fatal(err)
	}
	return &kept, true
}

func wantRows(written ...int) (rows []string) {
	for i, n := range written {
		for j := range n {
			rows = append(rows, fmt.Sprintf("%c%d", 'a'+i, j))
		}
	}
	return rows
}

// TestE17_CursorDeliversExactlyOnce crashes at every point at which downstream and log may differ. With what is synced,
// every record is delivered once. With what is only written, the host takes its last records along, but none is
// delivered twice and none that comes later is mistaken for an old one.
func TestE17_CursorDeliversExactlyOnce(t *testing.T) {
	t.Parallel()
	points, naiveTwice := 0, 0
	for seed := range uint64(6) {
		crash := func() *rand.Rand {
			if seed == 0 {
				return nil // only the process ends
			}
			return rand.New(rand.NewPCG(seed, 17))
		}
		for point := 1; ; point++ {
			b, more := crashed(t, wal.CrashPersistent, false, point, crash())
			if !more {
				break
			}
			points++
			if want := wantRows(8, 5); !slices.Equal(b.rows, want) {
				t.Fatalf("crash %d at point %d: %q, want %q", seed, point, b.rows, want)
			}
			b, _ = crashed(t, wal.ProcessLifetime, false, point, crash())
			if rows := slices.Compact(slices.Sorted(slices.Values(b.rows))); len(rows) != len(b.rows) ||
				!slices.Equal(b.rows[len(b.rows)-5:], wantRows(0, 5)) {
				t.Fatalf("unsynced, crash %d at point %d: %q", seed, point, b.rows)
			}
			if seed == 0 && !slices.Equal(b.rows, wantRows(8, 5)) {
				t.Fatalf("unsynced, killed at point %d: %q", point, b.rows)
			}
			if b, _ = crashed(t, wal.CrashPersistent, true, point, crash()); len(b.rows) > 13 {
				naiveTwice++
			}
		}
	}
	if points < 6*4*4 || naiveTwice < 6 {
		t.Errorf("%d points; without a cursor %d of them delivered twice: the test sees too little", points, naiveTwice)
	}
}

// TestE17_DeadDisk: the disk stops at any operation of a drain, and later the process with it.
func TestE17_DeadDisk(t *testing.T) {
	t.Parallel()
	for seed := uint64(0); ; seed++ {
		disk := waltest.New()
		b := &ledger{point: func(*ledger) {}}
		b.resume(t, disk)
		for i := range 8 {
			mustAppend(t, b.log, fmt.Sprint("a", i), 10, wal.Synced)
		}
		left := int(seed)
		disk.Fail(func(waltest.Op, string) error {
			if left--; left < 0 {
				return errBroken
			}
			return nil
		})
		err := b.drain(t, wal.CrashPersistent)
		disk.Fail(nil)
		b.resume(t, disk.Crash(rand.New(rand.NewPCG(seed, 18))))
		for i := range 5 {
			mustAppend(t, b.log, fmt.Sprint("b", i), 10, wal.Synced)
		}
		if err := b.drain(t, wal.CrashPersistent); err != nil {
			t.Fatal(err)
		}
		if want := wantRows(8, 5); !slices.Equal(b.rows, want) {
			t.Fatalf("stopped at operation %d (%v): %q, want %q", seed, err, b.rows, want)
		}
		if err == nil {
			if seed < 8 {
				t.Errorf("the drain had only %d operations", seed)
			}
			return
		}
	}
}
