package tally

import (
	"fmt"
	"math"
	"time"
)

// All is the name of the window that is one bucket without an end.
const All = "all"

// MaxWindow is the longest bucket: ten years of 365 days.
const MaxWindow = 3650 * 24 * time.Hour

// monday is the first start of a week before 1970, in Unix seconds: 1969-12-29.
const monday = -3 * 24 * 3600

const week = 7 * 24 * 3600

// Window is a way to cut time into buckets of one length, side by side, in UTC. Windows are equal when their buckets
// are. The zero value is the window All.
//
// Buckets are counted from 1970-01-01T00:00:00Z; those of whole weeks from the Monday before it, so that a week starts
// on Monday. There are no calendar months or years, since their lengths differ.
type Window struct {
	seconds int64 // 0: All
}

// ParseWindow reads the name of a window: "all", or a duration in its shortest spelling. A window has one name, because
// counts are stored under it: "60m" is refused with the advice to write "1h".
func ParseWindow(name string) (Window, error) {
	if name == All {
		return Window{}, nil
	}
	length, err := ParseDuration(name)
	if err != nil {
		return Window{}, fmt.Errorf("window: %w; or %q for one bucket without end", err, All)
	}
	if length > MaxWindow {
		return Window{}, fmt.Errorf("window %q is longer than %s; use a shorter one, or %q for one bucket without end",
			name, FormatDuration(MaxWindow), All)
	}
	if spelling := FormatDuration(length); spelling != name {
		return Window{}, fmt.Errorf("window %q is the window %s; write %s", name, spelling, spelling)
	}
	return Window{seconds: int64(length / time.Second)}, nil
}

// IsAll reports whether the window is the one bucket without end.
func (w Window) IsAll() bool { return w.seconds == 0 }

// Length returns the length of a bucket; 0 for All.
func (w Window) Length() time.Duration { return time.Duration(w.seconds) * time.Second }

// String returns the window's name, as Cell.Window has it and ParseWindow reads it.
func (w Window) String() string {
	if w.IsAll() {
		return All
	}
	return FormatDuration(w.Length())
}

// BucketStart returns the Cell.Bucket that t falls into: its first second in Unix time, 0 for All. It depends on the
// instant alone, never on t's zone. t must lie in the years 1 to 9999.
func (w Window) BucketStart(t time.Time) int64 {
	if w.IsAll() {
		return 0
	}
	seconds, origin := t.Unix(), int64(0)
	if w.seconds%week == 0 {
		origin = monday
	}
	into := (seconds - origin) % w.seconds
	if into < 0 {
		into += w.seconds
	}
	return seconds - into
}

// BucketEnd returns the first second after a bucket, which is the start of the next; the largest int64 for All. To
// visit the buckets of a range: for b := w.BucketStart(from); b < until; b = w.BucketEnd(b).
func (w Window) BucketEnd(bucket int64) int64 {
	if w.IsAll() {
		return math.MaxInt64
	}
	return bucket + w.seconds
}
