package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// A frame is what one append call wrote: there whole or not at all. doc.go draws it; the golden files pin it.
const (
	frameHeader = 24
	frameMark   = 0xA7 // first byte of a frame; never 0, so that a run of zeroes is no frame
	version     = 1
)

// The kinds of frame.
const (
	kindRecords  = 1 // for each record the lengths of id and data as uvarints, then all ids, then all data
	kindTruncate = 2 // two numbers of 8 bytes: a position up to which records are given up, and how many those are
	kindClosed   = 3 // the log was closed in order here; no payload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is a decoded header with its payload, which is borrowed.
type frame struct {
	version byte
	kind    byte
	count   uint32   // of records
	first   Position // of the first record; in a frame without records, of the next one to come
	payload []byte
}

func (f frame) size() int64    { return frameHeader + int64(len(f.payload)) }
func (f frame) next() Position { return f.first + Position(f.count) }

// known reports whether this version of the package knows what f means.
func (f frame) known() bool {
	return f.version == version && f.kind >= kindRecords && f.kind <= kindClosed
}

// truncated returns what a truncation gives up, else zeroes.
func (f frame) truncated() (through Position, gone uint64) {
	if f.kind != kindTruncate || len(f.payload) != 16 {
		return 0, 0
	}
	return Position(binary.LittleEndian.Uint64(f.payload)), binary.LittleEndian.Uint64(f.payload[8:])
}

// seal fills in the header of the frame that occupies buf: payload from frameHeader on, header still blank. salt ties
// it to its segment: bytes of another segment, or a frame inside a record's data, never pass for one of this segment.
func seal(buf []byte, kind byte, count uint32, first Position, salt uint32) {
	buf[4], buf[5], buf[6], buf[7] = frameMark, version, kind, 0
	binary.LittleEndian.PutUint32(buf[8:], uint32(len(buf)-frameHeader))
	binary.LittleEndian.PutUint32(buf[12:], count)
	binary.LittleEndian.PutUint64(buf[16:], uint64(first))
	binary.LittleEndian.PutUint32(buf, checksum(buf[4:], salt))
}

func checksum(b []byte, salt uint32) uint32 { return crc32.Update(salt, castagnoli, b) }

// bounds are what is possible for a frame at some place: no frame is larger than size or holds a position outside
// [low, high).
type bounds struct {
	size      int64
	low, high Position
}

// open reads the frame at the start of buf. It returns false where there is none that is whole and intact; need then
// says how many bytes a frame with this header would take, 0 where this cannot be a header. Of a frame of another
// version nothing but checksum and length is looked at.
func open(buf []byte, salt uint32, in bounds) (f frame, need int, ok bool) {
	if len(buf) < frameHeader || buf[4] != frameMark {
		return frame{}, 0, false
	}
	length := binary.LittleEndian.Uint32(buf[8:])
	f = frame{
		version: buf[5],
		kind:    buf[6],
		count:   binary.LittleEndian.Uint32(buf[12:]),
		first:   Position(binary.LittleEndian.Uint64(buf[16:])),
	}
	if int64(length)+frameHeader > in.size || f.version == version && !f.fits(length, in) {
		return frame{}, 0, false
	}
	need = frameHeader + int(length)
	if len(buf) < need || binary.LittleEndian.Uint32(buf) != checksum(buf[4:need], salt) {
		return frame{}, need, false
	}
	f.payload = buf[frameHeader:need:need]
	return f, need, true
}

// fits tells a header from other bytes without a checksum, so that a search through foreign bytes stays cheap.
func (f frame) fits(length uint32, in bounds) bool {
	return f.first >= in.low && f.first <= in.high && uint64(f.count) <= uint64(in.high-f.first) && f.count <= length
}

// appendRecords appends a frame of entries with a blank header.
func appendRecords(buf []byte, entries []Entry) []byte {
	buf = append(buf, make([]byte, frameHeader)...)
	for i := range entries {
		buf = binary.AppendUvarint(buf, uint64(len(entries[i].ID)))
		buf = binary.AppendUvarint(buf, uint64(len(entries[i].Data)))
	}
	for i := range entries {
		buf = append(buf, entries[i].ID...)
	}
	for i := range entries {
		buf = append(buf, entries[i].Data...)
	}
	return buf
}

// appendTruncate appends a truncation, all of it still blank.
func appendTruncate(buf []byte) []byte { return append(buf, make([]byte, truncateSize)...) }

const truncateSize = frameHeader + 16

func fillTruncate(buf []byte, through Position, gone uint64) {
	binary.LittleEndian.PutUint64(buf[frameHeader:], uint64(through))
	binary.LittleEndian.PutUint64(buf[frameHeader+8:], gone)
}

// appendRecordsOf appends the records of f to dst. Data is borrowed from f; all ids share one allocation. It returns
// false where the payload does not hold what the header says, which an intact frame of this package always does.
func appendRecordsOf(dst []Record, f frame) ([]Record, bool) {
	lengths, p, ids := f.payload, f.payload, 0
	for range f.count {
		id, n := binary.Uvarint(p)
		if n <= 0 || id > uint64(len(f.payload)) {
			return dst, false
		}
		_, m := binary.Uvarint(p[n:])
		if m <= 0 {
			return dst, false
		}
		p, ids = p[n+m:], ids+int(id)
	}
	if ids > len(p) {
		return dst, false
	}
	names, data := string(p[:ids]), p[ids:]
	for i := range f.count {
		id, n := binary.Uvarint(lengths)
		size, m := binary.Uvarint(lengths[n:])
		if size > uint64(len(data)) || id > uint64(len(names)) {
			return dst, false
		}
		lengths = lengths[n+m:]
		dst = append(dst, Record{Position: f.first + Position(i), ID: names[:id], Data: data[:size:size]})
		names, data = names[id:], data[size:]
	}
	return dst, len(data) == 0 && len(names) == 0
}
