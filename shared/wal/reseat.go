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

// maxUnsynced bounds the sealed segments whose sync is put off, and with them the files that are open for it.
const maxUnsynced = 16

// roll begins a new segment behind the active one, which is never written to again. Its sync is put off until somebody
// asks for one: records at Volatile may well be delivered and truncated before. A crash of the host then finds a
// damaged stretch where they were.
func (l *Log) roll() error {
	if len(l.chain)-l.unsynced() > maxUnsynced {
		if err := l.settle(); err != nil {
			return err
		}
	}
	s := l.active()
	n, err := l.create(s.follow(l), nil)
	if err != nil {
		return err
	}
	_ = s.file.Truncate(s.end) // the zeroes ahead; the new header says where the frames end
	s.zeroEnd = s.end
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.synced == s.end {
		_ = s.file.Close()
		s.file = nil
	}
	l.chain = append(l.chain, n)
	l.state.Bytes += n.end
	l.kept = l.state.Truncated // the new header says so
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
			s.synced = s.end
			return false, cause
		}
		syncFailed = true
	}
	l.tainted, l.doubted = true, l.doubted || syncFailed
	if err := l.reseat(); err != nil {
		return true, errors.Join(cause, cut, err)
	}
	return false, cause
}

// reseat moves what lies behind the last sync into a new segment, whose header declares everything behind that point
// void: the end of one segment, and those that follow it. Until it has succeeded nothing is appended. The new segment
// is one, however large, so that its name appearing is the one step from the old state to the new.
func (l *Log) reseat() error {
	if !l.doubted { // no sync has failed: then nothing but what lies behind the end need be left behind
		if l.doubted = l.sync() != nil; !l.doubted {
			l.mu.Lock()
			l.settled()
			l.mu.Unlock()
		}
	}
	first := l.unsynced()
	s, void := l.chain[first], l.chain[first+1:]
	var tail []frame
	for _, from := range l.chain[first:] {
		frames, err := from.tail()
		if err != nil {
			return err
		}
		tail = append(tail, frames...)
	}
	h := s.follow(l)
	h.first, h.prevEnd = l.next, s.synced
	if len(tail) > 0 {
		h.first = tail[0].first
	}
	h.prevLast, h.before = h.first-1, s.before+uint64(h.first-s.first)
	if h.first == s.first { // no record stays behind
		h.prev, h.prevEnd, h.prevLast = s.prev, s.prevEnd, s.prevLast
		void, first = l.chain[first:], first-1
	}
	n, err := l.create(h, tail)
	if err != nil {
		return err
	}
	l.moveOn(first, n, h)
	if s.file != nil {
		_ = s.file.Truncate(s.end) // what is behind is void
	}
	for _, old := range append(void, s) {
		if old.file != nil {
			_ = old.file.Close()
			old.file = nil
		}
	}
	for _, old := range void {
		_ = l.fs.Remove(old.name())
	}
	return nil
}

// moveOn makes n the segment behind the one at last in the chain, which ends before n's first record from now on.
func (l *Log) moveOn(last int, n *segment, h header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last >= 0 && l.chain[last].serial == h.prev {
		s := l.chain[last]
		s.last = min(s.last, h.first-1)
		if s.synced < s.end {
			s.end = s.synced
		}
	}
	l.chain = append(l.chain[:last+1:last+1], n)
	l.state.Bytes = 0
	for _, s := range l.chain {
		l.state.Bytes += s.end
	}
	l.settled()
	l.tainted, l.doubted = false, false
}

// tail reads the frames with records of s behind its last sync.
func (s *segment) tail() ([]frame, error) {
	buf := make([]byte, max(0, s.end-s.synced))
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
