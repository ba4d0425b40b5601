package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

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

	found, err := survey(l.fs)
	if err != nil {
		return r, err
	}
	r.Foreign, l.serial = found.foreign, found.serial
	l.aside.files, l.aside.bytes = found.aside, found.kept
	for serial, name := range found.misnamed {
		if err := l.fs.Rename(name, segmentName(serial)); err != nil {
			return r, err
		}
	}
	chain, loose, void := link(found.segments)
	l.chain = chain
	if err := l.resume(&r, loose, found.scratched); err != nil {
		return r, err
	}
	// Nothing was deleted so far. The new segment is on disk, and what is deleted now is not needed, whatever of it a
	// crash brings back.
	for _, s := range void {
		_ = l.fs.Remove(s.name())
	}
	for _, name := range found.temps {
		_ = l.fs.Remove(name)
	}
	l.dropTruncated()
	err = l.putAside(found)
	r.Clean = r.Clean && len(r.Damage) == 0
	return r, err
}

// resume reads the segments that no other tells the end of, the newest among them, and begins a new one behind it.
func (l *Log) resume(r *Recovery, loose []*segment, scratched map[uint64]bool) error {
	if len(l.chain) == 0 {
		return l.begin(header{first: 1 + Position(l.serial)*span})
	}
	newest := l.active()
	l.state.Truncated, l.gone = newest.truncated, newest.gone
	l.state.Written = max(newest.prevLast, newest.truncated)
	for _, s := range loose {
		if err := l.readWhole(s, r); err != nil {
			return err
		}
	}
	if newest.last >= newest.first {
		l.state.Written = newest.last
	}
	l.state.Written = max(l.state.Written, l.state.Truncated)
	for _, s := range l.chain {
		l.state.Bytes += s.end
		if scratched[s.serial] {
			l.report(&s.extent, Damage{Segment: s.name(), Bytes: segmentHeader, After: s.first - 1})
		}
	}
	if err := l.syncOlder(); err != nil {
		return err
	}
	return l.goOn(newest, r.Clean && l.serial == newest.serial)
}

// syncOlder puts on disk what an owner that was killed may have left unsynced.
func (l *Log) syncOlder() error {
	for _, s := range l.chain[:len(l.chain)-1] {
		f, err := l.fs.Open(s.name())
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("sync %s: %w", s.name(), err)
		}
		s.synced = s.end
	}
	return nil
}

// readWhole finds out where the frames of s end, and cuts off what is behind them.
func (l *Log) readWhole(s *segment, r *Recovery) error {
	f, err := l.fs.Open(s.name())
	if err != nil {
		return err
	}
	newest := s == l.active()
	if newest {
		s.file = f
	} else {
		defer f.Close()
	}
	size := max(s.end, segmentHeader)
	reading := &reader{file: f, salt: s.salt, off: segmentHeader, end: size}
	clean := false
	expect, end, err := reading.walk(s.name(), s.first, s.limit(), func(d Damage) { l.report(&s.extent, d) },
		func(f frame, at int64) bool {
			s.mark(f.first, at)
			if through, gone := f.truncated(); through > l.state.Truncated {
				l.state.Truncated, l.gone = through, gone
			}
			clean = f.kind == kindClosed
			return true
		})
	if err != nil {
		return err
	}
	s.end, s.last = end, expect-1
	if !newest {
		return nil
	}
	torn, err := tornBytes(f, end, size)
	if err != nil {
		return err
	}
	r.Dropped, r.Clean = torn, clean && torn == 0 && len(r.Damage) == 0
	s.zeroEnd, s.synced = end, end
	if end < size {
		return f.Truncate(end)
	}
	return nil
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
	l.settled()
	h := s.follow(l)
	if !clean {
		h.first = max(s.limit(), 1+Position(l.serial)*span)
	}
	empty := s.records() == 0
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
	if empty {
		l.state.Bytes -= s.end
		l.chain = append(l.chain[:len(l.chain)-2], l.active())
		_ = l.fs.Remove(s.name()) // passed over: a later Open deletes what is still there
	}
	return nil
}

func (l *Log) begin(h header) error {
	s, err := l.create(h, nil)
	if err != nil {
		return err
	}
	l.chain = append(l.chain, s)
	l.state.Bytes += s.end
	l.next = h.first
	return nil
}

// dropTruncated deletes segments of which nothing is wanted: a crash came between their truncation and their removal.
func (l *Log) dropTruncated() {
	for len(l.chain) > 1 && l.chain[0].last <= l.state.Truncated {
		l.state.Bytes -= l.chain[0].end
		_ = l.fs.Remove(l.chain[0].name())
		l.chain = l.chain[1:]
	}
}

// putAside renames the files that are no segments of this log, and tells what is lost with them or with files that are
// missing.
func (l *Log) putAside(found *inventory) error {
	lost := l.missing()
	newest := uint64(0)
	if n := len(found.segments); n > 0 {
		newest = found.segments[n-1].serial
	}
	for _, f := range slices.Concat(found.headless, found.copies) {
		d, named := lost[f.serial]
		if named && slices.Contains(found.headless, f) {
			delete(lost, f.serial)
		}
		d.Segment, d.Bytes, d.Aside = f.name, f.size, found.asideName(f.name)
		d.Unknown = f.serial > newest && slices.Contains(found.headless, f)
		if err := l.fs.Rename(f.name, d.Aside); err != nil {
			return err
		}
		l.aside.files, l.aside.bytes = l.aside.files+1, l.aside.bytes+f.size
		l.note(f.serial, d)
	}
	for _, serial := range slices.Sorted(maps.Keys(lost)) {
		l.note(serial, lost[serial])
	}
	return nil
}

func (v *inventory) asideName(name string) string {
	aside := name + asideSuffix
	for i := 2; v.names[aside]; i++ {
		aside = fmt.Sprintf("%s@%d%s", name, i, asideSuffix)
	}
	v.names[aside] = true
	return aside
}

// missing returns what is lost with the segments that the chain should hold and does not, by serial. Every header tells
// how many records there were before it, so the count is exact however many segments are missing.
func (l *Log) missing() map[uint64]Damage {
	lost := map[uint64]Damage{}
	for i, s := range l.chain {
		after, count := l.state.Truncated, l.gone
		if i > 0 && l.chain[i-1].last > after {
			before := l.chain[i-1]
			after, count = before.last, before.before+before.records()
		}
		if s.prev == 0 || s.prevLast <= after || i > 0 && l.chain[i-1].serial == s.prev {
			continue
		}
		lost[s.prev] = Damage{Segment: segmentName(s.prev), Lost: s.before - min(count, s.before), After: after}
	}
	return lost
}
