package rules

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones must mean the same on every machine, and a Lambda image may have none

	"github.com/go-json-experiment/json/jsontext"
)

// clock reads the instant at which an event happened.
type clock struct {
	path   string
	slot   int
	line   int
	layout string // Go's; empty: RFC 3339, or a number where unit is set
	zone   *time.Location
	unit   string // "s", "ms", or empty for text
	ahead  time.Duration
}

// epochSplit is the number at which Unix seconds (until the year 5138) hand over to Unix milliseconds (from 1973, or
// before 1966), so that neither is ever taken for the other.
const epochSplit = 100_000_000_000

// read returns the instant that v names, or what is wrong with it.
func (c *clock) read(v value, now time.Time, scratch []byte) (moment time.Time, wrong string) {
	switch {
	case c.unit != "":
		moment, wrong = c.epoch(v)
	case v.kind != jsontext.KindString:
		wrong = v.describe() + "; send text"
		if v.kind == jsontext.KindNumber {
			wrong = `is a number; say in the rule file what it counts, with unit: s or unit: ms`
		}
	case c.layout != "":
		var err error
		if moment, err = time.ParseInLocation(c.layout, string(v.appendText(scratch)), c.zone); err != nil {
			wrong = fmt.Sprintf("is not a time in the layout %q; send it so, or change the layout", c.layout)
		}
	default:
		text := v.appendText(scratch)
		// The library lets pass hours of one digit and decimal commas, which RFC 3339 does not know.
		if err := moment.UnmarshalText(text); err != nil || text[13] != ':' || bytes.IndexByte(text, ',') >= 0 {
			wrong = "is not a time in RFC 3339; send one such as 2006-01-02T15:04:05Z, " +
				"or say its layout or unit in the rule file"
		}
	}
	switch {
	case wrong != "":
	case moment.Before(earliest) || moment.After(latest):
		wrong = "lies outside the years 1 to 9999; send the time of the event"
	case moment.After(now.Add(c.ahead)):
		wrong = fmt.Sprintf("lies more than %s ahead of now; set the producer's clock right, or raise max_ahead",
			spellAhead(c.ahead))
	}
	return moment, wrong
}

func (c *clock) epoch(v value) (time.Time, string) {
	if v.kind != jsontext.KindNumber {
		return time.Time{}, v.describe() + "; send a number without quotes"
	}
	n, flaw := parseNumber(v.raw).floor(0)
	switch seconds := n > -epochSplit && n < epochSplit; {
	case flaw != fits:
		return time.Time{}, "is beyond any time; send Unix time in the unit that the rule file names"
	case c.unit == "s" && !seconds:
		return time.Time{}, "looks like milliseconds where the rule file says seconds; send seconds, or write unit: ms"
	case c.unit == "s":
		return time.Unix(n, 0), ""
	case seconds:
		return time.Time{}, "looks like seconds where the rule file says milliseconds; send milliseconds, or write unit: s"
	default:
		return time.UnixMilli(n), ""
	}
}

func spellAhead(d time.Duration) string { return strings.TrimSuffix(d.String(), "0m0s") }

// checkLayout refuses a layout that cannot tell days apart, or halves of the day, or that reads a zone's abbreviation,
// which names different offsets in different places.
func checkLayout(layout string, zone *time.Location) error {
	if strings.Contains(layout, "MST") {
		return errors.New("a zone's abbreviation is ambiguous; use an offset such as -0700, or drop it and say zone")
	}
	for _, probe := range []time.Time{
		time.Date(2001, 2, 3, 16, 5, 6, 0, zone), time.Date(1998, 12, 31, 23, 58, 59, 0, zone), time.Date(2012, 11, 10, 9,
			8, 7, 0, zone),
	} {
		back, err := time.ParseInLocation(layout, probe.Format(layout), zone)
		if err != nil {
			return errors.New("no time can be written so and read back; spell the reference time 2006-01-02 15:04:05 your way")
		}
		if !sameAtSomePrecision(back, probe) {
			return errors.New("it loses the year, the day or the half of the day; " +
				"spell the reference time 2006-01-02 15:04:05 your way, with year, month and day")
		}
	}
	return nil
}

// sameAtSomePrecision reports whether got is want cut to seconds, minutes, hours or days.
func sameAtSomePrecision(got, want time.Time) bool {
	year, month, day := want.Date()
	hour, minute, second := want.Clock()
	for _, cut := range [][3]int{{hour, minute, second}, {hour, minute, 0}, {hour, 0, 0}, {0, 0, 0}} {
		if got.Equal(time.Date(year, month, day, cut[0], cut[1], cut[2], 0, want.Location())) {
			return true
		}
	}
	return false
}
