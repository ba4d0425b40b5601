package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Range is the positions of one append call, first to last without a gap.
type Range struct{ First, Last Position }

// queue gathers what callers want done while a leader is at the disk. Whoever finds no leader becomes it; a leader that
// has done its group hands the next one to a member of it. So there is no goroutine that a frozen process would miss,
// and a lone caller never waits for another thread.
type queue struct {
	mu      sync.Mutex
	group   *group
	spare   *group
	leading bool
	room    chan struct{} // closed and replaced when a group is taken
	used    int64         // bytes of frames on disk or in the group
	closed  bool
}

// group is what one write and at most one sync do.
type group struct {
	buf     []byte // frames with blank headers, end to end
	members []*member
	sync    bool
}

// member is one caller's part of a group.
type member struct {
	kind       byte // 0: no frame, only the sync
	start, end int  // its frame in buf
	count      uint32
	through    Position // of kindTruncate
	wake       chan verdict
	got        Range
	err        error
}

type verdict uint8

const (
	done verdict = iota
	lead
)

// Append adds the entries as one frame: after a crash either all of them are there or none. It returns their positions
// once they have the durability d. Entries are copied before it returns. A full log answers ErrFull at once and goes on
// taking entries when Truncate has made room. ctx only bounds the waiting: when it ends while the entries are already
// with the disk, the error wraps ErrUncertain.
func (l *Log) Append(ctx context.Context, entries []Entry, d Durability) (Range, error) {
	if err := ctx.Err(); err != nil {
		return Range{}, fmt.Errorf("append: %w", err)
	}
	size, err := l.opts.sizeOf(entries)
	if err != nil || len(entries) == 0 {
		return Range{}, err
	}
	m := &member{kind: kindRecords, count: uint32(len(entries)), wake: make(chan verdict, 1)}
	err = l.submit(ctx, m, int64(size), d == Synced, func(buf []byte) []byte { return appendRecords(buf, entries) })
	if err != nil {
		return Range{}, fmt.Errorf("append: %w", err)
	}
	return m.got, nil
}

func (o *Options) sizeOf(entries []Entry) (int, error) {
	size := frameHeader
	for i := range entries {
		e := &entries[i]
		switch {
		case e.ID == "":
			return 0, fmt.Errorf("append: entry %d: %w", i, ErrEmptyID)
		case len(e.ID) > MaxID || len(e.ID)+len(e.Data) > o.MaxRecord:
			return 0, fmt.Errorf("append: entry %d of %d bytes: %w", i, len(e.ID)+len(e.Data), ErrTooLarge)
		}
		size += len(e.ID) + len(e.Data) + uvarintLen(len(e.ID)) + uvarintLen(len(e.Data))
		if size > o.MaxFrame || i >= span/2 {
			return 0, fmt.Errorf("append: %d entries: %w", len(entries), ErrTooLarge)
		}
	}
	return size, nil
}

func uvarintLen(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// Flush returns the last position that has the durability d, after making it so for every record appended before the
// call.
func (l *Log) Flush(ctx context.Context, d Durability) (Position, error) {
	if s := l.State(); d == Volatile || s.Synced == s.Written {
		if l.isClosed() {
			return 0, fmt.Errorf("flush: %w", ErrClosed)
		}
		return s.Written, nil
	}
	m := &member{wake: make(chan verdict, 1)}
	if err := l.submit(ctx, m, 0, true, nil); err != nil {
		return 0, fmt.Errorf("flush: %w", err)
	}
	return m.got.Last, nil
}

// Truncate gives up the records up to and including through, which need not exist. With Synced a crash does not bring
// them back; with Volatile it may. Whole segments are deleted only once their truncation is on disk.
func (l *Log) Truncate(ctx context.Context, through Position, d Durability) error {
	s := l.State()
	if through > s.Written {
		return fmt.Errorf("truncate through %d: the last record is %d; truncate only what was appended", through, s.Written)
	}
	m := &member{kind: kindTruncate, through: through, wake: make(chan verdict, 1)}
	fill, size := func(buf []byte) []byte { return appendTruncate(buf, through) }, int64(frameHeader+8)
	if through <= s.Truncated {
		if d == Volatile || through <= l.keptTruncation() {
			return nil
		}
		m.kind, fill, size = 0, nil, 0 // an earlier frame says so, but may not be on disk
	}
	if err := l.submit(ctx, m, size, d == Synced, fill); err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	return nil
}

// submit puts m into the open group and waits for its outcome, leading if need be.
func (l *Log) submit(ctx context.Context, m *member, size int64, sync bool, fill func([]byte) []byte) error {
	q := &l.queue
	q.mu.Lock()
	for {
		switch {
		case q.closed:
			q.mu.Unlock()
			return ErrClosed
		case m.kind == kindRecords && q.used+size > l.opts.MaxBytes:
			q.mu.Unlock()
			return ErrFull
		}
		if int64(len(q.group.buf))+size <= l.groupBytes() && len(q.group.members) < span/4 {
			break
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
		q.mu.Lock()
	}
	g := q.group
	m.start = len(g.buf)
	if fill != nil {
		g.buf = fill(g.buf)
	}
	m.end = len(g.buf)
	g.members = append(g.members, m)
	g.sync = g.sync || sync
	q.used += size
	first := !q.leading
	q.leading = true
	q.mu.Unlock()
	if first {
		l.leadOne()
	}
	return m.wait(ctx, l)
}

// groupBytes bounds a group so that it fits a fresh segment, with room for the frame that Close adds.
func (l *Log) groupBytes() int64 { return l.opts.SegmentBytes - segmentHeader - frameHeader }

// wait returns m's outcome, or ErrUncertain when ctx ends first.
func (m *member) wait(ctx context.Context, l *Log) error {
	select {
	case v := <-m.wake:
		return m.follow(v, l)
	case <-ctx.Done():
		go func() { _ = m.await(l) }() // it may yet be handed the lead
		return errors.Join(ctx.Err(), ErrUncertain)
	}
}

func (m *member) await(l *Log) error { return m.follow(<-m.wake, l) }

func (m *member) follow(v verdict, l *Log) error {
	if v == lead {
		l.leadOne()
		<-m.wake
	}
	return m.err
}

// leadOne commits the open group and hands the lead to a member of the next, if there is one.
func (l *Log) leadOne() {
	q := &l.queue
	q.mu.Lock()
	g := q.group
	q.group, q.spare = q.spare, nil
	if q.group == nil {
		q.group = new(group)
	}
	close(q.room)
	q.room = make(chan struct{})
	q.mu.Unlock()

	freed := l.commit(g)

	q.mu.Lock()
	q.used -= freed
	var heir *member
	if len(q.group.members) > 0 {
		heir = q.group.members[0]
	} else {
		q.leading = false
	}
	for _, m := range g.members {
		m.wake <- done
	}
	g.reset()
	q.spare = g
	q.mu.Unlock()
	if heir != nil {
		heir.wake <- lead
	}
}

// keepBuffer bounds what an idle group holds on to.
const keepBuffer = 1 << 20

func (g *group) reset() {
	if cap(g.buf) > keepBuffer {
		g.buf = nil
	}
	clear(g.members)
	g.buf, g.members, g.sync = g.buf[:0], g.members[:0], false
}

// keptTruncation is how far a truncation is known to be on disk.
func (l *Log) keptTruncation() Position {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.kept
}

func (l *Log) isClosed() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.closed
}
