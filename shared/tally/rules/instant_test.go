package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"abacus/shared/tally"
)

// bucketOf gives the hour that a document is counted in.
func bucketOf(t testing.TB, set *Set, json string) string {
	t.Helper()
	e := events(t, set, "s", json)
	return time.Unix(e[0].Adds[0].Cell.Bucket, 0).UTC().Format("2006-01-02T15")
}

func hourly(timing ...string) string {
	return rule(append(timing, "keys: [a]", "windows: {1h: forever}")...)
}

func TestD7_EventTimeDecidesTheBucketInUTC(t *testing.T) {
	text := parse(t, hourly("time: at"))
	seconds, millis := parse(t, hourly("time: {path: at, unit: s}")), parse(t, hourly("time: {path: at, unit: ms}"))
	local := parse(t, hourly(`time: {path: at, layout: "2006/01/02 15:04", zone: America/New_York}`))
	day := parse(t, hourly(`time: {path: at, layout: "2006-01-02"}`))
	offset := parse(t, hourly(`time: {path: at, layout: "02 Jan 2006 15:04 -0700"}`))
	for _, c := range []struct {
		set      *Set
		at, want string
	}{
		{text, `"2025-01-01T00:00:00Z"`, "2025-01-01T00"},
		{text, `"2025-01-01T00:30:00+02:00"`, "2024-12-31T22"},
		{text, `"2025-01-01T00:59:59.999999999-00:30"`, "2025-01-01T01"},
		{text, `"1969-12-31T23:59:59.5Z"`, "1969-12-31T23"},
		{text, `"0001-01-02T00:00:00Z"`, "0001-01-02T00"},
		{seconds, `1545084650`, "2018-12-17T22"},
		{seconds, `1545084650.987`, "2018-12-17T22"},
		{seconds, `1.545084650987e9`, "2018-12-17T22"},
		{seconds, `1545087599.9999999999999`, "2018-12-17T22"},
		{seconds, `0`, "1970-01-01T00"},
		{seconds, `-0.5`, "1969-12-31T23"},
		{millis, `1646158315209`, "2022-03-01T18"},
		{millis, `1646158315209.75`, "2022-03-01T18"},
		{millis, `100000000000`, "1973-03-03T09"},
		{millis, `-100000000000`, "1966-10-31T14"},
		{local, `"2001/01/01 00:47"`, "2001-01-01T05"},
		{local, `"2001/07/01 23:30"`, "2001-07-02T03"},
		{day, `"2001-07-01"`, "2001-07-01T00"},
		{offset, `"01 Jan 2025 00:30 +0200"`, "2024-12-31T22"},
	} {
		if got := bucketOf(t, c.set, `{"at":`+c.at+`}`); got != c.want {
			t.Errorf("%s is in %s, want %s", c.at, got, c.want)
		}
	}
}

func TestD7_ATimeThatCannotBeReadIsNeverGuessed(t *testing.T) {
	text := parse(t, hourly("time: {path: meta.at}"))
	seconds, millis := parse(t, hourly("time: {path: meta.at, unit: s}")), parse(t,
		hourly("time: {path: meta.at, unit: ms}"))
	layout := parse(t, hourly(`time: {path: meta.at, layout: "2006/01/02 15:04"}`))
	for _, c := range []struct {
		set      *Set
		at, part string
	}{
		{text, `null`, "is null"}, {text, `""`, "RFC 3339"}, {text, `"yesterday"`, "RFC 3339"}, {text, `1545084650`,
			"unit: s or unit: ms"},
		{text, `"1545084650"`, "RFC 3339"}, {text, `"2025-01-01"`, "RFC 3339"}, {text, `"2025-01-01 00:00:00Z"`, "RFC 3339"},
		{text, `"2025-01-01T00:00:00"`, "RFC 3339"}, {text, `"2025-01-01T0:00:00Z"`, "RFC 3339"}, {text,
			`"2025-02-30T00:00:00Z"`, "RFC 3339"},
		{text, `"2025-01-01T00:00:00,5Z"`, "RFC 3339"}, {text, `"2025-01-01T00:00:00+99:00"`, "RFC 3339"},
		{text, `"0001-01-01T00:00:00Z"`, "years 1 to 9999"}, {text, `"0000-12-31T00:00:00Z"`, "years 1 to 9999"},
		{text, `"0001-01-02T00:30:00+02:00"`, "years 1 to 9999"}, {text, `"10000-01-01T00:00:00Z"`, "RFC 3339"},
		{text, `true`, "true or false"}, {text, `{}`, "is an object"},
		{seconds, `1646158315209`, "write unit: ms"}, {seconds, `"1545084650"`, "without quotes"}, {seconds, `null`,
			"is null"},
		{seconds, `100000000000`, "write unit: ms"}, {seconds, `-100000000000`, "write unit: ms"}, {seconds, `1e400`,
			"beyond any time"},
		{seconds, `-99999999999`, "years 1 to 9999"},
		{millis, `1545084650`, "write unit: s"}, {millis, `0`, "write unit: s"}, {millis, `99999999999.9`, "write unit: s"},
		{millis, `9e18`, "years 1 to 9999"}, {millis, `-9e18`, "years 1 to 9999"}, {millis, `1e19`, "beyond any time"},
		{layout, `"2001-01-01 00:47"`, "layout"}, {layout, `"2001/02/30 00:47"`, "layout"}, {layout, `20010101`,
			"is a number"},
	} {
		bad(t, c.set, `{"meta":{"at":`+c.at+`}}`, c.part, `member "meta.at"`, "time: ", "counters.yaml:3")
	}
	bad(t, text, `{}`, "is absent")
	bad(t, text, `{"meta":{"At":"2025-01-01T00:00:00Z"}}`, "is absent")
	bad(t, text, `{"meta":"2025-01-01T00:00:00Z"}`, "not an object")
}

func TestD7_TooFarAheadLimitAndOnePast(t *testing.T) {
	at := func(d time.Duration) string { return `{"at":"` + now.Add(d).Format(time.RFC3339Nano) + `"}` }
	byDefault, raised := parse(t, hourly("time: at")), parse(t, hourly("time: at", "max_ahead: 2w"))
	events(t, byDefault, "s", at(24*time.Hour))
	bad(t, byDefault, at(24*time.Hour+time.Nanosecond), "more than 24h ahead", "max_ahead")
	bad(t, byDefault, `{"at":"2099-01-01T00:00:00Z"}`, "ahead of now")
	events(t, raised, "s", at(14*24*time.Hour))
	bad(t, raised, at(14*24*time.Hour+time.Nanosecond), "ahead of now")
}

func TestD7_ArrivalTimeCountsOnlyWithoutATime(t *testing.T) {
	arrivals := []time.Time{time.Unix(1545084650, 987e6), time.Unix(1545084650, 0), time.UnixMilli(1646158315209),
		now.AddDate(50, 0, 0)}
	set := parse(t, hourly())
	for _, arrived := range arrivals {
		e, _, err := set.Events(nil, Document{Source: "s", Arrived: arrived, JSON: []byte(`{}`)}, now)
		if err != nil || e[0].Adds[0].Cell.Bucket != arrived.Truncate(time.Hour).Unix() {
			t.Errorf("%v: %+v, %v", arrived, e, err)
		}
	}
	// With a time, the arrival changes nothing, however odd it is.
	timed := parse(t, hourly("time: at"))
	for _, arrived := range append(arrivals, time.Time{}) {
		e, _, err := timed.Events(nil, Document{Source: "s", Arrived: arrived,
			JSON: []byte(`{"at":"2025-01-01T00:00:00Z"}`)}, now)
		if err != nil || e[0].Adds[0].Cell.Bucket != 1735689600 {
			t.Errorf("arrived %v: %+v, %v", arrived, e, err)
		}
	}
	if _, _, err := set.Events(nil, Document{Source: "s", JSON: []byte(`{}`)}, now); err == nil ||
		!strings.Contains(err.Error(), "no arrival time") {
		t.Errorf("no arrival time: %v", err)
	}
	mixed := parse(t, rule("keys: [a]", "windows: {1h: forever, all: forever}"))
	if _, _, err := mixed.Events(nil, Document{Source: "s", JSON: []byte(`{}`)}, now); err == nil {
		t.Error("no arrival time, and an hour before the total")
	}
	if e, _, err := parse(t, rule("keys: [a]")).Events(nil, Document{Source: "s", JSON: []byte(`{}`)},
		now); err != nil || len(e) != 1 {
		t.Errorf("a total needs no arrival time: %v, %v", e, err)
	}
}

func TestD7_TheAnswerIsTheSameOnEveryDelivery(t *testing.T) {
	set := parse(t, rule("id: id", "time: at", `match: kind != "x"`, `keys: [a, "{kind}"]`,
		"windows: {all: forever, 1h: 14d, 1d: forever}"))
	document := Document{Source: "s", Arrived: now, JSON: []byte(`{"id":"1","at":"2026-11-30T11:00:00+01:00","kind":"k"}`)}
	first, _, err := set.Events(nil, document, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, later := range []time.Duration{time.Second, time.Hour, 13 * 24 * time.Hour} {
		document.Arrived = now.Add(later)
		again, expired, err := set.Events(nil, document, now.Add(later))
		if err != nil || expired != 0 || fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("%v later: %v, %d, %v; first %v", later, again, expired, err, first)
		}
	}
}

func TestWindows_ExpireFromTheBucketsEnd(t *testing.T) {
	set := parse(t, rule("time: at", "keys: [a]", "windows: {all: forever, 1d: 400d, 1h: 14d, 1w: forever}"))
	e := events(t, set, "s", `{"at":"2026-11-29T10:30:00Z"}`)
	want := map[string]int64{
		"all": 0, "1w": 0,
		"1d": time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).Add(400 * 24 * time.Hour).Unix(),
		"1h": time.Date(2026, 11, 29, 11, 0, 0, 0, time.UTC).Add(14 * 24 * time.Hour).Unix(),
	}
	if len(e[0].Adds) != len(want) {
		t.Fatalf("adds %+v", e[0].Adds)
	}
	for _, a := range e[0].Adds {
		if a.Expires != want[a.Cell.Window] {
			t.Errorf("%s expires %d, want %d", a.Cell.Window, a.Expires, want[a.Cell.Window])
		}
	}
}

func TestWindows_RetentionLimitAndOnePast(t *testing.T) {
	set := parse(t, rule("time: at", "keys: [a, b]", "windows: {all: forever, 1h: 14d}"))
	only := parse(t, rule("time: at", "keys: [a, b]", "windows: {1h: 14d}"))
	document := Document{Source: "s", JSON: []byte(`{"at":"2026-11-01T10:30:00Z"}`)}
	over := time.Date(2026, 11, 15, 11, 0, 0, 0, time.UTC) // 14 days after the hour's end
	for _, c := range []struct {
		at            time.Time
		adds, expired int
	}{{over.Add(-time.Nanosecond), 4, 0}, {over, 2, 2}, {over.AddDate(1, 0, 0), 2, 2}} {
		e, expired, err := set.Events(nil, document, c.at)
		if err != nil || len(e) != 1 || len(e[0].Adds) != c.adds || expired != c.expired {
			t.Errorf("at %v: %+v, %d, %v", c.at, e, expired, err)
		}
	}
	two := parse(t, "counters:\n  - {name: a, id: id, time: at, keys: [x], windows: {1h: 14d}}\n"+
		"  - {name: b, id: id, time: at, keys: [y]}\n")
	both := Document{Source: "s", JSON: []byte(`{"id":"1","at":"2026-11-01T10:30:00Z"}`)}
	if e, expired, err := two.Events(nil, both, over); err != nil || expired != 1 || len(e) != 1 || e[0].ID != "b\x1f1" {
		t.Errorf("one of two events with nothing left: %+v, %d, %v", e, expired, err)
	}
	if e, expired, err := only.Events([]tally.Event{{ID: "kept"}}, document, over); err != nil || expired != 2 ||
		len(e) != 1 {
		t.Errorf("an event with nothing left: %+v, %d, %v", e, expired, err)
	}
}
