package wal_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"abacus/shared/wal"
)

func collect(t *testing.T, l *wal.Log) []string {
	t.Helper()
	var out []string
	for r, err := range l.Scan(1, ^wal.Position(0)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d %s %s", r.Position, r.ID, r.Data))
	}
	return out
}

func TestAppend_ConcurrentWritersAreAllThereAfterReopening(t *testing.T) {
	dir := t.TempDir()
	l, _, err := wal.Open(wal.Options{Dir: dir, SegmentBytes: 64 << 10, MaxBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				_, err := l.Append(t.Context(), []wal.Entry{{ID: fmt.Sprint(w, "-", i), Data: make([]byte, 256)}}, wal.Synced)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	before := collect(t, l)
	if len(before) != 1600 {
		t.Fatalf("%d records, want 1600", len(before))
	}
	if err := l.Truncate(t.Context(), 1000, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, report, err := wal.Open(wal.Options{Dir: dir, SegmentBytes: 64 << 10, MaxBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Clean || report.Dropped != 0 || len(report.Damage) != 0 {
		t.Fatalf("recovery %+v", report)
	}
	after := collect(t, l)
	if len(after) != 600 || after[0] != before[1000] || after[599] != before[1599] {
		t.Fatalf("%d records after reopening", len(after))
	}
	t.Logf("%+v", l.State())
	l.Close()
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		t.Log(f.Name())
	}
}

func BenchmarkAppend(b *testing.B) {
	data := make([]byte, 250)
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("synced/%d", writers), func(b *testing.B) {
			l, _, err := wal.Open(wal.Options{Dir: b.TempDir(), MaxBytes: 4 << 30})
			if err != nil {
				b.Fatal(err)
			}
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := w; i < b.N; i += writers {
						if _, err := l.Append(b.Context(), []wal.Entry{{ID: "abcdef", Data: data}}, wal.Synced); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rec/s")
			l.Close()
		})
	}
	b.Run("unsynced/batch64", func(b *testing.B) {
		l, _, err := wal.Open(wal.Options{Dir: b.TempDir(), MaxBytes: 64 << 30})
		if err != nil {
			b.Fatal(err)
		}
		batch := make([]wal.Entry, 64)
		for i := range batch {
			batch[i] = wal.Entry{ID: "abcdef", Data: data}
		}
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			r, err := l.Append(b.Context(), batch, wal.Volatile)
			if err != nil {
				b.Fatal(err)
			}
			if n++; n%1000 == 0 {
				l.Truncate(b.Context(), r.Last, wal.Volatile)
			}
		}
		b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "rec/s")
		l.Close()
	})
}
