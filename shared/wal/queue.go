package wal

import (
	"context"
	"errors"
	"sync"
)

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
	buf        []byte // frames with blank headers, end to end
	members    []*member
	records    int
	truncation *member // the one that has a frame; others ride on it
	sync       bool
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

// submit puts m into the open group and waits for its outcome, leading if need be.
func (l *Log) submit(ctx context.Context, m *member, size int64, sync bool, fill func([]byte) []byte) error {
	first, err := l.enter(ctx, m, size, sync, fill)
	if err != nil {
		return err
	}
	if first {
		l.leadOne()
	}
	return m.wait(ctx, l)
}

// enter waits until the open group has room for m, and reports whether m's caller must lead it.
func (l *Log) enter(
	ctx context.Context, m *member, size int64, sync bool, fill func([]byte) []byte,
) (first bool, err error) {
	q := &l.queue
	q.mu.Lock()
	for {
		switch {
		case q.closed:
			q.mu.Unlock()
			return false, ErrClosed
		case m.kind == kindRecords && q.used+size > l.opts.MaxBytes-l.opts.headroom():
			q.mu.Unlock()
			return false, ErrFull
		}
		if q.group.takes(m, size, l.opts.groupBytes()) {
			break
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	g := q.group
	if m.kind == kindTruncate {
		if g.truncation != nil { // one frame tells of both
			g.truncation.through = max(g.truncation.through, m.through)
			m.kind, size, fill = 0, 0, nil
		} else {
			g.truncation = m
		}
	}
	m.start = len(g.buf)
	if fill != nil {
		g.buf = fill(g.buf)
	}
	m.end = len(g.buf)
	g.members = append(g.members, m)
	g.records += int(m.count)
	g.sync = g.sync || sync
	q.used += size
	first, q.leading = !q.leading, true
	return first, nil
}

// takes reports whether m fits: a group must fit a fresh segment, in bytes and in positions.
func (g *group) takes(m *member, size, limit int64) bool {
	return int64(len(g.buf))+size <= limit && g.records+int(m.count) <= span
}

// wait returns m's outcome, or ErrUncertain when ctx ends first.
func (m *member) wait(ctx context.Context, l *Log) error {
	select {
	case v := <-m.wake:
		return m.follow(v, l)
	default:
	}
	select {
	case v := <-m.wake:
		return m.follow(v, l)
	case <-ctx.Done():
	}
	select {
	case v := <-m.wake: // both at once: the outcome is known
		return m.follow(v, l)
	default:
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
	*g = group{buf: g.buf[:0], members: g.members[:0]}
}
