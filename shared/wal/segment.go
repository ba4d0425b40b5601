package wal

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// A segment is one file. Its header is written twice, each copy with a checksum of its own, so that no single damaged
// sector or bit makes the frames behind it unreadable.
const (
	headerCopy    = 512 // the copies lie in different sectors
	segmentHeader = 2 * headerCopy
	// span is how many positions a segment may hand out. Its header reserves them, and is durable before its first
	// frame: a log that was not closed in order goes on above the reservation, so that no position that anybody was ever
	// told is used again, whatever the disk has lost.
	span = 1 << 20
)

var magic = [8]byte{'A', 'B', 'C', 'S', 'W', 'A', 'L', version}

// header is what a segment says of itself and of the one that it follows.
type header struct {
	salt      uint32
	serial    uint64   // its file's name; greater than that of every segment made before
	first     Position // the lowest position it may hold
	prev      uint64   // serial of the segment it follows; 0: none
	prevEnd   int64    // where the frames of that segment end; bytes behind it are void
	prevLast  Position // the last position of that segment
	truncated Position // everything up to here had been given up when the segment was made
}

func (h header) limit() Position { return h.first + span }

func (h header) encode() []byte {
	buf := make([]byte, segmentHeader)
	c := buf[:headerCopy]
	copy(c, magic[:])
	binary.LittleEndian.PutUint32(c[8:], h.salt)
	for i, n := range []uint64{
		h.serial, uint64(h.first), h.prev, uint64(h.prevEnd), uint64(h.prevLast), uint64(h.truncated),
	} {
		binary.LittleEndian.PutUint64(c[12+8*i:], n)
	}
	binary.LittleEndian.PutUint32(c[headerCopy-4:], checksum(c[:headerCopy-4], 0))
	copy(buf[headerCopy:], c)
	return buf
}

// decodeHeader reads the first intact copy. damaged says that a copy was not intact.
func decodeHeader(buf []byte) (h header, damaged, ok bool) {
	for at := 0; at < segmentHeader; at += headerCopy {
		if len(buf) < at+headerCopy {
			return h, true, ok
		}
		c := buf[at : at+headerCopy]
		if [8]byte(c[:8]) != magic || binary.LittleEndian.Uint32(c[headerCopy-4:]) != checksum(c[:headerCopy-4], 0) {
			damaged = true
			continue
		}
		number := func(i int) uint64 { return binary.LittleEndian.Uint64(c[12+8*i:]) }
		h, ok = header{
			salt: binary.LittleEndian.Uint32(c[8:]), serial: number(0), first: Position(number(1)), prev: number(2),
			prevEnd: int64(number(3)), prevLast: Position(number(4)), truncated: Position(number(5)),
		}, true
	}
	return h, damaged, ok
}

const (
	segmentSuffix = ".wal"
	tempSuffix    = ".new"
	asideSuffix   = ".damaged"
)

func segmentName(serial uint64) string { return fmt.Sprintf("%020d%s", serial, segmentSuffix) }

func segmentSerial(name string) (uint64, bool) {
	digits, found := strings.CutSuffix(name, segmentSuffix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, found && err == nil && len(digits) == 20 && n > 0
}

// point says that the frame at offset begins with position. A segment keeps one for every indexEvery bytes, so that a
// reader who goes on where it stopped reads little twice.
type point struct {
	position Position
	offset   int64
}

const indexEvery = 64 << 10

// segment is the log's view of one file. The log's state lock guards every field but file.
type segment struct {
	header
	end    int64    // where its frames end
	last   Position // the last position in it; first-1 while it holds none
	index  []point
	synced int64 // everything before this offset has been synced
	// Of the segment that is written to; used by the leader alone.
	file    File
	zeroEnd int64 // bytes from end to here are zeroes on disk, so that a sync need not change the file's length
}

func (s *segment) name() string { return segmentName(s.serial) }

func (s *segment) mark(position Position, offset int64) {
	if n := len(s.index); n == 0 || offset-s.index[n-1].offset >= indexEvery {
		s.index = append(s.index, point{position, offset})
	}
}

// seek returns a frame at or before the one that holds position.
func (s *segment) seek(position Position) point {
	at := point{s.first, segmentHeader}
	for _, p := range s.index {
		if p.position > position {
			break
		}
		at = p
	}
	return at
}
