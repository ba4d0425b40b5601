package wal

import (
	"encoding/binary"
	"fmt"
	"slices"
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
	// maxSerial bounds the serials, so that no position overflows. A file named beyond it is none of ours.
	maxSerial = 1 << 43
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
	before    uint64   // how many records were ever appended below first
	truncated Position // everything up to here had been given up when the segment was made
	gone      uint64   // how many records were ever appended up to truncated
}

func (h header) limit() Position { return h.first + span }

func (h header) numbers() [8]uint64 {
	return [8]uint64{
		h.serial, uint64(h.first), h.prev, uint64(h.prevEnd), uint64(h.prevLast), h.before, uint64(h.truncated), h.gone,
	}
}

func (h header) encode() []byte {
	buf := make([]byte, segmentHeader)
	c := buf[:headerCopy]
	copy(c, magic[:])
	binary.LittleEndian.PutUint32(c[8:], h.salt)
	for i, n := range h.numbers() {
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
		h = header{
			salt: binary.LittleEndian.Uint32(c[8:]), serial: number(0), first: Position(number(1)), prev: number(2),
			prevEnd: int64(number(3)), prevLast: Position(number(4)), before: number(5),
			truncated: Position(number(6)), gone: number(7),
		}
		ok = true
	}
	return h, damaged, ok && h.plausible()
}

// plausible holds for every header that this package writes; it keeps arithmetic on a forged one from overflowing.
func (h header) plausible() bool {
	return h.serial > 0 && h.serial <= maxSerial && h.first > 0 && uint64(h.first) <= 1+(h.serial-1)*span &&
		h.prev < h.serial && h.prevEnd >= 0 && h.prevLast < h.first && h.gone <= h.before+span
}

// otherVersion reports which other version of this format the file that begins with buf is of, if it is of one.
func otherVersion(buf []byte) (byte, bool) {
	n := len(magic) - 1
	if len(buf) <= n || [7]byte(buf[:n]) != [7]byte(magic[:n]) || buf[n] == version {
		return 0, false
	}
	return buf[n], true
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
	return n, found && err == nil && len(digits) == 20 && n > 0 && n <= maxSerial
}

// point says that the frame at offset begins with position. A segment keeps one for every indexEvery bytes, so that a
// reader who goes on where it stopped reads little twice.
type point struct {
	position Position
	offset   int64
}

const indexEvery = 64 << 10

// extent is what readers need of a segment.
type extent struct {
	header
	end   int64    // where its frames end
	last  Position // the last position in it; first-1 while it holds none
	index []point
}

// segment is the log's view of one file. The leader alone changes it; extent under the log's state lock, since readers
// copy that.
type segment struct {
	extent
	synced  int64 // everything before this offset has been synced
	file    File  // of the segment that is written to
	zeroEnd int64 // bytes from end to here are zeroes on disk, so that a sync need not change the file's length
}

func (s *extent) name() string { return segmentName(s.serial) }

// records is how many records were ever appended to s, lost ones included: within a segment positions have no gaps.
func (s *extent) records() uint64 { return uint64(s.last + 1 - s.first) }

func (s *extent) mark(position Position, offset int64) {
	if n := len(s.index); n == 0 || offset-s.index[n-1].offset >= indexEvery {
		s.index = append(s.index, point{position, offset})
	}
}

// seek returns a frame at or before the one that holds position.
func (s *extent) seek(position Position) point {
	n, _ := slices.BinarySearchFunc(s.index, position+1, func(p point, want Position) int {
		return int(min(1, max(-1, int64(p.position)-int64(want))))
	})
	if n == 0 {
		return point{s.first, segmentHeader}
	}
	return s.index[n-1]
}
