package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

// three is a log of 3 segments with 10 records each, one a frame: ids 1.0 to 3.9.
type three struct {
	disk *waltest.Disk
	ends map[string][]int64 // of the frames, by segment
}

func segment(i int) string { return fmt.Sprintf("%020d.wal", i) }

func writeThree(t *testing.T) three {
	t.Helper()
	w := three{disk: waltest.New(), ends: map[string][]int64{}}
	l := mustOpen(t, small(w.disk))
	for s := 1; s <= 3; s++ {
		for i := range 10 {
			mustAppend(t, l, fmt.Sprintf("%d.%d", s, i), 6_400, wal.Synced)
			end := int64(1024) // zeroes may lie behind the frames
			if i > 0 {
				end = w.ends[segment(s)][i-1]
			}
			w.ends[segment(s)] = append(w.ends[segment(s)], end+24+3+3+6_400)
		}
	}
	if s := l.State(); s.Segments != 3 {
		t.Fatalf("%+v: want 3 segments", s)
	}
	return w
}

func (w three) all() (out []string) {
	for s := 1; s <= 3; s++ {
		for i := range 10 {
			out = append(out, fmt.Sprintf("%d.%d", s, i))
		}
	}
	return out
}

func without(all []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(id string) bool {
		return slices.ContainsFunc(gone, func(g string) bool { return id == g || strings.HasSuffix(g, ".") && strings.HasPrefix(id, g) })
	})
}

// reopened opens a copy of disk, scans it and returns what was found and told.
func reopened(t *testing.T, disk *waltest.Disk) (found []string, told []wal.Damage, state wal.State, next *waltest.Disk) {
	t.Helper()
	disk = disk.Kill()
	o := small(disk)
	o.OnDamage = func(d wal.Damage) { told = append(told, d) }
	l := mustOpen(t, o)
	for range 2 { // the second scan tells nothing new
		found = ids(t, l)
	}
	return found, told, l.State(), disk
}

func TestG3_DamageInTheMiddleIsCountedExactlyAndKeptAside(t *testing.T) {
	w := writeThree(t)
	for seg := 1; seg <= 2; seg++ {
		name, ends := segment(seg), w.ends[segment(seg)]
		start := ends[3]
		for what, at := range map[string]int64{"checksum": 0, "mark": 4, "version": 5, "kind": 6, "length": 8, "count": 12,
			"position": 16, "lengths": 24, "id": 27, "data": 3000} {
			t.Run(fmt.Sprintf("%s of segment %d", what, seg), func(t *testing.T) {
				data := w.disk.Bytes(name)
				data[start+at] ^= 0x10
				disk := w.disk.Kill()
				disk.Put(name, data)
				lost := fmt.Sprintf("%d.4", seg)
				for again := range 2 {
					found, told, state, next := reopened(t, disk)
					if want := without(w.all(), lost); !slices.Equal(found, want) {
						t.Fatalf("opened %d times: %q", again+1, found)
					}
					d := wal.Damage{Segment: name, Offset: start, Bytes: ends[4] - start, Lost: 1, After: wal.Position(10*seg - 6),
						Aside: fmt.Sprintf("%s@%d.damaged", name, start)}
					if len(told) != 1 || told[0] != d || state.Damage != 1 || state.Lost != 1 {
						t.Fatalf("opened %d times: told %+v, %+v, want %+v", again+1, told, state, d)
					}
					if !bytes.Equal(next.Bytes(d.Aside), data[start:ends[4]]) {
						t.Fatal("the damaged bytes are not kept as they were")
					}
					disk = next
				}
			})
		}
	}
}

func TestG3_SegmentsMissingOrEmptyAreCountedExactly(t *testing.T) {
	w := writeThree(t)
	for _, c := range []struct {
		name   string
		spoil  func(*waltest.Disk)
		gone   []string
		lost   uint64
		told   int
		damage string
	}{
		{"first missing", func(d *waltest.Disk) { _ = d.Remove(segment(1)) }, []string{"1."}, 10, 1, segment(1)},
		{"middle missing", func(d *waltest.Disk) { _ = d.Remove(segment(2)) }, []string{"2."}, 10, 1, segment(2)},
		{"first two missing", func(d *waltest.Disk) { _, _ = d.Remove(segment(1)), d.Remove(segment(2)) },
			[]string{"1.", "2."}, 20, 1, segment(2)},
		{"middle empty", func(d *waltest.Disk) { d.Put(segment(2), nil) }, []string{"2."}, 10, 1, segment(2)},
		{"middle without header", func(d *waltest.Disk) { d.Put(segment(2), d.Bytes(segment(2))[1024:]) },
			[]string{"2."}, 10, 1, segment(2)},
		{"middle cut", func(d *waltest.Disk) { d.Put(segment(2), d.Bytes(segment(2))[:w.ends[segment(2)][6]+9]) },
			[]string{"2.7", "2.8", "2.9"}, 3, 1, segment(2)},
		{"newest without header", func(d *waltest.Disk) { d.Put(segment(3), d.Bytes(segment(3))[1024:]) },
			[]string{"3."}, 0, 1, segment(3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := w.disk.Kill()
			c.spoil(disk)
			for again := range 2 {
				found, told, state, next := reopened(t, disk)
				if want := without(w.all(), c.gone...); !slices.Equal(found, want) {
					t.Fatalf("%q, want %q", found, want)
				}
				disk = next
				if again == 1 && told == nil && c.name == "newest without header" {
					continue // it is aside now, and nothing else knew of it
				}
				if len(told) != c.told || state.Lost != c.lost || told[0].Segment != c.damage {
					t.Fatalf("opened %d times: told %+v, %+v", again+1, told, state)
				}
				if told[0].Unknown != (c.name == "newest without header") {
					t.Fatalf("told %+v", told[0])
				}
			}
			l := mustOpen(t, small(disk.Kill()))
			if got := mustAppend(t, l, "new", 1, wal.Synced); got.First <= 1<<20 {
				t.Fatalf("position %d may have been used before", got.First)
			}
		})
	}
}

// TestG3_MissingSegmentsAreCountedExactlyAcrossJumpsOfPositions kills the owner behind each segment, so that the next
// one begins a reservation further on.
func TestG3_MissingSegmentsAreCountedExactlyAcrossJumpsOfPositions(t *testing.T) {
	disk := waltest.New()
	for s := range 5 {
		l := mustOpen(t, small(disk))
		for i := range 3 + s {
			mustAppend(t, l, fmt.Sprintf("%d.%d", s, i), 10, wal.Volatile)
		}
		disk = disk.Kill()
	}
	for _, c := range []struct {
		gone []int
		lost uint64
	}{{[]int{1}, 3}, {[]int{2}, 4}, {[]int{1, 2}, 7}, {[]int{2, 3}, 9}, {[]int{2, 4}, 10}, {[]int{1, 2, 3, 4}, 18}} {
		spoiled := disk.Kill()
		for _, s := range c.gone {
			if err := spoiled.Remove(segment(s)); err != nil {
				t.Fatal(err)
			}
		}
		found, _, state, _ := reopened(t, spoiled)
		if state.Lost != c.lost || uint64(len(found)) != 25-c.lost {
			t.Errorf("without segments %v: %d lost, %d found, want %d lost of 25", c.gone, state.Lost, len(found), c.lost)
		}
	}
}

func TestG3_PartOfAMissingSegmentThatWasTruncatedIsNotLost(t *testing.T) {
	w := writeThree(t)
	disk := w.disk.Kill()
	l := mustOpen(t, small(disk))
	if err := l.Truncate(t.Context(), 14, wal.Synced); err != nil {
		t.Fatal(err)
	}
	disk = disk.Kill()
	if err := disk.Remove(segment(2)); err != nil {
		t.Fatal(err)
	}
	found, told, state, _ := reopened(t, disk)
	if len(found) != 10 || len(told) != 1 || state.Lost != 6 || told[0].After != 14 {
		t.Fatalf("%q, told %+v, %+v, want records 15 to 20 lost", found, told, state)
	}
}

func TestDirectory_CopiesAndRenamedSegmentsAreSetRight(t *testing.T) {
	w := writeThree(t)
	t.Run("copy", func(t *testing.T) {
		disk := w.disk.Kill()
		disk.Put(segment(7), disk.Bytes(segment(2)))
		found, told, state, next := reopened(t, disk)
		if !slices.Equal(found, w.all()) || len(told) != 1 || state.Lost != 0 || told[0].Segment != segment(7) {
			t.Fatalf("%q, told %+v", found, told)
		}
		if !bytes.Equal(next.Bytes(told[0].Aside), w.disk.Bytes(segment(2))) {
			t.Fatal("the copy is not kept as it was")
		}
	})
	for from := 1; from <= 3; from++ {
		t.Run(fmt.Sprintf("renamed %d", from), func(t *testing.T) {
			disk := w.disk.Kill()
			if err := disk.Rename(segment(from), segment(9)); err != nil {
				t.Fatal(err)
			}
			found, told, _, next := reopened(t, disk)
			if !slices.Equal(found, w.all()) || len(told) != 0 || next.Bytes(segment(from)) == nil {
				t.Fatalf("%q, told %+v", found, told)
			}
		})
	}
}

func TestDirectory_JunkIsLeftAloneAndNamed(t *testing.T) {
	w := writeThree(t)
	disk := w.disk.Kill()
	foreign := []string{"README", "notes.wal", "x.wal.new", "18446744073709551615.wal", "1.wal", ".wal", "core.damaged", "LOCK~",
		"00000000000000000000.wal"}
	for _, name := range foreign {
		disk.Put(name, []byte(name))
	}
	for i := range 500 {
		name := fmt.Sprintf("junk%d", i)
		disk.Put(name, []byte("junk"))
		foreign = append(foreign, name)
	}
	disk.Put(segment(2)+".new", []byte("half a segment"))
	l, report, err := wal.Open(small(disk))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(foreign)
	if !slices.Equal(report.Foreign, foreign) || len(report.Damage) != 0 {
		t.Fatalf("%+v", report)
	}
	if got := ids(t, l); !slices.Equal(got, w.all()) {
		t.Fatalf("%q", got)
	}
	for _, name := range foreign {
		if data := disk.Bytes(name); data == nil {
			t.Errorf("%s is gone", name)
		}
	}
	if disk.Bytes(segment(2)+".new") != nil {
		t.Error("what a crash left of a new segment is still there")
	}
}

// TestDirectory_ADamagedDiskDoesNotFillItselfWithCopies damages every other frame of a large log.
func TestDirectory_ADamagedDiskDoesNotFillItselfWithCopies(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	for range 160 {
		mustAppend(t, l, "i", 300, wal.Volatile)
	}
	data := disk.Bytes(segment(1))
	for at := 1024 + 30; at < len(data); at += 2 * (24 + 3 + 1 + 300) {
		data[at] ^= 1
	}
	disk = disk.Kill()
	disk.Put(segment(1), data)
	for range 3 {
		var state wal.State
		_, _, state, disk = reopened(t, disk)
		names, _ := disk.List()
		kept := len(slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".damaged") }))
		if state.Lost != 80 || kept > 64 {
			t.Fatalf("%d stretches kept aside, %+v", kept, state)
		}
	}
}

// TestVersion_OfTheFutureIsRefusedAndNothingIsTouched covers a header and a frame of version 2.
func TestVersion_OfTheFutureIsRefusedAndNothingIsTouched(t *testing.T) {
	w := writeThree(t)
	for seg := 1; seg <= 3; seg++ {
		disk := w.disk.Kill()
		data := disk.Bytes(segment(seg))
		data[7], data[512+7] = 2, 2
		disk.Put(segment(seg), data)
		disk.Put(segment(5)+".new", []byte("x"))
		before := contents(disk)
		_, _, err := wal.Open(small(disk))
		if !errors.Is(err, wal.ErrVersion) || !strings.Contains(err.Error(), "version 2") {
			t.Fatalf("segment %d of version 2: %v", seg, err)
		}
		if after := contents(disk); after != before {
			t.Fatalf("the directory was changed:\n%s\n%s", before, after)
		}
	}
	disk := w.disk.Kill()
	data := disk.Bytes(segment(3))
	data = append(data[:w.ends[segment(3)][9]], wal.FutureFrame(data)...)
	disk.Put(segment(3), data)
	before := contents(disk)
	if _, _, err := wal.Open(small(disk)); !errors.Is(err, wal.ErrVersion) {
		t.Fatalf("frame of version 2: %v", err)
	}
	if after := contents(disk); after != before {
		t.Fatalf("the directory was changed:\n%s\n%s", before, after)
	}
}

func contents(disk *waltest.Disk) string {
	var b strings.Builder
	names, _ := disk.List()
	for _, name := range names {
		fmt.Fprintf(&b, "%s %x\n", name, sum(disk.Bytes(name)))
	}
	return b.String()
}

// TestPositions_GoOnAboveWhatMayHaveBeenTold: after a crash no position is used again, after an orderly close none is
// skipped.
func TestPositions_GoOnAboveWhatMayHaveBeenTold(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	last := mustAppend(t, l, "a", 1, wal.Volatile).Last
	for range 3 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = mustOpen(t, small(disk))
		if got := mustAppend(t, l, "a", 1, wal.Volatile); got.First != last+1 {
			t.Fatalf("after an orderly close: %d behind %d", got.First, last)
		} else {
			last = got.Last
		}
	}
	for range 3 {
		disk = disk.Kill()
		l = mustOpen(t, small(disk))
		if got := mustAppend(t, l, "a", 1, wal.Volatile); got.First <= last+1000 {
			t.Fatalf("after a crash: %d behind %d", got.First, last)
		} else {
			last = got.Last
		}
	}
	// The newest file lost its header: what it held is unknown, and so nothing of its reservation is used.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, small(disk))
	last = mustAppend(t, l, "a", 1, wal.Volatile).Last
	names, _ := disk.List()
	newest := names[len(names)-1]
	if newest == "LOCK" {
		newest = names[len(names)-2]
	}
	disk = disk.Kill()
	disk.Put(newest, make([]byte, 2000))
	for range 2 {
		l = mustOpen(t, small(disk))
		if got := mustAppend(t, l, "a", 1, wal.Volatile); got.First <= last {
			t.Fatalf("position %d was told before", got.First)
		} else {
			last = got.Last
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
