package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// create makes the segment that h describes and its file with the given frames of another one, durable under its name,
// but does not yet add it to the chain.
func (l *Log) create(h header, frames []frame) (*segment, error) {
	if l.serial >= maxSerial {
		return nil, errors.New("begin segment: the serials are used up: drain the log and move its directory away")
	}
	l.serial++ // also burnt by a failure, which may leave a file of this name
	h.serial, h.salt = l.serial, l.opts.newSalt()
	s := &segment{extent: extent{header: h, end: segmentHeader, last: h.first - 1}}
	buf := s.adopt(h.encode(), frames)
	s.synced, s.zeroEnd = s.end, s.end
	temp := s.name() + tempSuffix
	f, err := l.fs.Create(temp)
	if err != nil {
		return nil, fmt.Errorf("begin segment: %w", err)
	}
	_, err = f.WriteAt(buf, 0)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin segment: %w", err), f.Close(), l.fs.Remove(temp))
	}
	// From here on a crash may leave the new segment under its name, whatever is removed below: recovery would take it
	// for the newest, and what is written to the old one from now on for void. So the old one is not written to until
	// another new segment passes over this one.
	tainted := l.tainted
	l.tainted = true
	if err = l.fs.Rename(temp, s.name()); err == nil {
		err = l.fs.SyncDir()
	}
	if err != nil {
		_, _ = l.fs.Remove(temp), l.fs.Remove(s.name())
		return nil, errors.Join(fmt.Errorf("begin segment: %w", err), f.Close())
	}
	l.tainted = tainted
	s.file = f
	return s, nil
}

func (o *Options) newSalt() uint32 {
	if o.salt != nil {
		return o.salt()
	}
	return rand.Uint32() | 1
}

// adopt appends frames of another segment to buf, the bytes of s so far.
func (s *segment) adopt(buf []byte, frames []frame) []byte {
	for _, f := range frames {
		at := len(buf)
		buf = append(append(buf, make([]byte, frameHeader)...), f.payload...)
		seal(buf[at:], f.kind, f.count, f.first, s.salt)
		s.mark(f.first, int64(at))
		s.last = f.next() - 1
	}
	s.end = int64(len(buf))
	return buf
}

// roll begins a new segment behind the active one, which is synced and never written to again.
func (l *Log) roll() error {
	s := l.active()
	if s.synced < s.end {
		if err := s.file.Sync(); err != nil {
			l.tainted = true
			return l.reseat()
		}
	}
	n, err := l.create(s.follow(l), nil)
	if err != nil {
		return err
	}
	_ = s.file.Truncate(s.end) // the zeroes ahead; the new header says where the frames end
	_ = s.file.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.file = nil
	l.settled(s)
	l.chain = append(l.chain, n)
	l.state.Bytes += n.end
	return nil
}

// follow is the header of a segment behind s, but for the reservation when it must lie higher.
func (s *segment) follow(l *Log) header {
	return header{
		first: s.last + 1, prev: s.serial, prevEnd: s.end, prevLast: s.last, before: s.before + s.records(),
		truncated: l.state.Truncated, gone: l.gone,
	}
}

// undo takes back the bytes that a failed group may have left behind the end of s. After a failed sync the page cache
// can no longer be trusted to reach the disk, so the segment is given up as well. unsure says that neither worked.
func (l *Log) undo(s *segment, cause error, syncFailed bool) (unsure bool, err error) {
	cut := s.file.Truncate(s.end)
	s.zeroEnd = s.end
	if cut == nil && !syncFailed {
		// A whole frame of a group may be among the bytes: the cut must be on disk before anybody is told of the
		// failure, or a crash of the host could bring the frame back.
		if cut = s.file.Sync(); cut == nil {
			l.mu.Lock()
			l.settled(s)
			l.mu.Unlock()
			return false, cause
		}
	}
	l.tainted = true
	if err := l.reseat(); err != nil {
		return true, errors.Join(cause, cut, err)
	}
	return false, cause
}

// reseat moves what the active segment holds behind its last sync into a new one, whose header declares everything
// behind that point of the old one void. Until it has succeeded nothing is appended.
func (l *Log) reseat() error {
	s := l.active()
	tail, err := l.tail(s)
	if err != nil {
		return err
	}
	h := s.follow(l)
	h.first, h.prevEnd = l.next, s.synced
	if len(tail) > 0 {
		h.first = tail[0].first
	}
	h.prevLast, h.before = h.first-1, s.before+uint64(h.first-s.first)
	emptied := h.first == s.first // no record stays behind
	if emptied {
		h.prev, h.prevEnd, h.prevLast = s.prev, s.prevEnd, s.prevLast
	}
	n, err := l.create(h, tail)
	if err != nil {
		return err
	}
	if !emptied {
		_ = s.file.Truncate(s.synced) // void
	}
	_ = s.file.Close()
	l.mu.Lock()
	l.state.Bytes += n.end - (s.end - s.synced)
	s.file, s.end, s.last = nil, s.synced, h.first-1
	if emptied {
		l.state.Bytes -= s.end
		l.chain = l.chain[: len(l.chain)-1 : len(l.chain)-1]
	}
	l.chain = append(l.chain, n)
	l.settled(n)
	l.tainted = false
	l.mu.Unlock()
	if emptied {
		_ = l.fs.Remove(s.name())
	}
	return nil
}

// tail reads the frames with records of s behind its last sync.
func (l *Log) tail(s *segment) ([]frame, error) {
	buf := make([]byte, s.end-s.synced)
	if len(buf) == 0 {
		return nil, nil
	}
	if _, err := s.file.ReadAt(buf, s.synced); err != nil {
		return nil, fmt.Errorf("read back %s: %w", s.name(), err)
	}
	var frames []frame
	for expect := s.first; len(buf) > 0; {
		f, need, ok := open(buf, s.salt, bounds{int64(len(buf)), expect, s.limit()})
		if !ok {
			return nil, fmt.Errorf("read back %s: its unsynced end is damaged", s.name())
		}
		if f.kind == kindRecords {
			frames = append(frames, f)
		}
		buf, expect = buf[need:], f.next()
	}
	return frames, nil
}
