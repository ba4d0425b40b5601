package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Damage is a stretch of a segment that cannot be read.
type Damage struct {
	Segment string `json:"segment"` // file name
	Offset  int64  `json:"offset"`  // first byte that is not part of an intact frame; 0 for a whole file
	Bytes   int64  `json:"bytes"`   // 0 where the file is missing
	Lost    uint64 `json:"lost"`    // records lost with it that had not been truncated
	// Unknown says that more records may be lost than Lost: of the newest segment nothing but its own bytes tells how
	// many it held.
	Unknown bool     `json:"unknown"`
	After   Position `json:"after"` // the last position before it
	Aside   string   `json:"aside"` // the file that keeps the bytes; empty where there are none or they could not be kept
}

func (d Damage) String() string {
	what := fmt.Sprintf("is damaged at offset %d for %d bytes", d.Offset, d.Bytes)
	if d.Bytes == 0 {
		what = "is missing or empty"
	}
	lost := fmt.Sprintf("%d records", d.Lost)
	if d.Unknown {
		lost = fmt.Sprintf("an unknown number of records, at least %d,", d.Lost)
	}
	return fmt.Sprintf("%s %s: %s after position %d are lost", d.Segment, what, lost, d.After)
}

// Aside files are bounded, for a disk that shows other damage on every reading must not fill itself with copies.
const (
	maxAside      = 64 // files
	maxAsideShare = 4  // and one part in so many of MaxBytes
)

// stretch is damage that has been told.
type stretch struct {
	from, to int64
	lost     uint64
}

func (d Damage) stretch() stretch {
	if d.Bytes == 0 {
		return stretch{0, math.MaxInt64, d.Lost}
	}
	return stretch{d.Offset, d.Offset + d.Bytes, d.Lost}
}

// report tells of damage once, and keeps its bytes aside. What is no longer part of the log is not told.
func (l *Log) report(s *extent, d Damage) {
	if !l.current(s.serial, d.Offset+d.Bytes) || l.told(s.serial, d) {
		return
	}
	if d.Bytes > 0 {
		d.Aside = l.keepAside(s, d)
	}
	l.note(s.serial, d)
}

func (l *Log) told(serial uint64, d Damage) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.knows(serial, d.stretch())
}

func (l *Log) knows(serial uint64, new stretch) bool {
	return slices.ContainsFunc(l.damaged[serial], func(old stretch) bool {
		return old.from <= new.from && new.to <= old.to
	})
}

// note counts damage and tells of it, unless it has been told. A stretch that grew counts for what it grew by.
func (l *Log) note(serial uint64, d Damage) {
	if l.count(serial, &d) && l.opts.OnDamage != nil {
		l.opts.OnDamage(d)
	}
}

func (l *Log) count(serial uint64, d *Damage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	new, grown := d.stretch(), false
	if l.knows(serial, new) {
		return false
	}
	var kept []stretch
	for _, old := range l.damaged[serial] {
		if old.to <= new.from || new.to <= old.from {
			kept = append(kept, old)
			continue
		}
		grown = true
		d.Lost -= min(d.Lost, old.lost)
		new = stretch{min(old.from, new.from), max(old.to, new.to), old.lost + d.Lost}
	}
	l.damaged[serial] = append(kept, new)
	if !grown {
		l.state.Damage++
	}
	l.state.Lost += d.Lost
	return true
}

// keepAside copies the damaged bytes to a file of their own, which nothing of this package deletes.
func (l *Log) keepAside(s *extent, d Damage) string {
	l.aside.Lock()
	defer l.aside.Unlock()
	name := fmt.Sprintf("%s@%d%s", s.name(), d.Offset, asideSuffix)
	to, err := l.fs.Open(name) // of an earlier run, which may have been ended before it was whole
	if errors.Is(err, os.ErrNotExist) {
		if l.aside.files >= maxAside || l.aside.bytes+d.Bytes > l.opts.MaxBytes/maxAsideShare {
			return ""
		}
		l.aside.files++
		l.aside.bytes += d.Bytes
		to, err = l.fs.Create(name)
	}
	if err != nil {
		return ""
	}
	defer to.Close()
	from, err := l.fs.Open(s.name())
	if err != nil {
		return ""
	}
	defer from.Close()
	_, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(from, d.Offset, d.Bytes))
	if errors.Join(err, to.Sync(), l.fs.SyncDir()) != nil {
		return ""
	}
	return name
}
