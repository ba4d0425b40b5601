package wal

import (
	"errors"
	"fmt"
	"math"
)

// Options configure a Log. The zero value of every field but Dir is its default.
type Options struct {
	Dir          string // directory, made if absent; it may hold nothing else that ends in .wal
	FS           FS     // instead of Dir
	SegmentBytes int64  // size at which a new file is begun; default 16 MiB, at least 64 KiB
	// MaxBytes bounds all segments together; default 64 MiB, at least two segments. An eighth of a segment, at least
	// 8 KiB and at most 256 KiB, of it is not for records. Damaged stretches kept aside come on top, at most a quarter.
	MaxBytes  int64
	MaxRecord int // of one entry's id and data; default 1 MiB
	MaxFrame  int // of one append call; default 4 MiB, at most a segment
	// OnDamage is called once for every stretch of damaged bytes that is found, at Open or by a later Scan.
	OnDamage func(Damage)

	salt func() uint32 // of a new segment; random unless a test pins it
}

// headroom is the part of MaxBytes that takes no records: the log itself needs it to take truncations when it is full,
// to begin segments, and to close.
func (o *Options) headroom() int64 { return min(max(o.SegmentBytes/8, 8<<10), 256<<10) }

// groupBytes bounds a group so that it fits a fresh segment, with room for the frame that Close adds.
func (o *Options) groupBytes() int64 { return o.SegmentBytes - segmentHeader - frameHeader }

func (o *Options) applyDefaults() error {
	setDefault := func(field *int64, value int64) {
		if *field == 0 {
			*field = value
		}
	}
	record, frame := int64(o.MaxRecord), int64(o.MaxFrame)
	setDefault(&o.SegmentBytes, 16<<20)
	setDefault(&o.MaxBytes, max(64<<20, 2*o.SegmentBytes))
	setDefault(&frame, min(4<<20, o.SegmentBytes/4))
	setDefault(&record, min(1<<20, frame-frameHeader-16))
	o.MaxRecord, o.MaxFrame = int(record), int(frame)
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	refuse(o.SegmentBytes < 64<<10 || o.SegmentBytes > math.MaxInt32,
		"SegmentBytes %d: use 64 KiB to 2 GiB", o.SegmentBytes)
	refuse(o.MaxBytes < 2*o.SegmentBytes, "MaxBytes %d: use at least two segments, %d", o.MaxBytes, 2*o.SegmentBytes)
	refuse(frame < frameHeader+17 || frame > o.SegmentBytes-segmentHeader-frameHeader,
		"MaxFrame %d: use 41 to %d", frame, o.SegmentBytes-segmentHeader-frameHeader)
	refuse(record < 1 || record > frame-frameHeader-16,
		"MaxRecord %d: use 1 to %d, which MaxFrame allows", record, frame-frameHeader-16)
	refuse(o.Dir == "" && o.FS == nil, "Dir is empty: name the log's directory")
	return errors.Join(faults...)
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
