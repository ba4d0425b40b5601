package wal_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

var update = flag.Bool("update", false, "write the golden files anew: only for a new version of the format")

func sum(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

// golden makes a log of fixed salts: a batch, a record without data, a truncation, a close; and a second segment.
func golden(t *testing.T) *waltest.Disk {
	t.Helper()
	disk, salt := waltest.New(), uint32(0x5a170000)
	o := small(disk).WithSalt(func() uint32 { salt++; return salt })
	l := mustOpen(t, o)
	ctx := context.Background()
	for _, batch := range [][]wal.Entry{
		{{ID: "a", Data: []byte("one")}, {ID: "bb", Data: []byte("two")}},
		{{ID: strings.Repeat("c", 200)}},
	} {
		if _, err := l.Append(ctx, batch, wal.Volatile); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Truncate(ctx, 1, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, o)
	if _, err := l.Append(ctx, []wal.Entry{{ID: "d", Data: []byte("four")}}, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	return disk
}

// TestFormat_IsPinned compares every byte with the golden files, and reads those back.
func TestFormat_IsPinned(t *testing.T) {
	disk, stored := golden(t), waltest.New()
	for i := 1; i <= 2; i++ {
		path := filepath.Join("testdata", "golden", segment(i)+".hex")
		data := bytes.TrimRight(disk.Bytes(segment(i)), "\x00")
		if *update {
			if err := os.WriteFile(path, []byte(hex.Dump(data)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.Dump(data); got != string(text) {
			t.Errorf("segment %d is\n%s\nwant\n%s\nIf that is meant, it is a new version of the format", i, got, text)
		}
		stored.Put(segment(i), undump(t, string(text)))
	}
	l, report, err := wal.Open(small(stored))
	if err != nil || len(report.Damage) != 0 || report.Dropped != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	var got []string
	for r, err := range l.Scan(1, 100) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s=%s", r.Position, r.ID, r.Data))
	}
	want := []string{"2 bb=two", "3 " + strings.Repeat("c", 200) + "=", "4 d=four"}
	if s := l.State(); !slices.Equal(got, want) || s.Truncated != 1 || s.Written != 4 {
		t.Fatalf("the golden files hold %q, %+v", got, s)
	}
}

func undump(t *testing.T, text string) (data []byte) {
	t.Helper()
	for line := range strings.Lines(text) {
		if len(line) < 60 {
			continue
		}
		part, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line[10:59]), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, part...)
	}
	return data
}

// TestSalt_KeepsFramesInsideOfDataApart puts into a record's data a frame that is whole and intact, and of the positions
// that the record has, but for the salt; and then damages the frame around it.
func TestSalt_KeepsFramesInsideOfDataApart(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	old := mustAppend(t, l, "old", 20, wal.Volatile)
	forged := wal.Forge(old.Last+1, 99, wal.Entry{ID: "forged", Data: []byte("free flights")})
	if _, err := l.Append(t.Context(), []wal.Entry{{ID: "new", Data: forged}}, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, "after", 1, wal.Volatile)
	data := disk.Bytes(segment(1))
	data[1024+24+2+3+20] ^= 1 // the checksum of the frame that holds the other
	disk = disk.Kill()
	disk.Put(segment(1), data)
	found, told, _, _ := reopened(t, disk)
	if !slices.Equal(found, []string{"old", "after"}) || len(told) != 1 || told[0].Lost != 1 {
		t.Fatalf("%q, told %+v", found, told)
	}
}
