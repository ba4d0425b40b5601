package wal

import (
	"errors"
	"fmt"
	"slices"
)

// commit does what the members of g want, for all of them or for none, and tells each by its err and got. It returns by
// how many bytes the log has become smaller than the queue believes.
func (l *Log) commit(g *group) (freed int64) {
	before := l.State().Bytes
	unsure, err := l.attempt(g)
	for _, m := range g.members {
		if m.err = err; unsure && m.kind != 0 {
			m.err = errors.Join(err, ErrUncertain)
		}
	}
	return before + int64(len(g.buf)) - l.State().Bytes
}

// attempt is write, and release behind it. A panic of the disk below becomes an error, for others wait for this leader.
func (l *Log) attempt(g *group) (unsure bool, err error) {
	written := false
	defer func() {
		if p := recover(); p != nil {
			l.tainted, l.doubted = true, true
			if !written {
				unsure, err = true, errors.Join(ErrDisk, fmt.Errorf("panic: %v", p))
			}
		}
	}()
	if unsure, err = l.write(g); err != nil {
		return unsure, errors.Join(ErrDisk, err)
	}
	written = true
	if len(l.chain) > 1 || g.truncation != nil {
		l.release()
	}
	return false, nil
}

// write puts g on disk. unsure says that it failed and yet the frames may be found again.
func (l *Log) write(g *group) (unsure bool, err error) {
	if err := l.makeRoom(g); err != nil {
		return false, err
	}
	s := l.active()
	next := l.next
	for _, m := range g.members {
		buf := g.buf[m.start:m.end]
		if len(buf) == 0 {
			continue
		}
		if m.kind == kindTruncate {
			fillTruncate(buf, m.through, l.ordinal(m.through))
		}
		seal(buf, m.kind, m.count, next, s.salt)
		m.got = Range{next, next + Position(m.count) - 1}
		next += Position(m.count)
	}
	if g.sync {
		l.fillAhead(s, int64(len(g.buf)))
	}
	if len(g.buf) > 0 {
		if _, err := s.file.WriteAt(g.buf, s.end); err != nil {
			return l.undo(s, fmt.Errorf("write %s: %w", s.name(), err), false)
		}
	}
	if g.sync {
		// Here the operating system has the frames and nobody has been told. A crash of the host leaves any part of
		// them; recovery keeps the whole ones, which their callers may find again or append again under the same ids.
		if err := l.sync(); err != nil {
			return l.undo(s, err, true)
		}
	}
	l.publish(s, g, next)
	return false, nil
}

// makeRoom sees to it that the active segment may be written to and has room for g, in bytes and in positions.
func (l *Log) makeRoom(g *group) error {
	if l.tainted {
		if err := l.reseat(); err != nil {
			return err
		}
	}
	n, next := int64(len(g.buf)), l.next+Position(g.records)
	if g.truncation != nil {
		if err := l.uncrowd(n); err != nil {
			return err
		}
	}
	for {
		s, err := l.active(), error(nil)
		switch {
		case next > l.chain[l.unsynced()].limit() && l.unsynced() < len(l.chain)-1:
			err = l.settle() // else one segment could not take in what is unsynced: reseat.go
		case s.end+n > l.opts.SegmentBytes || next > s.limit():
			err = l.roll()
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// uncrowd keeps a full log below MaxBytes however many truncations it is sent before one of them frees a segment: they
// go to a segment without records, which is replaced, header and all, by one that says the same.
func (l *Log) uncrowd(n int64) error {
	s, room := l.active(), l.opts.MaxBytes-l.state.Bytes-n
	switch {
	case s.records() > 0 && room < l.opts.headroom()/2:
		return l.roll()
	case s.records() == 0 && room < 2*segmentHeader:
		if err := l.settle(); err != nil {
			return err
		}
		return l.reseat()
	}
	return nil
}

// ordinal is how many records were ever appended up to p.
func (l *Log) ordinal(p Position) uint64 {
	for _, s := range slices.Backward(l.chain) {
		if p >= s.first {
			return s.before + uint64(min(p, s.last)+1-s.first)
		}
	}
	return l.gone
}

func (l *Log) publish(s *segment, g *group, next Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range g.members {
		switch m.kind {
		case kindRecords:
			s.mark(m.got.First, s.end+int64(m.start))
		case kindTruncate:
			if m.through > l.state.Truncated {
				l.state.Truncated, l.gone = m.through, l.ordinal(m.through)
			}
		case kindClosed:
			l.closed = true
		}
	}
	s.end += int64(len(g.buf))
	if next > l.next {
		l.next, s.last, l.state.Written = next, next-1, next-1
	}
	l.state.Bytes += int64(len(g.buf))
	if g.sync {
		l.settled()
	}
	for _, m := range g.members {
		if m.kind == 0 {
			m.got.Last = l.state.Written
		}
	}
}

// sync puts all segments on disk that are not, oldest first.
func (l *Log) sync() error {
	for _, s := range l.chain[l.unsynced():] {
		if s.file == nil {
			continue // synced before it was sealed
		}
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("sync %s: %w", s.name(), err)
		}
	}
	return nil
}

// settle syncs everything, or moves what cannot be synced.
func (l *Log) settle() error {
	if err := l.sync(); err != nil {
		l.tainted, l.doubted = true, true
		return l.reseat()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled()
	return nil
}

// unsynced is the place in the chain of the first segment that may not be on disk whole.
func (l *Log) unsynced() int {
	for i, s := range l.chain {
		if s.synced < s.end {
			return i
		}
	}
	return len(l.chain) - 1
}

// settled notes, under the lock, that a sync has put all there is on disk.
func (l *Log) settled() {
	active := l.active()
	for _, s := range l.chain[l.unsynced():] {
		s.synced = s.end
		if s != active && s.file != nil {
			_ = s.file.Close()
			s.file = nil
		}
	}
	l.state.Synced, l.kept = l.state.Written, l.state.Truncated
}

var zeroes [64 << 10]byte

// A synced segment is filled with zeroes before its frames: a sync that changes neither length nor extents spares the
// file system's journal. The first filling is short, for a log of few records; later ones are as long as what is there.
const (
	minZeroAhead = 64 << 10
	maxZeroAhead = 1 << 20
)

// fillAhead makes room for n bytes and more. Failing is no fault: the write that follows finds out.
func (l *Log) fillAhead(s *segment, n int64) {
	if s.end+n <= s.zeroEnd {
		return
	}
	ahead := min(max(s.end, minZeroAhead), maxZeroAhead)
	at := max(s.zeroEnd, s.end+n)
	target := min(s.end+n+ahead, l.opts.SegmentBytes, s.end+l.opts.MaxBytes-l.state.Bytes)
	for at < target {
		k := min(target-at, int64(len(zeroes)))
		if _, err := s.file.WriteAt(zeroes[:k], at); err != nil {
			_ = s.file.Truncate(s.end)
			s.zeroEnd = s.end
			return
		}
		at += k
	}
	s.zeroEnd = max(s.zeroEnd, at)
}

// release deletes the segments of which nothing is wanted any more.
func (l *Log) release() {
	if s := l.active(); l.state.Truncated == l.state.Written && s.end > l.opts.SegmentBytes/4 {
		if l.roll() != nil {
			return
		}
	}
	// The truncation must be on disk first, else a crash would show a log whose beginning is missing without a reason.
	// The header of the next segment brings it there; for its own sake it is only synced when space becomes short.
	if l.givenUp(l.kept) < l.givenUp(l.state.Truncated) && l.state.Bytes > l.opts.MaxBytes/2 {
		s := l.active()
		if err := s.file.Sync(); err != nil {
			l.tainted, l.doubted = true, true
			return
		}
		s.synced = s.end
		l.mu.Lock()
		l.kept = l.state.Truncated
		l.mu.Unlock()
	}
	l.drop(l.givenUp(l.kept))
}

// givenUp is how many segments, from the oldest on, hold nothing behind through.
func (l *Log) givenUp(through Position) (n int) {
	for n < len(l.chain)-1 && l.chain[n].last <= through {
		n++
	}
	return n
}

// drop deletes the n oldest segments.
func (l *Log) drop(n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	gone := l.chain[:n]
	l.chain = slices.Clone(l.chain[n:])
	for _, old := range gone {
		l.state.Bytes -= old.end
		delete(l.damaged, old.serial)
	}
	l.mu.Unlock()
	for _, old := range gone {
		if old.file != nil {
			_ = old.file.Close()
		}
		_ = l.fs.Remove(old.name()) // what stays is found and deleted by the next Open
	}
}
