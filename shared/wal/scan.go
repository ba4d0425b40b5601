package wal

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
)

// readers lends the buffers of scans.
var readers = sync.Pool{New: func() any { return new(reader) }}

// Scan yields the records at positions from to through that are written and not truncated, in order. Data is lent: it
// is valid until the next record is asked for, and appending to it cannot reach a neighbour. Damaged stretches are
// reported (Options.OnDamage, State) and passed over; no byte of them is ever yielded. An error ends the scan: the disk
// did not answer, or the log is closed.
func (l *Log) Scan(from, through Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if l.isClosed() {
			yield(Record{}, fmt.Errorf("scan: %w", ErrClosed))
			return
		}
		state := l.State()
		from, through := max(from, state.Truncated+1), min(through, state.Written)
		if from > through {
			return
		}
		for _, s := range l.held(from, through) {
			if more, err := l.scanSegment(&s, from, through, yield); err != nil {
				yield(Record{}, fmt.Errorf("scan %s: %w", s.name(), err))
				return
			} else if !more {
				return
			}
		}
	}
}

func (l *Log) scanSegment(s *segment, from, through Position, yield func(Record, error) bool) (more bool, err error) {
	file, err := l.fs.Open(s.name())
	if errors.Is(err, os.ErrNotExist) {
		if l.State().Truncated < s.last {
			l.report(s, Damage{Segment: s.name(), Lost: uint64(s.last - s.first + 1), After: s.first - 1})
		}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	r := readers.Get().(*reader)
	defer readers.Put(r)
	start := s.seek(from)
	*r = reader{file: file, salt: s.salt, off: start.offset, end: s.end, buf: r.buf[:0]}
	defer func() { r.file = nil }()

	var records []Record
	var points []point
	more = true
	expect, end, err := l.walk(s, r, start.position, s.last+1, func(f frame, at int64) bool {
		points = append(points, point{f.first, at})
		if f.kind != kindRecords || f.next() <= from {
			return true
		}
		var whole bool
		if records, whole = appendRecordsOf(records[:0], f); !whole {
			err = fmt.Errorf("the frame at offset %d is intact but not of this format: use a newer version", at)
			return false
		}
		for _, record := range records {
			if record.Position < from {
				continue
			}
			if record.Position > through || !yield(record, nil) {
				more = false
				return false
			}
		}
		return f.next() <= through
	})
	l.learn(s.serial, points)
	if err == nil && more && end < s.end && expect <= through {
		l.report(s, Damage{
			Segment: s.name(), Offset: end, Bytes: s.end - end, Lost: uint64(s.last + 1 - expect), After: expect - 1,
		})
	}
	return more && err == nil, err
}

// learn adds to the index of a segment that was found by Open what a scan saw of it.
func (l *Log) learn(serial uint64, points []point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.chain {
		if s.serial != serial {
			continue
		}
		for _, p := range points {
			if n := len(s.index); n == 0 || p.offset > s.index[n-1].offset {
				s.mark(p.position, p.offset)
			}
		}
	}
}
