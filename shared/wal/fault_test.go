package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

// failing makes the next times operations of that kind fail.
func failing(disk *waltest.Disk, op waltest.Op, times int) {
	disk.Fail(func(o waltest.Op, _ string) error {
		if o == op && times > 0 {
			times--
			return errors.New("it is broken")
		}
		return nil
	})
}

// wantAfter shows what is in the log now, after a kill and after the loss of the host's power.
func wantAfter(t *testing.T, l *wal.Log, disk *waltest.Disk, want ...string) {
	t.Helper()
	if got := ids(t, l); !slices.Equal(got, want) {
		t.Fatalf("the log holds %q, want %q", got, want)
	}
	if got := ids(t, mustOpen(t, small(disk.Kill()))); !slices.Equal(got, want) {
		t.Fatalf("after a kill the log holds %q, want %q", got, want)
	}
	for seed := range uint64(40) {
		l := mustOpen(t, small(disk.Crash(rand.New(rand.NewPCG(seed, 1)))))
		if got := ids(t, l); !slices.Equal(got, want) {
			t.Fatalf("after crash %d the log holds %q, want %q", seed, got, want)
		}
	}
}

func refused(t *testing.T, l *wal.Log, id string, d wal.Durability) error {
	t.Helper()
	_, err := l.Append(t.Context(), []wal.Entry{{ID: id, Data: make([]byte, 300)}}, d)
	if !errors.Is(err, wal.ErrDisk) {
		t.Fatalf("append %s: %v, want it refused by the disk", id, err)
	}
	return err
}

func TestG4_DiskFullAtEveryByteOfAnAppend(t *testing.T) {
	for _, d := range []wal.Durability{wal.Volatile, wal.Synced} {
		for n := range int64(24 + 3 + 1 + 300) {
			disk := waltest.New()
			l := mustOpen(t, small(disk))
			mustAppend(t, l, "before", 10, wal.Synced)
			disk.Limit(n)
			err := refused(t, l, "a", d)
			if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, wal.ErrUncertain) {
				t.Fatalf("full after %d bytes: %v", n, err)
			}
			disk.Limit(-1)
			mustAppend(t, l, "x", 10, wal.Volatile)
			mustAppend(t, l, "y", 400, wal.Synced)
			if n%20 == 0 {
				wantAfter(t, l, disk, "before", "x", "y")
			} else if got := ids(t, mustOpen(t, small(disk.Kill()))); !slices.Equal(got, []string{"before", "x", "y"}) {
				t.Fatalf("full after %d bytes: %q after reopening", n, got)
			}
		}
	}
}

// TestG4_WholeFrameOfAFailedGroupStaysAway: two callers share a write that ends between their frames. The first frame
// is whole on disk, and its caller was told that it failed.
func TestG4_WholeFrameOfAFailedGroupStaysAway(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	mustAppend(t, l, "before", 10, wal.Synced)
	disk.Limit(24 + 3 + 1 + 300 + 50)
	entry := func(id string) []wal.Entry { return []wal.Entry{{ID: id, Data: make([]byte, 300)}} }
	_, errs := l.AppendTogether(t.Context(), [][]wal.Entry{entry("a"), entry("b")}, wal.Volatile)
	for _, err := range errs {
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, wal.ErrUncertain) {
			t.Fatalf("append: %v", err)
		}
	}
	disk.Limit(-1)
	wantAfter(t, l, disk, "before")
}

func TestG4_FailedSyncIsToldAndSealsTheSegment(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	mustAppend(t, l, "s", 10, wal.Synced)
	mustAppend(t, l, "v", 10, wal.Volatile)
	failing(disk, waltest.Sync, 1)
	if err := refused(t, l, "a", wal.Synced); errors.Is(err, wal.ErrUncertain) {
		t.Fatalf("the segment was given up, so nothing is uncertain: %v", err)
	}
	if s := l.State(); s.Segments != 2 || s.Synced != s.Written {
		t.Fatalf("the failed segment is not sealed: %+v", s)
	}
	wantAfter(t, l, disk, "s", "v")
	mustAppend(t, l, "x", 10, wal.Synced)
	wantAfter(t, l, disk, "s", "v", "x")
}

// TestG4_UncertainOnlyWhenNeitherCutNorSealWorked walks through what may fail on top of a failed write or sync.
func TestG4_UncertainOnlyWhenNeitherCutNorSealWorked(t *testing.T) {
	for _, c := range []struct {
		name      string
		broken    []waltest.Op
		uncertain bool
	}{
		{"write", []waltest.Op{waltest.Write}, false},
		{"write and cut", []waltest.Op{waltest.Write, waltest.Cut}, true},
		{"sync", []waltest.Op{waltest.Sync}, true},
		{"sync and cut", []waltest.Op{waltest.Sync, waltest.Cut}, true},
		{"sync and create", []waltest.Op{waltest.Sync, waltest.Create}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := waltest.New()
			l := mustOpen(t, small(disk))
			mustAppend(t, l, "s", 10, wal.Synced)
			disk.Fail(func(op waltest.Op, _ string) error {
				if slices.Contains(c.broken, op) {
					return errors.New("it is broken")
				}
				return nil
			})
			if err := refused(t, l, "a", wal.Synced); errors.Is(err, wal.ErrUncertain) != c.uncertain {
				t.Fatalf("%v, uncertain: want %t", err, c.uncertain)
			}
			// Still broken: nothing was written for this one, so its fate is known.
			if err := refused(t, l, "b", wal.Synced); c.uncertain && errors.Is(err, wal.ErrUncertain) {
				t.Fatalf("an append that never reached the disk: %v", err)
			}
			disk.Fail(nil)
			mustAppend(t, l, "x", 10, wal.Synced)
			wantAfter(t, l, disk, "s", "x")
		})
	}
}

// TestG4_SegmentBegunInVainVoidsNothing fails the beginning of a segment after its file has its name, and then appends
// what still fits the old one: a crash may leave the new name, and it must not pass for the newest segment.
func TestG4_SegmentBegunInVainVoidsNothing(t *testing.T) {
	for _, op := range []waltest.Op{waltest.Rename, waltest.SyncDir, waltest.Create} {
		disk := waltest.New()
		l := mustOpen(t, small(disk))
		var want []string
		for i := range 4 {
			want = append(want, fmt.Sprint(i))
			mustAppend(t, l, want[i], 15_000, wal.Synced)
		}
		failing(disk, op, 1)
		if _, err := l.Append(t.Context(), []wal.Entry{{ID: "a", Data: make([]byte, 15_000)}}, wal.Synced); !errors.Is(err, wal.ErrDisk) {
			t.Fatalf("append while %s fails: %v", op, err)
		}
		mustAppend(t, l, "small", 10, wal.Synced)
		wantAfter(t, l, disk, append(want, "small")...)
	}
}

// TestG4_WhatCouldNotBeCutOffIsVoid: the sync fails, and so does every cut; the bytes stay, and the new segment voids
// them.
func TestG4_WhatCouldNotBeCutOffIsVoid(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	mustAppend(t, l, "s", 10, wal.Synced)
	synced := false
	disk.Fail(func(op waltest.Op, _ string) error {
		if op == waltest.Cut || op == waltest.Sync && !synced {
			synced = synced || op == waltest.Sync
			return errors.New("it is broken")
		}
		return nil
	})
	if err := refused(t, l, "a", wal.Synced); errors.Is(err, wal.ErrUncertain) {
		t.Fatal(err)
	}
	if end := 1024 + 24 + 3 + 1 + 10; bytes.Count(disk.Bytes(segment(1))[end:], []byte{0xA7}) == 0 {
		t.Fatal("the refused frame is not in the old segment: this test shows nothing")
	}
	wantAfter(t, l, disk, "s")
	mustAppend(t, l, "x", 10, wal.Synced)
	wantAfter(t, l, disk, "s", "x")
}

// TestScan_OfASegmentThatIsMovedOnMeanwhileIsNoDamage fails a sync while a scan is in the middle of the segment, so that
// its unsynced records move to another.
func TestScan_OfASegmentThatIsMovedOnMeanwhileIsNoDamage(t *testing.T) {
	disk := waltest.New()
	o := wal.Options{FS: disk, SegmentBytes: 8 << 20}
	o.OnDamage = func(d wal.Damage) { t.Errorf("told of damage: %v", d) }
	l := mustOpen(t, o)
	mustAppend(t, l, "0", 10, wal.Synced)
	want := []string{"0"}
	for i := 1; i < 10; i++ {
		want = append(want, fmt.Sprint(i))
		mustAppend(t, l, want[i], 200_000, wal.Volatile)
	}
	var found []string
	for r, err := range l.Scan(1, 100) {
		if err != nil {
			t.Fatal(err)
		}
		if found = append(found, r.ID); len(found) == 3 {
			failing(disk, waltest.Sync, 1)
			refused(t, l, "a", wal.Synced)
		}
	}
	if !slices.Equal(found, want) {
		t.Fatalf("%q, want %q", found, want)
	}
}

// TestG4_FailedSyncOfManySegmentsMovesAllThatWasAcknowledged: the sync of sealed segments is put off; when it fails at
// last, everything since the last good one moves.
func TestG4_FailedSyncOfManySegmentsMovesAllThatWasAcknowledged(t *testing.T) {
	for broken := range 4 {
		disk := waltest.New()
		o := wal.Options{FS: disk, SegmentBytes: 64 << 10, MaxBytes: 2 << 20}
		l := mustOpen(t, o)
		want := []string{"s"}
		mustAppend(t, l, "s", 10, wal.Synced)
		for i := range 16 {
			want = append(want, fmt.Sprint(i))
			mustAppend(t, l, want[i+1], 14_000, wal.Volatile)
		}
		if s := l.State(); s.Segments < 4 || s.Synced != 1 {
			t.Fatalf("%+v", s)
		}
		n := 0
		disk.Fail(func(op waltest.Op, _ string) error {
			if op == waltest.Sync {
				if n++; n == broken+1 {
					return errors.New("it is broken")
				}
			}
			return nil
		})
		if _, err := l.Flush(t.Context(), wal.Synced); err == nil || errors.Is(err, wal.ErrUncertain) {
			t.Fatalf("flush: %v", err)
		}
		if s := l.State(); s.Synced != s.Written || s.Bytes != onDisk(disk) {
			t.Fatalf("%+v, %d bytes on disk", s, onDisk(disk))
		}
		wantAfter(t, l, disk, want...)
		mustAppend(t, l, "x", 10, wal.Synced)
		wantAfter(t, l, disk, append(want, "x")...)
	}
}

// TestVolatile_DeliveredRecordsAreNeverSynced counts the syncs of a log whose records go as they come.
func TestVolatile_DeliveredRecordsAreNeverSynced(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, wal.Options{FS: disk, SegmentBytes: 64 << 10, MaxBytes: 2 << 20})
	syncs, segments := 0, 0
	disk.Fail(func(op waltest.Op, name string) error {
		switch {
		case op == waltest.Sync && strings.HasSuffix(name, ".new"):
			segments++
		case op == waltest.Sync:
			syncs++
		}
		return nil
	})
	for range 400 {
		got := mustAppend(t, l, "a", 14_000, wal.Volatile)
		if err := l.Truncate(t.Context(), got.Last, wal.Volatile); err != nil {
			t.Fatal(err)
		}
		if s := l.State(); s.Segments > 3 {
			t.Fatalf("delivered segments are still there: %+v", s)
		}
	}
	if syncs != 0 || segments < 50 {
		t.Fatalf("%d syncs, %d segments", syncs, segments)
	}
}

// explosive panics in the next write.
type explosive struct {
	*waltest.Disk
	armed bool
}

type charge struct {
	wal.File
	of *explosive
}

func (e *explosive) Create(name string) (wal.File, error) {
	f, err := e.Disk.Create(name)
	return charge{f, e}, err
}

func (c charge) WriteAt(p []byte, off int64) (int, error) {
	if c.of.armed {
		c.of.armed = false
		panic("out of luck")
	}
	return c.File.WriteAt(p, off)
}

func TestLeader_ThatPanicsTellsItsFollowersAndTheLogGoesOn(t *testing.T) {
	disk := &explosive{Disk: waltest.New()}
	o := small(disk)
	l := mustOpen(t, o)
	mustAppend(t, l, "s", 10, wal.Synced)
	disk.armed = true
	_, errs := l.AppendTogether(t.Context(), [][]wal.Entry{{{ID: "a"}}, {{ID: "b"}}}, wal.Volatile)
	for _, err := range errs {
		if !errors.Is(err, wal.ErrUncertain) || !strings.Contains(err.Error(), "out of luck") {
			t.Fatalf("append: %v", err)
		}
	}
	mustAppend(t, l, "x", 10, wal.Synced)
	wantAfter(t, l, disk.Disk, "s", "x")
}

// slow holds every sync until it is let go.
type slow struct {
	*waltest.Disk
	syncing, let chan struct{}
}

type slowFile struct {
	wal.File
	of *slow
}

func (d *slow) Create(name string) (wal.File, error) {
	f, err := d.Disk.Create(name)
	return slowFile{f, d}, err
}

func (f slowFile) Sync() error {
	if f.of.syncing != nil {
		f.of.syncing <- struct{}{}
		<-f.of.let
	}
	return f.File.Sync()
}

func TestAppend_WhoseContextEndsIsUncertainAndTheOthersAreServed(t *testing.T) {
	disk := &slow{Disk: waltest.New()}
	l := mustOpen(t, small(disk))
	disk.syncing, disk.let = make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, l, "leader", 1, wal.Synced) })
	<-disk.syncing
	// The first follower of the next group is its heir; its caller goes away while the leader is at the disk.
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := l.Append(ctx, []wal.Entry{{ID: "heir"}}, wal.Synced)
		gone <- err
	}()
	for l.Waiting() < 1 {
		select {
		case err := <-gone:
			t.Fatal(err)
		default:
		}
	}
	cancel()
	if err := <-gone; !errors.Is(err, wal.ErrUncertain) || !errors.Is(err, context.Canceled) {
		t.Fatalf("append whose caller went away: %v", err)
	}
	wg.Go(func() { mustAppend(t, l, "other", 1, wal.Synced) })
	for l.Waiting() < 2 {
	}
	disk.let <- struct{}{}
	<-disk.syncing
	disk.let <- struct{}{}
	wg.Wait()
	disk.syncing = nil
	if got := ids(t, l); !slices.Equal(got, []string{"leader", "heir", "other"}) {
		t.Fatalf("the log holds %q", got)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, []wal.Entry{{ID: "late"}}, wal.Synced); errors.Is(err, wal.ErrUncertain) || err == nil {
		t.Fatalf("append under an ended context: %v, want it refused for certain", err)
	}
}

func TestClose_RefusesWhatComesAfterAndFinishesWhatCameBefore(t *testing.T) {
	disk := &slow{Disk: waltest.New()}
	l := mustOpen(t, small(disk))
	disk.syncing, disk.let = make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, l, "a", 1, wal.Synced) })
	<-disk.syncing
	for range 2 {
		wg.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for l.Waiting() < 1 {
	}
	if _, err := l.Append(t.Context(), []wal.Entry{{ID: "b"}}, wal.Synced); !errors.Is(err, wal.ErrClosed) {
		t.Fatalf("append after Close: %v", err)
	}
	disk.let <- struct{}{}
	<-disk.syncing
	disk.let <- struct{}{}
	wg.Wait()
	for r, err := range l.Scan(1, 9) {
		if !errors.Is(err, wal.ErrClosed) {
			t.Fatalf("scan of a closed log: %+v %v", r, err)
		}
	}
	_, flushed := l.Flush(t.Context(), wal.Synced)
	if !errors.Is(flushed, wal.ErrClosed) || !errors.Is(l.Truncate(t.Context(), 1, wal.Synced), wal.ErrClosed) {
		t.Fatalf("use of a closed log: %v", flushed)
	}
	l, report, err := wal.Open(small(disk.Disk.Kill()))
	if err != nil || !report.Clean {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := ids(t, l); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("reopened: %q", got)
	}
}
