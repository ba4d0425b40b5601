package wal_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abacus/shared/wal"
)

// pour puts every file of a disk into a directory.
func pour(t *testing.T, w three) string {
	t.Helper()
	dir := t.TempDir()
	names, _ := w.disk.List()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), w.disk.Bytes(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// snapshot is every name in a directory with a checksum of its bytes.
func snapshot(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		all = append(all, e.Name()+string(rune(sum(data)%10000)))
	}
	return all
}

func TestInspect_TellsWhatOpenAndScanWouldAndChangesNothing(t *testing.T) {
	w := writeThree(t)
	dir := pour(t, w)
	path := filepath.Join(dir, segment(2))
	data, _ := os.ReadFile(path)
	start := w.ends[segment(2)][3]
	data[start+100] ^= 1
	newest, _ := os.ReadFile(filepath.Join(dir, segment(3)))
	files := map[string][]byte{
		path:                                data,
		filepath.Join(dir, segment(3)):      append(newest[:w.ends[segment(3)][9]], "torn"...),
		filepath.Join(dir, "README"):        []byte("mine"),
		filepath.Join(dir, segment(5)):      []byte("no header"),
		filepath.Join(dir, "x.wal.damaged"): []byte("not of this log"),
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, segment(9)), 0o700); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	in, err := wal.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if after := snapshot(t, dir); !slices.Equal(before, after) {
		t.Fatalf("the directory was changed: %q, %q", before, after)
	}
	want := []wal.Damage{
		{Segment: segment(2), Offset: start, Bytes: w.ends[segment(2)][4] - start, Lost: 1, After: 14},
		{Segment: segment(5), Bytes: 9, Unknown: true},
	}
	if in.Records != 29 || !slices.Equal(in.Damage, want) || len(in.Segments) != 3 {
		t.Fatalf("%+v", in)
	}
	if s := in.Segments[2]; s.Torn != 4 || s.First != 21 || s.Last != 30 || s.Records != 10 || s.Frames != 10 {
		t.Fatalf("%+v", s)
	}
	if !slices.Equal(in.Foreign, []string{segment(9) + "/", "README", "x.wal.damaged"}) {
		t.Fatalf("%q", in.Foreign)
	}
	// Open finds the same, and a directory that has a segment's name does not get in its way.
	l, report, err := wal.Open(wal.Options{Dir: dir, SegmentBytes: 64 << 10, MaxBytes: 256 << 10})
	if err != nil || report.Dropped != 4 || len(report.Damage) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := ids(t, l); !slices.Equal(got, without(w.all(), "2.4")) || l.State().Lost != 1 {
		t.Fatalf("%q, %+v", got, l.State())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInspect_WorksBesideTheOwnerAndSaysSo(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, diskOptions(dir))
	for range 5 {
		mustAppend(t, l, "a", 10, wal.Synced)
	}
	if err := l.Truncate(t.Context(), 2, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	in, err := wal.Inspect(dir)
	if err != nil || !in.Running || !strings.HasPrefix(in.Owner, "pid ") {
		t.Fatalf("%+v, %v", in, err)
	}
	if in.Records != 3 || in.Truncated != 2 || in.Segments[0].Torn != 0 || in.Segments[0].Closed || len(in.Damage) != 0 {
		t.Fatalf("%+v", in)
	}
	mustAppend(t, l, "a", 10, wal.Synced)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if in, err = wal.Inspect(dir); err != nil || !in.Segments[0].Closed || in.Records != 4 {
		t.Fatalf("%+v, %v", in, err)
	}
	if _, err := wal.Inspect(filepath.Join(dir, "nowhere")); err == nil {
		t.Fatal("a directory that is not there was inspected")
	}
}
