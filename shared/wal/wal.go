package wal

import (
	"errors"
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
	// ErrVersion reports a log, or a part of one, that another version of this package wrote. Nothing was changed.
	ErrVersion = errors.New("written by another version: open it with that one, or move the log's directory away")
	// ErrUncertain reports that the records may be in the log or not: the caller did not wait for the answer, or the
	// disk refused to take them back. Appending again under the same ids is safe where readers drop repeated ids.
	ErrUncertain = errors.New("the outcome is unknown: append again under the same ids")
)

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

	queue     queue
	consuming atomic.Bool
	closing   sync.Once
	closeErr  error

	mu      sync.RWMutex // guards what follows
	state   State
	chain   []*segment           // oldest first; the last is written to
	kept    Position             // a truncation up to here is on disk
	damaged map[uint64][]stretch // what was told, by serial
	closed  bool

	aside struct { // damage.go
		sync.Mutex
		files int
		bytes int64
	}

	// The leader's own: only the goroutine that leads the queue touches them.
	next    Position // of the next record
	serial  uint64   // of the newest segment
	tainted bool     // the active segment must not be written to: see reseat.go
	doubted bool     // a sync has failed: another proves nothing
	gone    uint64   // how many records were ever appended up to state.Truncated
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
