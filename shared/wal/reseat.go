package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// create makes the segment that h describes and its file, durable under its name, but does not yet add it to the chain.
func (l *Log) create(h header) (*segment, error) {
	l.serial++ // also burnt by a failure, which may leave a file of this name
	h.serial, h.salt = l.serial, rand.Uint32()|1
	temp, name := segmentName(h.serial)+tempSuffix, segmentName(h.serial)
	f, err := l.fs.Create(temp)
	if err != nil {
		return nil, fmt.Errorf("begin segment: %w", err)
	}
	_, err = f.WriteAt(h.encode(), 0)
	if err == nil {
		err = f.Sync()
	}
	renamed := false
	if err == nil {
		err = l.fs.Rename(temp, name)
		renamed = err == nil
	}
	if err == nil {
		err = l.fs.SyncDir()
	}
	if err != nil {
		left := temp
		if renamed {
			left = name
		}
		return nil, errors.Join(fmt.Errorf("begin segment: %w", err), f.Close(), l.fs.Remove(left))
	}
	return &segment{
		header: h, file: f, last: h.first - 1,
		end: segmentHeader, synced: segmentHeader, zeroEnd: segmentHeader,
	}, nil
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
	n, err := l.create(header{
		first: l.next, prev: s.serial, prevEnd: s.end, prevLast: s.last, truncated: l.state.Truncated,
	})
	if err != nil {
		return err
	}
	_ = s.file.Truncate(s.end) // the zeroes ahead; the new header says where the frames end
	_ = s.file.Close()
	l.mu.Lock()
	s.file = nil
	l.settled(s)
	l.chain = append(l.chain, n)
	l.state.Bytes += n.end
	l.mu.Unlock()
	return nil
}

// undo takes back the bytes that a failed group may have left behind the end of s, and returns what to tell its
// members. After a failed sync the page cache can no longer be trusted to reach the disk, so the segment is given up as
// well.
func (l *Log) undo(s *segment, cause error, syncFailed bool) error {
	cut := s.file.Truncate(s.end)
	s.zeroEnd = s.end
	if cut == nil && !syncFailed {
		return errors.Join(ErrDisk, cause)
	}
	l.tainted = true
	if err := l.reseat(); err != nil && cut != nil {
		return errors.Join(ErrDisk, ErrUncertain, cause, cut, err)
	}
	return errors.Join(ErrDisk, cause)
}

// reseat moves what the active segment holds behind its last sync into a new one, whose header declares everything
// behind that point of the old one void. Until it has succeeded nothing is appended.
func (l *Log) reseat() error {
	s := l.active()
	h := header{first: l.next, prev: s.serial, prevEnd: s.synced, truncated: l.state.Truncated}
	tail, err := l.tail(s)
	if err != nil {
		return err
	}
	if len(tail) > 0 {
		h.first = tail[0].first
	}
	h.prevLast = h.first - 1
	emptied := s.synced == segmentHeader
	if emptied {
		h.prev, h.prevEnd, h.prevLast = s.prev, s.prevEnd, s.prevLast
	}
	n, err := l.create(h)
	if err != nil {
		return err
	}
	if err := n.adopt(tail); err != nil {
		return errors.Join(err, n.file.Close(), l.fs.Remove(n.name()))
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

// tail reads the frames of s behind its last sync.
func (l *Log) tail(s *segment) ([]frame, error) {
	buf := make([]byte, s.end-s.synced)
	if len(buf) == 0 {
		return nil, nil
	}
	if _, err := s.file.ReadAt(buf, s.synced); err != nil {
		return nil, fmt.Errorf("read back %s: %w", s.name(), err)
	}
	var frames []frame
	for len(buf) > 0 {
		f, need, ok := open(buf, s.salt, int64(len(buf)))
		if !ok {
			return nil, fmt.Errorf("read back %s: its unsynced end is damaged", s.name())
		}
		if f.kind == kindRecords {
			frames = append(frames, f)
		}
		buf = buf[need:]
	}
	return frames, nil
}

// adopt writes frames of another segment and syncs them.
func (s *segment) adopt(frames []frame) error {
	var buf []byte
	for _, f := range frames {
		at := len(buf)
		buf = append(append(buf, make([]byte, frameHeader)...), f.payload...)
		seal(buf[at:], f.kind, f.count, f.first, s.salt)
		s.mark(f.first, s.end+int64(at))
		s.last = f.next() - 1
	}
	if _, err := s.file.WriteAt(buf, s.end); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.end += int64(len(buf))
	s.synced = s.end
	return nil
}
