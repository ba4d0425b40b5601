package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

func mustOpen(t *testing.T, o wal.Options) *wal.Log {
	t.Helper()
	l, _, err := wal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustAppend(t *testing.T, l *wal.Log, id string, size int, d wal.Durability) wal.Range {
	t.Helper()
	got, err := l.Append(t.Context(), []wal.Entry{{ID: id, Data: make([]byte, size)}}, d)
	if err != nil {
		t.Fatalf("append %s: %v", id, err)
	}
	return got
}

func ids(t *testing.T, l *wal.Log) (found []string) {
	t.Helper()
	for r, err := range l.Scan(1, ^wal.Position(0)) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		found = append(found, r.ID)
	}
	return found
}

// onDisk is the sum of all segment files.
func onDisk(disk *waltest.Disk) (n int64) {
	names, _ := disk.List()
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") {
			n += int64(len(disk.Bytes(name)))
		}
	}
	return n
}

// overhead is what a frame of one entry with a one-byte id and under 2^14 bytes of data takes beside its data.
const overhead = 24 + 1 + 2 + 1

// fill appends until one byte more would not fit, and returns how many bytes of data the last append may have.
func fill(t *testing.T, l *wal.Log, o wal.Options, d wal.Durability) (room int64) {
	t.Helper()
	for {
		room = o.MaxBytes - o.Headroom() - l.State().Bytes - overhead
		if room < 4000 {
			return room
		}
		mustAppend(t, l, "f", 2000, d)
	}
}

func TestMaxBytes_IsExactAtTheLimitAndOnePast(t *testing.T) {
	for _, d := range []wal.Durability{wal.Volatile, wal.Synced} {
		disk := waltest.New()
		o := small(disk)
		l := mustOpen(t, o)
		room := fill(t, l, o, d)
		before := l.State()
		if _, err := l.Append(t.Context(), []wal.Entry{{ID: "x", Data: make([]byte, room+1)}}, d); !errors.Is(err, wal.ErrFull) {
			t.Fatalf("one byte past the limit: %v", err)
		}
		if l.State() != before {
			t.Fatalf("a refused append changed the log: %+v, %+v", before, l.State())
		}
		mustAppend(t, l, "x", int(room), d)
		if _, err := l.Append(t.Context(), []wal.Entry{{ID: "y"}}, d); !errors.Is(err, wal.ErrFull) {
			t.Fatalf("append to a full log: %v", err)
		}
		if got := onDisk(disk); got > o.MaxBytes || l.State().Bytes > o.MaxBytes {
			t.Fatalf("%d bytes on disk, %d told, %d allowed", got, l.State().Bytes, o.MaxBytes)
		}
	}
}

func TestMaxBytes_ThousandsOfTruncationsOfAFullLogStayBelowIt(t *testing.T) {
	disk := waltest.New()
	o := small(disk)
	l := mustOpen(t, o)
	batch := make([]wal.Entry, 3000)
	for i := range batch {
		batch[i] = wal.Entry{ID: "i"}
	}
	for {
		if _, err := l.Append(t.Context(), batch, wal.Volatile); errors.Is(err, wal.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	last := l.State().Written
	for p := wal.Position(1); p < 6000; p++ {
		if err := l.Truncate(t.Context(), p, wal.Durability(p%2)); err != nil {
			t.Fatalf("truncate %d of %d: %v", p, last, err)
		}
		if s := l.State(); s.Bytes > o.MaxBytes || s.Truncated != p {
			t.Fatalf("after truncation of %d: %+v", p, s)
		}
	}
	if got := onDisk(disk); got > o.MaxBytes {
		t.Fatalf("%d bytes on disk, %d allowed", got, o.MaxBytes)
	}
	l = mustOpen(t, small(disk.Kill()))
	if s := l.State(); s.Truncated != 5999 || s.Written != last || s.Damage != 0 {
		t.Fatalf("reopened: %+v", s)
	}
}

func TestMaxBytes_AFullLogTakesUpAgainAfterTruncation(t *testing.T) {
	for _, share := range []wal.Position{1, 2, 3} {
		disk := waltest.New()
		o := small(disk)
		l := mustOpen(t, o)
		for round := range 5 {
			fill(t, l, o, wal.Volatile)
			s := l.State()
			through := s.Truncated + (s.Written-s.Truncated)*share/3
			if err := l.Truncate(t.Context(), through, wal.Volatile); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Append(t.Context(), []wal.Entry{{ID: "a", Data: make([]byte, 9000)}}, wal.Synced); err != nil {
				t.Fatalf("round %d, %d thirds truncated: %v, %+v", round, share, err, l.State())
			}
		}
	}
}

// TestMaxBytes_TheNewestSegmentAloneIsGivenUpWhole shows that no record need be left behind for the space to return.
func TestMaxBytes_TheNewestSegmentAloneIsGivenUpWhole(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	var last wal.Range
	for l.State().Bytes < 60<<10 {
		last = mustAppend(t, l, "a", 3000, wal.Volatile)
	}
	if err := l.Truncate(t.Context(), last.Last, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	if s := l.State(); s.Segments != 1 || s.Bytes != 1024 || onDisk(disk) != 1024 {
		t.Fatalf("after truncating everything: %+v, %d bytes on disk", s, onDisk(disk))
	}
}

func TestReopening_WithLowerLimitsKeepsEverythingAndRefusesMore(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, wal.Options{FS: disk, SegmentBytes: 1 << 20, MaxBytes: 4 << 20})
	for range 20 {
		mustAppend(t, l, "a", 100_000, wal.Volatile)
	}
	disk = disk.Kill()
	l = mustOpen(t, small(disk))
	if n := len(ids(t, l)); n != 20 {
		t.Fatalf("%d records, want 20", n)
	}
	if _, err := l.Append(t.Context(), []wal.Entry{{ID: "b"}}, wal.Volatile); !errors.Is(err, wal.ErrFull) {
		t.Fatalf("append beyond the new limit: %v", err)
	}
	if err := l.Truncate(t.Context(), l.State().Written, wal.Synced); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, "b", 100, wal.Synced)
}

func TestLimits_OfRecordIDFrameAreExact(t *testing.T) {
	o := wal.Options{FS: waltest.New(), SegmentBytes: 1 << 20, MaxRecord: 100_000, MaxFrame: 150_000}
	l := mustOpen(t, o)
	long := strings.Repeat("i", wal.MaxID)
	entry := func(id string, n int) wal.Entry { return wal.Entry{ID: id, Data: make([]byte, n)} }
	for name, c := range map[string]struct {
		entries []wal.Entry
		want    error
	}{
		"record at":     {[]wal.Entry{entry("i", 99_999)}, nil},
		"record past":   {[]wal.Entry{entry("i", 100_000)}, wal.ErrTooLarge},
		"id at":         {[]wal.Entry{entry(long, 0)}, nil},
		"id past":       {[]wal.Entry{entry(long+"i", 0)}, wal.ErrTooLarge},
		"no id":         {[]wal.Entry{entry("i", 0), entry("", 1)}, wal.ErrEmptyID},
		"frame at":      {[]wal.Entry{entry("i", 90_000), entry("i", 150_000-24-90_000-2*5)}, nil},
		"frame past":    {[]wal.Entry{entry("i", 90_000), entry("i", 150_000-24-90_000-2*5+1)}, wal.ErrTooLarge},
		"no data":       {[]wal.Entry{{ID: "i"}}, nil},
		"nothing":       {nil, nil},
		"too many":      {make([]wal.Entry, 1<<19+1), wal.ErrEmptyID},
		"too many full": {slicesRepeat(entry("i", 0), 1<<19+1), wal.ErrTooLarge},
	} {
		_, err := l.Append(t.Context(), c.entries, wal.Volatile)
		if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func slicesRepeat(e wal.Entry, n int) []wal.Entry {
	out := make([]wal.Entry, n)
	for i := range out {
		out[i] = e
	}
	return out
}

func TestOptions_EveryFaultIsNamedAtOnce(t *testing.T) {
	_, _, err := wal.Open(wal.Options{SegmentBytes: 10, MaxBytes: 5, MaxFrame: 3, MaxRecord: -1})
	for _, name := range []string{"SegmentBytes", "MaxBytes", "MaxFrame", "MaxRecord", "Dir"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}

// TestGroup_NeverHandsOutMorePositionsThanItsSegmentReserves: three appends of 2^19 records want into one group of 2^20
// positions. The third is not let in, and its context has ended.
func TestGroup_NeverHandsOutMorePositionsThanItsSegmentReserves(t *testing.T) {
	disk := waltest.New()
	o := wal.Options{FS: disk, SegmentBytes: 16 << 20}
	l := mustOpen(t, o)
	batch := slicesRepeat(wal.Entry{ID: "i"}, 1<<19)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errs := l.AppendTogether(ctx, [][]wal.Entry{batch, batch, batch}, wal.Volatile)
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], context.Canceled) {
		t.Fatalf("%v, want the third one to wait for room", errs)
	}
	mustAppend(t, l, "next", 1, wal.Volatile)
	o.FS = disk.Kill()
	l = mustOpen(t, o)
	n := 0
	for r, err := range l.Scan(1<<20-1, ^wal.Position(0)) {
		if n++; err != nil || r.Position != 1<<20-2+wal.Position(n) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if n != 3 || l.State().Damage != 0 {
		t.Fatalf("%d records from the last but one on, want 3; %+v", n, l.State())
	}
}

// files counts the files that are open.
type files struct {
	*waltest.Disk
	open, most atomic.Int64
}

type counted struct {
	wal.File
	of *files
}

func (f *files) count(file wal.File, err error) (wal.File, error) {
	if err != nil {
		return nil, err
	}
	n := f.open.Add(1)
	for m := f.most.Load(); n > m && !f.most.CompareAndSwap(m, n); m = f.most.Load() {
	}
	return counted{file, f}, nil
}

func (f *files) Create(name string) (wal.File, error) { return f.count(f.Disk.Create(name)) }
func (f *files) Open(name string) (wal.File, error)   { return f.count(f.Disk.Open(name)) }

func (c counted) Close() error {
	c.of.open.Add(-1)
	return c.File.Close()
}

func TestOpenFiles_AreAHandfulHoweverManySegments(t *testing.T) {
	fs := &files{Disk: waltest.New()}
	o := wal.Options{FS: fs, SegmentBytes: 64 << 10, MaxBytes: 8 << 20}
	l := mustOpen(t, o)
	for i := range 300 {
		mustAppend(t, l, fmt.Sprint(i), 16_000, wal.Volatile)
	}
	if n := len(ids(t, l)); n != 300 || l.State().Segments < 50 {
		t.Fatalf("%d records in %d segments", n, l.State().Segments)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l = mustOpen(t, o); len(ids(t, l)) != 300 {
		t.Fatal("records are missing")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if fs.most.Load() > 19 || fs.open.Load() != 0 {
		t.Fatalf("%d files open at once, %d at the end", fs.most.Load(), fs.open.Load())
	}
}

// reads counts the bytes read.
type reads struct {
	*waltest.Disk
	n atomic.Int64
}

type readFile struct {
	wal.File
	of *reads
}

func (r *reads) Open(name string) (wal.File, error) {
	f, err := r.Disk.Open(name)
	return readFile{f, r}, err
}

func (f readFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.of.n.Add(int64(n))
	return n, err
}

func TestOpen_OfAFullLogReadsHeadersAndTheNewestSegmentAlone(t *testing.T) {
	disk := waltest.New()
	o := wal.Options{FS: disk, SegmentBytes: 64 << 10, MaxBytes: 8 << 20}
	l := mustOpen(t, o)
	for l.State().Bytes < 7<<20 {
		mustAppend(t, l, "a", 10_000, wal.Volatile)
	}
	fs := &reads{Disk: disk.Kill()}
	o.FS = fs
	l = mustOpen(t, o)
	if most := int64(l.State().Segments)*1024 + 2*o.SegmentBytes; fs.n.Load() > most {
		t.Fatalf("read %d bytes of %d, want at most %d", fs.n.Load(), l.State().Bytes, most)
	}
}

func TestScan_LendsDataThatCannotReachANeighbour(t *testing.T) {
	l := mustOpen(t, small(waltest.New()))
	entries := []wal.Entry{{ID: "a", Data: []byte("first")}, {ID: "b", Data: nil}, {ID: "c", Data: []byte("third")}}
	if _, err := l.Append(t.Context(), entries, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	i := 0
	for r, err := range l.Scan(1, 3) {
		if err != nil || r.ID != entries[i].ID || !bytes.Equal(r.Data, entries[i].Data) {
			t.Fatalf("record %d: %+v, %v", i, r, err)
		}
		if cap(r.Data) != len(r.Data) {
			t.Fatalf("record %d: %d bytes, but %d can be reached", i, len(r.Data), cap(r.Data))
		}
		_ = append(r.Data, "overwritten"...)
		i++
	}
}
