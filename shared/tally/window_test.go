package tally

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration_LimitsAndOnePast(t *testing.T) {
	good := map[string]time.Duration{
		"1s": time.Second, "90s": 90 * time.Second, "15m": 15 * time.Minute, "36h": 36 * time.Hour,
		"400d": 400 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "36500d": MaxDuration, "5214w": 5214 * 7 * 24 * time.Hour,
		"3153600000s": MaxDuration,
	}
	for text, want := range good {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	bad := []string{"", "s", "1", "0s", "01h", "-1h", "+1h", "1 h", "1.5h", "1h30m", "1y", "1H", "1µ", "x1h", "1xh",
		"forever",
		"36501d", "5215w", "3153600001s", "99999999999999999999999s"}
	for _, text := range bad {
		if got, err := ParseDuration(text); !errors.Is(err, ErrDuration) {
			t.Errorf("ParseDuration(%q) = %v, %v; want ErrDuration", text, got, err)
		}
	}
}

func TestFormatDuration_IsTheOneSpelling(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 60 * time.Second: "1m", 24 * time.Hour: "1d", 36 * time.Hour: "36h", 7 * 24 * time.Hour: "1w",
		14 * 24 * time.Hour: "2w", 400 * 24 * time.Hour: "400d", 61 * time.Second: "61s",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%v) = %q, want %q", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(MaxDuration/time.Second)).Draw(t, "seconds")) * time.Second
		if back, err := ParseDuration(FormatDuration(d)); err != nil || back != d {
			t.Fatalf("%v became %q, read back as %v, %v", d, FormatDuration(d), back, err)
		}
	})
}

func TestParseWindow_HasOneNameForEachWindow(t *testing.T) {
	for _, name := range []string{All, "1s", "5m", "1h", "36h", "1d", "1w", "2w", "3650d"} {
		if w, err := ParseWindow(name); err != nil || w.String() != name {
			t.Errorf("ParseWindow(%q) = %q, %v", name, w, err)
		}
	}
	for name, remedy := range map[string]string{
		"60m": "write 1h", "24h": "write 1d", "7d": "write 1w", "3600s": "write 1h", "3651d": "longer than 3650d",
		"": "or \"all\"", "ALL": "or \"all\"", "1M": "or \"all\"",
	} {
		if w, err := ParseWindow(name); err == nil || !strings.Contains(err.Error(), remedy) {
			t.Errorf("ParseWindow(%q) = %q, %v; want an error with %q", name, w, err, remedy)
		}
	}
}

func TestBucketStart_IsUTCAndWeeksStartOnMonday(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, c := range []struct{ window, moment, want string }{
		{"1h", "2001-01-01T00:47:59.999Z", "2001-01-01T00:00:00Z"},
		{"1d", "2001-01-01T01:30:00+02:00", "2000-12-31T00:00:00Z"},
		{"1d", "2001-01-01T23:59:59-00:30", "2001-01-02T00:00:00Z"},
		{"1w", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z"}, // a Monday
		{"1w", "2026-11-29T23:59:59Z", "2026-11-23T00:00:00Z"},
		{"1w", "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z"},
		{"2w", "1969-12-28T00:00:00Z", "1969-12-15T00:00:00Z"},
		{"5d", "1970-01-05T23:59:59Z", "1970-01-01T00:00:00Z"},
		{"1h", "1969-12-31T23:59:59.5Z", "1969-12-31T23:00:00Z"}, // before 1970 buckets still start early, not late
		{"1s", "1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"},
		{"1d", "0001-01-02T12:00:00Z", "0001-01-02T00:00:00Z"},
		{"1d", "9999-12-31T23:59:59Z", "9999-12-31T00:00:00Z"},
		{All, "2001-01-01T00:47:59Z", "1970-01-01T00:00:00Z"},
	} {
		w, err := ParseWindow(c.window)
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Unix(w.BucketStart(at(c.moment)), 0).UTC().Format(time.RFC3339); got != c.want {
			t.Errorf("%s of %s starts %s, want %s", c.window, c.moment, got, c.want)
		}
	}
}

// Any instant of the years 1 to 9999.
func instants() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		first, last := int64(-62135596800), int64(253402300799)
		zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
		return time.Unix(rapid.Int64Range(first, last).Draw(t, "seconds"),
			rapid.Int64Range(0, 999999999).Draw(t, "ns")).In(zone)
	})
}

func TestBuckets_TileTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Window{seconds: rapid.Int64Range(1, int64(MaxWindow/time.Second)).Draw(t, "length")}
		moment := instants().Draw(t, "moment")
		start := w.BucketStart(moment)
		end := w.BucketEnd(start)
		if moment.Before(time.Unix(start, 0)) || !moment.Before(time.Unix(end, 0)) {
			t.Fatalf("%v is not in its bucket [%d, %d)", moment, start, end)
		}
		if got := w.BucketStart(time.Unix(start, 0)); got != start {
			t.Fatalf("the start %d lies in bucket %d", start, got)
		}
		if got := w.BucketStart(time.Unix(end-1, 999999999)); got != start {
			t.Fatalf("the last instant of %d lies in bucket %d", start, got)
		}
		if got := w.BucketStart(time.Unix(end, 0)); got != end {
			t.Fatalf("the end %d of %d is not the next start, %d is", end, start, got)
		}
		if got := w.BucketStart(moment.UTC()); got != start {
			t.Fatalf("another zone moved the bucket from %d to %d", start, got)
		}
	})
}

func TestBuckets_OfHoursDaysAndWeeksNest(t *testing.T) {
	names := []string{"1m", "5m", "15m", "1h", "6h", "1d", "1w"}
	rapid.Check(t, func(t *rapid.T) {
		moment := instants().Draw(t, "moment")
		inner := Window{seconds: 1}
		for _, name := range names {
			outer, err := ParseWindow(name)
			if err != nil {
				t.Fatal(err)
			}
			from, to := inner.BucketStart(moment), inner.BucketEnd(inner.BucketStart(moment))
			if start := outer.BucketStart(moment); from < start || to > outer.BucketEnd(start) {
				t.Fatalf("a bucket of %s crosses a border of %s at %v", inner, outer, moment)
			}
			inner = outer
		}
	})
}

func TestWindow_ZeroValueIsAll(t *testing.T) {
	var w Window
	if w.String() != All || !w.IsAll() || w.Length() != 0 || w.BucketEnd(w.BucketStart(time.Now())) != math.MaxInt64 {
		t.Fatalf("zero window: %q %v", w, w.Length())
	}
}
