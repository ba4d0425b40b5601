package wal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Position names a record: greater for every later one, never used twice. 0 is before the first.
type Position uint64

// Entry is a record to append.
type Entry struct {
	ID   string // 1 to MaxID bytes
	Data []byte // opaque; may be empty
}

// Record is a record of the log.
type Record struct {
	Position Position
	ID       string
	Data     []byte // lent: see Scan
}

// MaxID is the longest id of a record, in bytes.
const MaxID = 64 << 10

// Durability says what an append has survived when it returns.
type Durability uint8

const (
	// Volatile: the operating system has the bytes. They survive the end of the process, not the end of the host.
	Volatile Durability = iota
	// Synced: the disk has the bytes. They survive the end of the host.
	Synced
)

// Sentinels to branch on.
var (
	// ErrFull reports that the log holds as many bytes as it may. Truncate what has been delivered, then append again.
	ErrFull = errors.New("log is full: deliver and truncate records, or raise MaxBytes")
	// ErrTooLarge reports entries beyond MaxRecord, MaxFrame or MaxID. They never fit: split them or raise the limit.
	ErrTooLarge = errors.New("entries are larger than the log allows: split them, or raise MaxRecord or MaxFrame")
	// ErrEmptyID reports an entry without an id.
	ErrEmptyID = errors.New("an entry has no id: give each a non-empty one")
	// ErrClosed reports the use of a closed log.
	ErrClosed = errors.New("log is closed: open it again")
	// ErrDisk reports that the disk refused a write or sync. The records are not in the log, now or after a restart,
	// unless ErrUncertain is reported with it.
	ErrDisk = errors.New("the disk refused: look at its space and health, then append again")
	// ErrUncertain reports that the records may be in the log or not: the caller did not wait for the answer, or the
	// disk refused to take them back. Appending again under the same ids is safe where readers drop repeated ids.
	ErrUncertain = errors.New("the outcome is unknown: append again under the same ids")
)

// Options configure a Log. The zero value of every field but Dir is its default.
type Options struct {
	Dir          string // directory, made if absent; it may hold nothing else that ends in .wal
	FS           FS     // instead of Dir
	SegmentBytes int64  // size at which a new file is begun; default 16 MiB, at least 64 KiB
	MaxBytes     int64  // of all files together; default 64 MiB, at least two segments
	MaxRecord    int    // of one entry's id and data; default 1 MiB
	MaxFrame     int    // of one append call; default 4 MiB, at most a segment
	// OnDamage is called once for every stretch of damaged bytes that is found, at Open or by a later Scan.
	OnDamage func(Damage)
}

// Damage is a stretch of a segment that cannot be read.
type Damage struct {
	Segment string // file name
	Offset  int64  // first byte that is not part of an intact frame; 0 for a whole file
	Bytes   int64
	Lost    uint64   // records lost with it
	After   Position // the last intact position before it
	Aside   string   // the file that keeps the bytes; empty where they could not be kept
}

func (d Damage) String() string {
	return fmt.Sprintf("%s is damaged at offset %d for %d bytes: %d records after position %d are lost",
		d.Segment, d.Offset, d.Bytes, d.Lost, d.After)
}

// State is a consistent picture of a log.
type State struct {
	Truncated Position // records up to here have been given up
	Written   Position // the last record that the operating system has
	Synced    Position // the last record that the disk has
	Bytes     int64    // of all segments
	MaxBytes  int64
	Segments  int
	Damage    int    // stretches found so far
	Lost      uint64 // records lost in them
}

// Log is an open log. All methods may be called by many goroutines.
type Log struct {
	fs     FS
	opts   Options
	unlock func()

	queue     queue // append.go
	consuming atomic.Bool

	mu      sync.RWMutex // guards what follows
	state   State
	chain   []*segment // oldest first; the last is written to
	kept    Position   // a truncation up to here is on disk
	damaged map[damageKey]bool
	closed  bool

	// The leader's own: only the goroutine that leads the queue touches them.
	next    Position // of the next record
	serial  uint64   // of the newest segment
	tainted bool     // the active segment must not be written to: see reseat.go
}

type damageKey struct {
	serial uint64
	offset int64
}

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

// State returns a consistent picture of the log.
func (l *Log) State() State {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.state
	s.Segments = len(l.chain)
	return s
}

// Supports reports whether the log can give d.
func (l *Log) Supports(d Durability) bool { return d <= Synced }

// Consume makes the caller the log's only consumer until it calls release; false where there is one already.
func (l *Log) Consume() (release func(), ok bool) {
	if !l.consuming.CompareAndSwap(false, true) {
		return nil, false
	}
	return func() { l.consuming.Store(false) }, true
}

// active is the segment that is written to. Only the leader may use it without the lock.
func (l *Log) active() *segment { return l.chain[len(l.chain)-1] }

// report tells of damage once, and keeps its bytes aside.
func (l *Log) report(s *segment, d Damage) {
	if l.known(s, d) {
		return
	}
	d.Aside = l.keepAside(s, d)
	l.note(s, d)
}

func (l *Log) known(s *segment, d Damage) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.damaged[damageKey{s.serial, d.Offset}]
}

func (l *Log) note(s *segment, d Damage) {
	key := damageKey{s.serial, d.Offset}
	l.mu.Lock()
	known := l.damaged[key]
	if !known {
		l.damaged[key] = true
		l.state.Damage++
		l.state.Lost += d.Lost
	}
	l.mu.Unlock()
	if !known && l.opts.OnDamage != nil {
		l.opts.OnDamage(d)
	}
}

// keepAside copies the damaged bytes to a file of their own, which nothing of this package deletes.
func (l *Log) keepAside(s *segment, d Damage) string {
	name := fmt.Sprintf("%s@%d%s", s.name(), d.Offset, asideSuffix)
	buf := make([]byte, min(d.Bytes, l.opts.SegmentBytes))
	from, err := l.fs.Open(s.name())
	if err != nil {
		return ""
	}
	defer from.Close()
	n, _ := from.ReadAt(buf, d.Offset)
	to, err := l.fs.Create(name)
	if err != nil {
		return ""
	}
	defer to.Close()
	if _, err := to.WriteAt(buf[:n], 0); err != nil {
		return ""
	}
	return name
}

// held returns the segments that hold records of [from, to], with what is readable of each.
func (l *Log) held(from, to Position) []segment {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []segment
	for _, s := range l.chain {
		if s.last >= from && s.first <= to && s.last >= s.first {
			view := *s
			view.index = slices.Clip(s.index)
			out = append(out, view)
		}
	}
	return out
}
