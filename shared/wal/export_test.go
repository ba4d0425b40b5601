package wal

import (
	"context"
	"encoding/binary"
)

// WithSalt returns o with every new segment's salt from f.
func (o Options) WithSalt(f func() uint32) Options {
	o.salt = f
	return o
}

// Headroom is the part of MaxBytes that takes no records.
func (o Options) Headroom() int64 {
	_ = o.applyDefaults()
	return o.headroom()
}

// AppendTogether appends batches as that many callers whose appends meet in one group. No other call may be under way.
func (l *Log) AppendTogether(ctx context.Context, batches [][]Entry, d Durability) ([]Range, []error) {
	got, errs := make([]Range, len(batches)), make([]error, len(batches))
	members := make([]*member, len(batches))
	l.queue.leading = true
	for i, entries := range batches {
		size, err := l.opts.sizeOf(entries)
		if errs[i] = err; err != nil {
			continue
		}
		m := &member{kind: kindRecords, count: uint32(len(entries)), wake: make(chan verdict, 1)}
		_, errs[i] = l.enter(ctx, m, int64(size), d == Synced, func(b []byte) []byte { return appendRecords(b, entries) })
		if errs[i] == nil {
			members[i] = m
		}
	}
	l.leadOne()
	for i, m := range members {
		if m != nil {
			errs[i] = m.await(l)
			got[i] = m.got
		}
	}
	return got, errs
}

// Waiting is how many callers are in the open group, behind a leader at the disk.
func (l *Log) Waiting() int {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return len(l.queue.group.members)
}

// FutureFrame is an intact frame of the next version for the segment that begins with data.
func FutureFrame(data []byte) []byte {
	h, _, _ := decodeHeader(data)
	buf := make([]byte, frameHeader+10)
	seal(buf, kindRecords, 1, h.first, h.salt)
	buf[5] = version + 1
	binary.LittleEndian.PutUint32(buf, checksum(buf[4:], h.salt))
	return buf
}

// Forge is a frame as a segment with that salt would hold it.
func Forge(first Position, salt uint32, entries ...Entry) []byte {
	buf := appendRecords(nil, entries)
	seal(buf, kindRecords, uint32(len(entries)), first, salt)
	return buf
}
