package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Recovery says what Open found.
type Recovery struct {
	Clean   bool     // the log had been closed in order
	Dropped int64    // bytes of a torn append that were cut off its end
	Damage  []Damage // stretches found by Open; older segments are read, and their damage found, by Scan
	Foreign []string // files in the directory that are not the log's; they are left alone
}

// Open takes the directory, recovers what it holds and returns a log ready for use. It reads the headers of all
// segments and the newest segment whole. Where another owner has the directory the error is a *LockedError.
func Open(o Options) (*Log, Recovery, error) {
	if err := o.applyDefaults(); err != nil {
		return nil, Recovery{}, fmt.Errorf("open log: %w", err)
	}
	fs := o.FS
	if fs == nil {
		dir, err := Dir(o.Dir)
		if err != nil {
			return nil, Recovery{}, err
		}
		fs = dir
	}
	unlock, err := fs.Lock()
	if err != nil {
		return nil, Recovery{}, fmt.Errorf("open log: %w", err)
	}
	l := &Log{fs: fs, opts: o, unlock: unlock, damaged: map[damageKey]bool{}}
	l.queue.group, l.queue.room = new(group), make(chan struct{})
	l.state.MaxBytes = o.MaxBytes
	report, err := l.recover()
	if err != nil {
		l.closeFiles()
		return nil, report, fmt.Errorf("open log: %w", err)
	}
	l.queue.used = l.state.Bytes
	return l, report, nil
}

// Close writes a mark by which the next Open knows that nothing is missing, syncs, and gives the directory up. Appends
// that are under way are finished first.
func (l *Log) Close() error {
	q := &l.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	m := &member{kind: kindClosed, start: len(q.group.buf), wake: make(chan verdict, 1)}
	q.group.buf = append(q.group.buf, make([]byte, frameHeader)...)
	m.end = len(q.group.buf)
	q.group.members = append(q.group.members, m)
	q.group.sync = true
	first := !q.leading
	q.leading = true
	q.mu.Unlock()
	if first {
		l.leadOne()
	}
	err := m.await(l)
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.closeFiles()
	return err
}

func (l *Log) closeFiles() {
	for _, s := range l.chain {
		if s.file != nil {
			s.file.Close()
		}
	}
	l.unlock()
}

func (l *Log) recover() (Recovery, error) {
	var r Recovery
	onDamage := l.opts.OnDamage
	l.opts.OnDamage = func(d Damage) {
		r.Damage = append(r.Damage, d)
		if onDamage != nil {
			onDamage(d)
		}
	}
	defer func() { l.opts.OnDamage = onDamage }()

	found, err := l.survey(&r)
	if err != nil {
		return r, err
	}
	l.link(found)
	if len(l.chain) == 0 {
		return r, l.begin(header{first: 1 + Position(l.serial)*span})
	}
	return r, l.resume(&r)
}

// survey reads the header of every segment and puts aside those that have none.
func (l *Log) survey(r *Recovery) ([]*segment, error) {
	names, err := l.fs.List()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var found []*segment
	for _, name := range names {
		serial, isSegment := segmentSerial(name)
		switch {
		case isSegment:
			l.serial = max(l.serial, serial)
			s, err := l.survive(name, serial)
			if err != nil {
				return nil, err
			}
			if s != nil {
				found = append(found, s)
			}
		case strings.HasSuffix(name, segmentSuffix+tempSuffix):
			// A crash while a segment was made: it held nothing yet.
			if err := l.fs.Remove(name); err != nil {
				return nil, err
			}
		case strings.HasSuffix(name, asideSuffix):
			base, _, _ := strings.Cut(strings.TrimSuffix(name, asideSuffix), "@")
			if serial, ok := segmentSerial(base); ok {
				l.serial = max(l.serial, serial)
			}
		case name != lockName:
			r.Foreign = append(r.Foreign, name)
		}
	}
	return found, nil
}

// survive returns the segment in the file, or nil if its header is beyond repair.
func (l *Log) survive(name string, serial uint64) (*segment, error) {
	f, err := l.fs.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	buf := make([]byte, min(size, segmentHeader))
	if err == nil && size > 0 {
		_, err = f.ReadAt(buf, 0)
	}
	err = errors.Join(err, f.Close())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	h, damaged, ok := decodeHeader(buf)
	s := &segment{header: h, end: size, last: h.first - 1, synced: size, zeroEnd: size}
	if !ok || h.serial != serial {
		s.serial = serial
		if err := l.fs.Rename(name, name+asideSuffix); err != nil {
			return nil, err
		}
		l.note(s, Damage{Segment: name, Bytes: size, Aside: name + asideSuffix})
		return nil, nil
	}
	if damaged {
		l.report(s, Damage{Segment: name, Bytes: segmentHeader, After: h.first - 1})
	}
	return s, nil
}

// link makes the chain of the segments found, oldest first. Each names the one that it follows: one that the newer ones
// pass over is void (its frames were moved on), one that is named but missing is lost.
func (l *Log) link(found []*segment) {
	for i, s := range slices.Backward(found) {
		if len(l.chain) == 0 {
			l.chain = append(l.chain, s)
			continue
		}
		newer := l.chain[0]
		missing := !slices.ContainsFunc(found[:i+1], func(o *segment) bool { return o.serial == newer.prev })
		switch {
		case s.serial == newer.prev:
			s.end, s.last = newer.prevEnd, newer.prevLast
		case missing && s.first < newer.first:
			s.last = min(newer.prevLast, s.limit()-1)
		default:
			_ = l.fs.Remove(s.name())
			continue
		}
		l.chain = slices.Insert(l.chain, 0, s)
	}
}

// resume reads the newest segment and goes on behind it.
func (l *Log) resume(r *Recovery) error {
	s := l.active()
	f, err := l.fs.Open(s.name())
	if err != nil {
		return err
	}
	s.file = f
	l.state.Truncated, l.state.Written = s.truncated, max(s.prevLast, s.truncated)
	if err := l.readNewest(s, r); err != nil {
		return err
	}
	l.state.Written = max(l.state.Written, l.state.Truncated)
	l.reportMissing()
	l.dropTruncated()
	for _, kept := range l.chain {
		l.state.Bytes += kept.end
	}
	return l.goOn(s, r.Clean)
}

func (l *Log) readNewest(s *segment, r *Recovery) error {
	size := s.end
	reading := &reader{file: s.file, salt: s.salt, off: segmentHeader, end: size}
	expect, end, err := l.walk(s, reading, s.first, s.limit(), func(f frame, at int64) bool {
		s.mark(f.first, at)
		l.state.Truncated = max(l.state.Truncated, f.truncated())
		r.Clean = f.kind == kindClosed
		return true
	})
	if err != nil {
		return err
	}
	if s.end, s.last = end, expect-1; s.last >= s.first {
		l.state.Written = s.last
	}
	r.Clean = r.Clean && len(r.Damage) == 0
	if end >= size {
		return nil
	}
	if r.Dropped, err = tornBytes(s.file, end, size); err != nil {
		return err
	}
	r.Clean = r.Clean && r.Dropped == 0
	s.zeroEnd, s.synced = end, end
	return s.file.Truncate(end)
}

// tornBytes counts the bytes of [from, to) up to the last that is not zero.
func tornBytes(f File, from, to int64) (torn int64, err error) {
	buf := make([]byte, min(readAhead, to-from))
	for at := from; at < to; at += int64(len(buf)) {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if kept := bytes.TrimRight(buf[:n], "\x00"); len(kept) > 0 {
			torn = at + int64(len(kept)) - from
		}
		if n == 0 {
			break
		}
	}
	return torn, nil
}

// goOn syncs what was found and begins a new segment behind it. Behind a log that was not closed in order, that segment
// lies above every position that may have been handed out. Either way its header is on disk before anybody appends, so
// that the mark of an orderly close is never taken for the end of what came after it.
func (l *Log) goOn(s *segment, clean bool) error {
	if err := s.file.Sync(); err != nil {
		return err
	}
	l.settled(s)
	h := header{
		first: s.last + 1, truncated: l.state.Truncated,
		prev: s.serial, prevEnd: s.end, prevLast: s.last,
	}
	if !clean {
		h.first = max(s.limit(), 1+Position(l.serial)*span)
	}
	empty := s.last < s.first
	if empty {
		h.prev, h.prevEnd, h.prevLast = s.prev, s.prevEnd, s.prevLast
	}
	if err := l.begin(h); err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return err
	}
	s.file = nil
	if !empty {
		return nil
	}
	l.state.Bytes -= s.end
	l.chain = slices.DeleteFunc(l.chain, func(o *segment) bool { return o == s })
	return l.fs.Remove(s.name())
}

func (l *Log) begin(h header) error {
	s, err := l.create(h)
	if err != nil {
		return err
	}
	l.chain = append(l.chain, s)
	l.state.Bytes += s.end
	l.next = h.first
	return nil
}

// reportMissing names the segments that the chain should hold and does not.
func (l *Log) reportMissing() {
	for i, s := range l.chain {
		var before Position
		if i > 0 {
			before = l.chain[i-1].last
			if l.chain[i-1].serial == s.prev {
				continue
			}
		}
		if before = max(before, l.state.Truncated); s.prev != 0 && s.prevLast > before {
			gone := &segment{header: header{serial: s.prev}}
			l.note(gone, Damage{Segment: gone.name(), Lost: uint64(s.prevLast - before), After: before})
		}
	}
}

// dropTruncated deletes segments of which nothing is wanted: a crash came between their truncation and their removal.
func (l *Log) dropTruncated() {
	for len(l.chain) > 1 && l.chain[0].last <= l.state.Truncated {
		_ = l.fs.Remove(l.chain[0].name())
		l.chain = l.chain[1:]
	}
}
