package wal_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

// TestLog_SixtyFourWritersBesideReadersAndTruncation: no record is lost or seen twice, and each writer finds its own in
// its order, while the disk fails now and then, so that segments are moved on under the readers.
func TestLog_SixtyFourWritersBesideReadersAndTruncation(t *testing.T) {
	disk := waltest.New()
	var ops atomic.Int64
	disk.Fail(func(op waltest.Op, _ string) error {
		if n := ops.Add(1); op == waltest.Sync && n%97 == 0 {
			return errors.New("now and then")
		}
		return nil
	})
	o := wal.Options{FS: disk, SegmentBytes: 64 << 10, MaxBytes: 1 << 20}
	o.OnDamage = func(d wal.Damage) { t.Errorf("told of damage: %v", d) }
	l := mustOpen(t, o)
	const writers, each = 64, 30
	var busy, others sync.WaitGroup
	var mu sync.Mutex
	acked := map[wal.Position]string{}
	for w := range writers {
		busy.Go(func() {
			last := wal.Position(0)
			for i := 0; i < each; {
				id := fmt.Sprintf("%d %d", w, i)
				got, err := l.Append(t.Context(), []wal.Entry{{ID: id, Data: make([]byte, 100+w)}}, wal.Durability(i%3/2))
				switch {
				case errors.Is(err, wal.ErrUncertain):
					t.Errorf("append %s: %v", id, err) // cutting and sealing never fail here for long
				case errors.Is(err, wal.ErrDisk), errors.Is(err, wal.ErrFull):
					continue
				case err != nil:
					t.Error(err)
				case got.First <= last || got.First != got.Last:
					t.Errorf("writer %d was told %+v after %d", w, got, last)
				}
				last = got.Last
				mu.Lock()
				if other := acked[got.First]; other != "" {
					t.Errorf("position %d belongs to %s and %s", got.First, other, id)
				}
				acked[got.First] = id
				mu.Unlock()
				i++
			}
		})
	}
	stop := make(chan struct{})
	loop := func(f func()) {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	seen := map[wal.Position]string{}
	scan := func() { // the only one that truncates, and only what it has seen
		through := wal.Position(0)
		for r, err := range l.Scan(1, ^wal.Position(0)) {
			if err != nil {
				t.Error(err)
			}
			if other, twice := seen[r.Position]; twice && other != r.ID || r.Position <= through {
				t.Errorf("position %d after %d: %s and %s", r.Position, through, other, r.ID)
			}
			seen[r.Position], through = r.ID, r.Position
		}
		if err := l.Truncate(t.Context(), through, wal.Durability(len(seen)%2)); err != nil && !errors.Is(err, wal.ErrDisk) {
			t.Error(err)
		}
	}
	loop(scan)
	loop(func() {
		for _, err := range l.Scan(1, ^wal.Position(0)) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	loop(func() { _, _ = l.Flush(t.Context(), wal.Synced) })
	loop(func() {
		if s := l.State(); s.Synced > s.Written || s.Bytes > s.MaxBytes || s.Truncated > s.Written {
			t.Errorf("%+v", s)
		}
	})
	busy.Wait()
	close(stop)
	others.Wait()
	disk.Fail(nil)
	scan()
	if len(acked) != writers*each {
		t.Fatalf("%d records acknowledged", len(acked))
	}
	for p, id := range acked {
		if seen[p] != id {
			t.Fatalf("record %s at %d was read as %q", id, p, seen[p])
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
