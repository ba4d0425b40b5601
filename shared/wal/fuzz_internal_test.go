package wal

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
)

// memory is a file that counts what is read of it.
type memory struct {
	File
	data []byte
	read int64
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(m.data).ReadAt(p, off)
	m.read += int64(n)
	return n, err
}

// FuzzReader: whatever the bytes, the reader ends after bounded work and returns nothing whose checksum fails or whose
// position goes back.
func FuzzReader(f *testing.F) {
	const salt = 7
	one := appendRecords(nil, []Entry{{ID: "a", Data: []byte("x")}, {ID: "b"}})
	seal(one, kindRecords, 2, 1, salt)
	two := appendTruncate(nil)
	fillTruncate(two, 2, 2)
	seal(two, kindTruncate, 0, 3, salt)
	three := make([]byte, frameHeader)
	seal(three, kindClosed, 0, 3, salt)
	whole := slices.Concat(one, two, three)
	damaged := slices.Clone(whole)
	damaged[9] ^= 4
	fake := []byte{1, 2, 3, 4, frameMark, version, kindRecords, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}
	for _, seed := range [][]byte{nil, whole, damaged, whole[:60], bytes.Repeat(fake, 30), slices.Concat(fake, whole)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := &memory{data: data}
		r := &reader{file: file, salt: salt, end: int64(len(data))}
		low, high, end := Position(1), Position(1000), int64(0)
		for {
			frame, gap, at, ok, err := r.next(low, high)
			if err != nil {
				return // a frame of another version
			}
			if !ok {
				break
			}
			stored := data[at : at+frame.size()]
			if gap != end || at < gap || binary.LittleEndian.Uint32(stored) != checksum(stored[4:], salt) {
				t.Fatalf("frame at %d behind %d, gap from %d: its checksum is wrong", at, end, gap)
			}
			if frame.first < low || frame.next() > high {
				t.Fatalf("frame of positions %d to %d, want %d to %d", frame.first, frame.next(), low, high)
			}
			records, _ := appendRecordsOf(nil, frame)
			for _, r := range records {
				if cap(r.Data) != len(r.Data) {
					t.Fatal("a record reaches into its neighbour")
				}
			}
			low, end = frame.next(), at+frame.size()
		}
		if most := (2*searchFactor + 4) * (int64(len(data)) + frameHeader); file.read+r.work > most {
			t.Fatalf("%d bytes read and %d checked of %d", file.read, r.work, len(data))
		}
	})
}

// FuzzFrame: what was encoded is decoded to the same, and no changed byte passes.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("id\x00data"), uint64(1), uint32(1), uint16(3))
	f.Add([]byte("\x01"), uint64(1<<60), uint32(0xffffffff), uint16(0))
	f.Add(bytes.Repeat([]byte{frameMark, version, 0}, 90), uint64(77), uint32(5), uint16(200))
	f.Fuzz(func(t *testing.T, content []byte, first uint64, salt uint32, flip uint16) {
		var entries []Entry
		for part := range bytes.SplitSeq(content, []byte{0}) {
			entries = append(entries, Entry{ID: string(part) + "i", Data: part})
		}
		in := bounds{1 << 30, 0, 1<<63 + 1<<62}
		buf := appendRecords(nil, entries)
		o := Options{MaxRecord: 1 << 20, MaxFrame: 1 << 24}
		if size, err := o.sizeOf(entries); err == nil && size != len(buf) {
			t.Fatalf("a frame of %d bytes was taken for %d", len(buf), size)
		}
		first %= 1 << 63
		seal(buf, kindRecords, uint32(len(entries)), Position(first), salt)
		got, need, ok := open(buf, salt, in)
		if !ok || need != len(buf) || got.first != Position(first) || !got.known() {
			t.Fatalf("%+v %d %t", got, need, ok)
		}
		records, whole := appendRecordsOf(nil, got)
		if !whole || len(records) != len(entries) {
			t.Fatalf("%d records of %d", len(records), len(entries))
		}
		for i, r := range records {
			if r.ID != entries[i].ID || !bytes.Equal(r.Data, entries[i].Data) || r.Position != Position(first)+Position(i) {
				t.Fatalf("record %d is %+v", i, r)
			}
		}
		buf[int(flip)%len(buf)] ^= 1 << (flip >> 13)
		if _, _, ok := open(buf, salt, in); ok {
			t.Fatalf("byte %d changed, and nobody noticed", int(flip)%len(buf))
		}
	})
}

// FuzzHeader: a header is read back as written, and bytes that are none are told from one.
func FuzzHeader(f *testing.F) {
	f.Add(header{serial: 3, first: 9, prev: 2, prevEnd: 2000, prevLast: 8, before: 8, salt: 1}.encode(), uint16(3))
	f.Add([]byte("ABCSWAL\x02"), uint16(0))
	f.Add([]byte(nil), uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, flip uint16) {
		otherVersion(data)
		h, damaged, ok := decodeHeader(data)
		if !ok {
			return
		}
		again, stillDamaged, stillOK := decodeHeader(h.encode())
		if again != h || stillDamaged || !stillOK {
			t.Fatalf("%+v was read back as %+v", h, again)
		}
		if !damaged {
			data = slices.Clone(data[:segmentHeader])
			data[int(flip)%segmentHeader] ^= 1
			if again, damaged, ok := decodeHeader(data); !ok || !damaged || again != h {
				t.Fatalf("one damaged byte: %+v, told %t, readable %t", again, damaged, ok)
			}
		}
	})
}

var _ io.ReaderAt = (*memory)(nil)
