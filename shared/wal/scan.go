package wal

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
)

// Scan yields the records at positions from to through that are written and not truncated, in order. Data is lent: it
// is valid until the next record is asked for, and appending to it cannot reach a neighbour. Damaged stretches are
// reported (Options.OnDamage, State) and passed over; no byte of them is ever yielded. An error ends the scan: the disk
// did not answer, or the log is closed. Each scan has one file open at a time.
func (l *Log) Scan(from, through Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		state := l.State()
		s := scan{log: l, at: max(from, state.Truncated+1), through: min(through, state.Written), yield: yield}
		for !s.done {
			if l.isClosed() {
				yield(Record{}, fmt.Errorf("scan: %w", ErrClosed))
				return
			}
			held, ok := l.holding(s.at, s.through)
			if !ok {
				return
			}
			if err := s.segment(&held); err != nil {
				yield(Record{}, fmt.Errorf("scan %s: %w", held.name(), err))
				return
			}
		}
	}
}

// holding returns the first segment that holds records of [from, through].
func (l *Log) holding(from, through Position) (extent, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.chain {
		if from <= through && s.last >= from && s.first <= through && s.last >= s.first {
			found := s.extent
			found.index = slices.Clip(s.index)
			return found, true
		}
	}
	return extent{}, false
}

// current reports whether the first end bytes of a segment are still part of the log: they are not once it has been
// given up, or its end was moved on (reseat.go). What a scan finds wrong with other bytes is no damage.
func (l *Log) current(serial uint64, end int64) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return !l.closed && slices.ContainsFunc(l.chain, func(s *segment) bool { return s.serial == serial && s.end >= end })
}

// scan is one Scan under way.
type scan struct {
	log         *Log
	at, through Position // of the next record to yield, and the last
	yield       func(Record, error) bool
	done        bool     // at is behind through, or the caller wants no more
	records     []Record // of the frame at hand
}

// segment yields what s holds of the scan's range, and moves the scan behind it; where the log has moved on meanwhile,
// behind what was yielded.
func (c *scan) segment(s *extent) error {
	l := c.log
	file, err := l.fs.Open(s.name())
	if errors.Is(err, os.ErrNotExist) {
		if l.current(s.serial, s.end) {
			l.report(s, Damage{Segment: s.name(), Lost: s.records(), After: s.first - 1})
			c.at = s.last + 1
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r := readers.Get().(*reader)
	defer r.release()
	start := s.seek(c.at)
	*r = reader{file: file, salt: s.salt, off: start.offset, end: s.end, buf: r.buf}
	var seen extent
	var bad error
	expect, end, err := r.walk(s.name(), start.position, s.last+1, func(d Damage) { l.report(s, d) },
		func(f frame, at int64) bool {
			seen.mark(f.first, at)
			bad = c.frame(f, at)
			return bad == nil && !c.done
		})
	l.learn(s.serial, seen.index)
	switch {
	case err != nil || bad != nil || c.done:
		return errors.Join(err, bad)
	case end < s.end && !l.current(s.serial, s.end):
		return nil
	case end < s.end:
		l.report(s, Damage{
			Segment: s.name(), Offset: end, Bytes: s.end - end, Lost: uint64(s.last + 1 - expect), After: expect - 1,
		})
	}
	c.at = max(c.at, s.last+1)
	return nil
}

// frame yields the records of f that the scan wants.
func (c *scan) frame(f frame, at int64) error {
	if f.kind != kindRecords || f.next() <= c.at {
		return nil
	}
	var whole bool
	if c.records, whole = appendRecordsOf(c.records[:0], f); !whole {
		return fmt.Errorf("the frame at offset %d is intact but its records are not as expected: %w", at, ErrVersion)
	}
	for _, record := range c.records {
		if record.Position < c.at {
			continue
		}
		if record.Position > c.through || !c.yield(record, nil) {
			c.done = true
			return nil
		}
		c.at = record.Position + 1
	}
	c.done = c.at > c.through
	return nil
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
