package wal

import (
	"errors"
	"fmt"
)

// commit does what the members of g want, for all of them or for none, and tells each by its err and got. It returns by
// how many bytes the log has become smaller than the queue believes.
func (l *Log) commit(g *group) (freed int64) {
	before := l.State().Bytes
	err := l.write(g)
	for _, m := range g.members {
		m.err = err
	}
	if err == nil {
		l.release(g)
	}
	return before + int64(len(g.buf)) - l.State().Bytes
}

func (l *Log) write(g *group) error {
	if l.tainted {
		if err := l.reseat(); err != nil {
			return errors.Join(ErrDisk, err)
		}
	}
	if s := l.active(); s.end+int64(len(g.buf)) > l.opts.SegmentBytes || l.next+g.records() > s.limit() {
		if err := l.roll(); err != nil {
			return errors.Join(ErrDisk, err)
		}
	}
	s := l.active()
	next := l.next
	for _, m := range g.members {
		if buf := g.buf[m.start:m.end]; len(buf) > 0 {
			seal(buf, m.kind, m.count, next, s.salt)
			m.got = Range{next, next + Position(m.count) - 1}
			next += Position(m.count)
		}
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
		if err := s.file.Sync(); err != nil {
			return l.undo(s, fmt.Errorf("sync %s: %w", s.name(), err), true)
		}
	}
	l.publish(s, g, next)
	return nil
}

func (g *group) records() (n Position) {
	for _, m := range g.members {
		n += Position(m.count)
	}
	return n
}

func (l *Log) publish(s *segment, g *group, next Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range g.members {
		switch m.kind {
		case kindRecords:
			s.mark(m.got.First, s.end+int64(m.start))
		case kindTruncate:
			l.state.Truncated = max(l.state.Truncated, m.through)
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
		l.settled(s)
	}
	for _, m := range g.members {
		if m.kind == 0 {
			m.got.Last = l.state.Written
		}
	}
}

// settled notes, under the lock, that a sync has put all there is on disk.
func (l *Log) settled(s *segment) {
	s.synced = s.end
	l.state.Synced, l.kept = l.state.Written, l.state.Truncated
}

var zeroes [64 << 10]byte

// zeroAhead is how far a synced segment is filled with zeroes before its frames: a sync that changes neither length nor
// extents spares the file system's journal.
const zeroAhead = 1 << 20

// fillAhead makes room for n bytes and more. Failing is no fault: the write that follows finds out.
func (l *Log) fillAhead(s *segment, n int64) {
	if s.end+n <= s.zeroEnd {
		return
	}
	at := max(s.zeroEnd, s.end+n)
	target := min(s.end+n+zeroAhead, l.opts.SegmentBytes, s.end+l.opts.MaxBytes-l.state.Bytes)
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

// release deletes the segments that g's truncations have emptied.
func (l *Log) release(g *group) {
	if !g.truncates() {
		return
	}
	s := l.active()
	if l.state.Truncated == l.state.Written && s.end > l.opts.SegmentBytes/4 {
		if l.roll() != nil {
			return
		}
		s = l.active()
	}
	given := 0
	for given < len(l.chain)-1 && l.chain[given].last <= l.state.Truncated {
		given++
	}
	if given == 0 {
		return
	}
	// The truncation must be on disk first, else a crash would show a log whose beginning is missing without a reason.
	if s.synced < s.end {
		if err := s.file.Sync(); err != nil {
			l.tainted = true
			return
		}
	}
	l.mu.Lock()
	gone := l.chain[:given]
	l.chain = append([]*segment(nil), l.chain[given:]...)
	l.settled(s)
	for _, old := range gone {
		l.state.Bytes -= old.end
	}
	l.mu.Unlock()
	for _, old := range gone {
		_ = l.fs.Remove(old.name()) // what stays is found and deleted by the next Open
	}
}

func (g *group) truncates() bool {
	for _, m := range g.members {
		if m.kind == kindTruncate {
			return true
		}
	}
	return false
}
