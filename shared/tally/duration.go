package tally

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxDuration is the longest span of time that a rule, a query or a setting may name: 100 years of 365 days.
const MaxDuration = 36500 * 24 * time.Hour

// ErrDuration reports text that is not a duration as ParseDuration reads it, or one beyond MaxDuration.
var ErrDuration = errors.New("not a duration")

var units = []struct {
	letter byte
	length time.Duration
}{{'w', 7 * 24 * time.Hour}, {'d', 24 * time.Hour}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second}}

// ParseDuration reads one whole number above 0 and one unit: "90s", "15m", "6h", "400d", "2w". A day is 24 hours and a
// week 7 days, as UTC has them. Anything else is an ErrDuration whose text says what to write.
func ParseDuration(text string) (time.Duration, error) {
	if len(text) < 2 || text[0] < '1' || text[0] > '9' {
		return 0, badDuration(text)
	}
	count, err := strconv.ParseUint(text[:len(text)-1], 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, badDuration(text)
	}
	for _, unit := range units {
		switch {
		case unit.letter != text[len(text)-1]:
		case err != nil || count > uint64(MaxDuration/unit.length):
			return 0, fmt.Errorf("%w: %q is longer than %s", ErrDuration, text, FormatDuration(MaxDuration))
		default:
			return time.Duration(count) * unit.length, nil
		}
	}
	return 0, badDuration(text)
}

func badDuration(text string) error {
	return fmt.Errorf("%w: %q; write a whole number above 0 and one of s, m, h, d, w, such as 90s, 6h or 400d",
		ErrDuration, text)
}

// FormatDuration writes d in its largest unit that leaves no rest: 60m is "1h", 14d is "2w", 36h stays "36h". It is the
// one spelling under which a window is stored. d must be whole seconds.
func FormatDuration(d time.Duration) string {
	for _, unit := range units {
		if d%unit.length == 0 && d != 0 {
			return strconv.FormatInt(int64(d/unit.length), 10) + string(unit.letter)
		}
	}
	return d.String()
}
