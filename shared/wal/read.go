package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// readAhead is how much of a segment is read at once.
const readAhead = 256 << 10

// reader walks the frames of one segment and finds the next intact one behind damage.
type reader struct {
	file File
	salt uint32
	off  int64 // of the next frame
	end  int64 // frames end at or before here
	buf  []byte
	at   int64 // offset of buf[0]
	work int64 // bytes checked in vain while searching
}

// readers lends the buffers of scans.
var readers = sync.Pool{New: func() any { return new(reader) }}

func (r *reader) release() {
	if cap(r.buf) > 8*readAhead { // a rare large frame; not kept
		r.buf = nil
	}
	*r = reader{buf: r.buf[:0]}
	readers.Put(r)
}

// searchFactor bounds the search behind damage: bytes that look like frame after frame must not cost more than this
// many readings of the segment.
const searchFactor = 64

// next returns the first intact frame at or behind off that holds positions of [low, high), and moves behind it. Its
// payload is valid until the next call. at is its offset; bytes from gap to at are damaged. ok is false where no frame
// is left; at is then the end. A frame that is intact but of another version is an error: it is no damage.
func (r *reader) next(low, high Position) (f frame, gap, at int64, ok bool, err error) {
	gap = r.off
	for r.off+frameHeader <= r.end {
		f, ok, err = r.frameAt(r.off, low, high)
		if err != nil {
			return frame{}, gap, r.off, false, err
		}
		if ok {
			at = r.off
			r.off += f.size()
			return f, gap, at, true, nil
		}
		if err = r.search(); err != nil {
			return frame{}, gap, r.off, false, err
		}
	}
	r.off = r.end
	return frame{}, gap, r.end, false, nil
}

func (r *reader) frameAt(off int64, low, high Position) (frame, bool, error) {
	window, err := r.window(off, frameHeader)
	if err != nil {
		return frame{}, false, err
	}
	in := bounds{r.end - off, low, high}
	f, need, ok := open(window, r.salt, in)
	if !ok && need > len(window) {
		if window, err = r.window(off, need); err != nil {
			return frame{}, false, err
		}
		f, need, ok = open(window, r.salt, in)
	}
	switch {
	case !ok:
		r.work += int64(need)
	case !f.known():
		return frame{}, false, fmt.Errorf("frame of version %d, kind %d at offset %d: %w", f.version, f.kind, off, ErrVersion)
	}
	return f, ok, nil
}

// search moves off to the next place that looks like a frame.
func (r *reader) search() error {
	mark := []byte{frameMark, version}
	for off := r.off + 1; off+frameHeader <= r.end; {
		window, err := r.window(off+4, len(mark))
		if err != nil {
			return err
		}
		if len(window) < len(mark) || r.work > searchFactor*r.end {
			break
		}
		if i := bytes.Index(window, mark); i >= 0 {
			r.off = off + int64(i)
			return nil
		}
		off += int64(len(window) - 1)
	}
	r.off = r.end
	return nil
}

// window returns at least need bytes from off on, or what the file has of them.
func (r *reader) window(off int64, need int) ([]byte, error) {
	if from := off - r.at; from >= 0 && from+int64(need) <= int64(len(r.buf)) {
		return r.buf[from:], nil
	}
	size := int(min(int64(max(need, readAhead)), r.end-off))
	if size <= 0 {
		return nil, nil
	}
	if cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	n, err := r.file.ReadAt(r.buf[:size], off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	r.buf, r.at = r.buf[:n], off
	return r.buf, nil
}

// walk calls visit for each intact frame from r's place on, until it returns false, and damaged for what lies between
// them. expect is the position that the first frame should have, high bounds all. It returns the position expected next
// and where the last intact frame ended; behind that, up to r.end, there is no intact frame unless visit stopped the
// walk.
func (r *reader) walk(
	name string, expect, high Position, damaged func(Damage), visit func(frame, int64) bool,
) (next Position, end int64, err error) {
	for {
		f, gap, at, ok, err := r.next(expect, high)
		if err != nil || !ok {
			return expect, gap, err
		}
		if gap < at {
			damaged(Damage{
				Segment: name, Offset: gap, Bytes: at - gap, Lost: uint64(f.first - expect), After: expect - 1,
			})
		}
		expect = f.next()
		if !visit(f, at) {
			return expect, r.off, nil
		}
	}
}
