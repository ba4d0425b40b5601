package wal_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

func small(fs wal.FS) wal.Options {
	return wal.Options{FS: fs, SegmentBytes: 64 << 10, MaxBytes: 256 << 10}
}

// written is a log that was written and never closed, with what each call appended and where its frame ends.
type written struct {
	disk  *waltest.Disk
	name  string
	bytes []byte
	ends  []int64    // of the frames in the file
	calls [][]string // the ids of each
}

func write(t *testing.T, calls int) written {
	t.Helper()
	disk := waltest.New()
	l, _, err := wal.Open(small(disk))
	if err != nil {
		t.Fatal(err)
	}
	w := written{disk: disk, name: "00000000000000000001.wal"}
	for i := range calls {
		var entries []wal.Entry
		var ids []string
		for j := range 1 + i%3 {
			id := fmt.Sprintf("%d.%d", i, j)
			ids = append(ids, id)
			entries = append(entries, wal.Entry{ID: id, Data: bytes.Repeat([]byte{byte(i)}, 7*i)})
		}
		if _, err := l.Append(t.Context(), entries, wal.Volatile); err != nil {
			t.Fatal(err)
		}
		w.calls = append(w.calls, ids)
		w.ends = append(w.ends, int64(len(disk.Bytes(w.name))))
	}
	w.bytes = disk.Bytes(w.name)
	return w
}

// reopen opens a disk that holds only the given bytes of w's segment and returns the ids that are read.
func (w written) reopen(t *testing.T, data []byte) (l *wal.Log, found []string, r wal.Recovery, fs *waltest.Disk) {
	t.Helper()
	fs = waltest.New()
	fs.Put(w.name, data)
	l, r, err := wal.Open(small(fs))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	for rec, err := range l.Scan(1, ^wal.Position(0)) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		found = append(found, rec.ID)
	}
	return l, found, r, fs
}

// takesUp appends one record, and shows that it is read after another restart, behind what was found before.
func takesUp(t *testing.T, l *wal.Log, fs *waltest.Disk, found []string, above wal.Position) {
	t.Helper()
	got, err := l.Append(context.Background(), []wal.Entry{{ID: "new"}}, wal.Synced)
	if err != nil || got.First <= above {
		t.Fatalf("append after recovery: %+v, %v; positions up to %d were used", got, err, above)
	}
	again, _, err := wal.Open(small(fs.Kill()))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for r, err := range again.Scan(1, ^wal.Position(0)) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	if !slices.Equal(ids, append(slices.Clone(found), "new")) {
		t.Fatalf("after a second restart: %v, want %v and new", ids, found)
	}
}

func TestG1_CutAtEveryByteKeepsTheWholeFramesBeforeIt(t *testing.T) {
	w := write(t, 12)
	for cut := len(w.bytes); cut >= 1024; cut-- {
		l, found, r, fs := w.reopen(t, w.bytes[:cut])
		var want []string
		whole := int64(1024)
		for i, end := range w.ends {
			if end <= int64(cut) {
				want, whole = append(want, w.calls[i]...), end
			}
		}
		if !slices.Equal(found, want) {
			t.Fatalf("cut at %d: %v, want %v", cut, found, want)
		}
		if torn := int64(len(bytes.TrimRight(w.bytes[whole:cut], "\x00"))); r.Dropped != torn || len(r.Damage) != 0 {
			t.Fatalf("cut at %d: recovery %+v, want %d bytes dropped", cut, r, torn)
		}
		takesUp(t, l, fs, found, 1<<10)
	}
}

func TestG1_ZeroesBehindTheEndAreNoDamage(t *testing.T) {
	w := write(t, 6)
	all := slices.Concat(w.calls...)
	for n := range 200 {
		l, found, r, fs := w.reopen(t, append(slices.Clone(w.bytes), make([]byte, n+1)...))
		if !slices.Equal(found, all) || r.Dropped != 0 || len(r.Damage) != 0 {
			t.Fatalf("%d zeroes: %v, %+v", n+1, found, r)
		}
		takesUp(t, l, fs, found, 1<<10)
	}
}

func TestG1_HeaderCutShortOrEmptyFileIsPutAside(t *testing.T) {
	w := write(t, 3)
	for _, cut := range []int{0, 1, 511, 512, 1023} {
		l, found, r, fs := w.reopen(t, w.bytes[:cut])
		if len(found) != 0 {
			t.Fatalf("cut at %d: %v", cut, found)
		}
		if cut < 512 && len(r.Damage) != 1 {
			t.Fatalf("cut at %d: %+v, want the file told as damaged", cut, r)
		}
		takesUp(t, l, fs, nil, 1<<10)
	}
}

func TestG3_EveryFlippedBitIsToldAndHidesOneFrameAtMost(t *testing.T) {
	w := write(t, 9)
	for at := range w.bytes {
		for bit := range 8 {
			data := slices.Clone(w.bytes)
			data[at] ^= 1 << bit
			l, found, r, fs := w.reopen(t, data)
			hit := slices.IndexFunc(w.ends, func(end int64) bool { return int64(at) < end })
			if at < 1024 {
				hit = -1
			}
			var want []string
			for i, ids := range w.calls {
				if i != hit {
					want = append(want, ids...)
				}
			}
			if !slices.Equal(found, want) {
				t.Fatalf("bit %d of byte %d: %v, want %v", bit, at, found, want)
			}
			if len(r.Damage) == 0 && r.Dropped == 0 {
				t.Fatalf("bit %d of byte %d: nobody is told", bit, at)
			}
			if hit >= 0 && hit < len(w.calls)-1 {
				d := r.Damage[0]
				if d.Lost != uint64(len(w.calls[hit])) || d.Offset+d.Bytes != w.ends[hit] || fs.Bytes(d.Aside) == nil {
					t.Fatalf("bit %d of byte %d: damage %+v of frame %d", bit, at, d, hit)
				}
			}
			if bit == 0 && at%29 == 0 {
				takesUp(t, l, fs, found, 1<<10)
			}
		}
	}
}

func TestG3_ZeroedSectorsLoseOnlyTheFramesTheyTouch(t *testing.T) {
	w := write(t, 24)
	for from := 1024; from < len(w.bytes); from += waltest.Sector {
		data := slices.Clone(w.bytes)
		to := min(from+waltest.Sector, len(data))
		clear(data[from:to])
		_, found, r, _ := w.reopen(t, data)
		var want []string
		start := int64(1024)
		for i, end := range w.ends {
			if end <= int64(from) || start >= int64(to) {
				want = append(want, w.calls[i]...)
			}
			start = end
		}
		if !slices.Equal(found, want) {
			t.Fatalf("sector at %d: %d records, want %d", from, len(found), len(want))
		}
		if len(r.Damage) == 0 && r.Dropped == 0 && to < len(data) {
			t.Fatalf("sector at %d: nobody is told", from)
		}
	}
}
