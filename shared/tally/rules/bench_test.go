package rules

import (
	"testing"

	"abacus/shared/tally"
)

// flight is one record of about 110 bytes.
const flight = `{"flight_id":"f00001","date":"2026/11/29 00:47","delay":66,"distance":1750,` +
	`"origin":"DTW","destination":"LAS"}`

var benchmarks = map[string]string{
	// One counter, one key, one add: the least a record can do.
	"total": rule("id: flight_id", "keys: [all]"),
	// Three keys in two windows, with the record's own time.
	"flights": rule("id: flight_id", `time: {path: date, layout: "2006/01/02 15:04", zone: UTC}`,
		`keys: [all, "origin/{origin}", "route/{origin}/{destination}"]`, "windows: {all: forever, 1d: 400d}"),
	// The same behind an expression.
	"match": rule(`match: origin != "" && distance > 0`, "id: flight_id",
		`time: {path: date, layout: "2006/01/02 15:04", zone: UTC}`,
		`keys: [all, "origin/{origin}", "route/{origin}/{destination}"]`, "windows: {all: forever, 1d: 400d}"),
	// An expression that says no: what a record costs that nothing counts.
	"skipped": rule(`match: origin == "SFO"`, "id: flight_id", "keys: [all]"),
}

func BenchmarkEvents(b *testing.B) {
	for _, name := range []string{"total", "flights", "match", "skipped"} {
		b.Run(name, func(b *testing.B) {
			set := parse(b, benchmarks[name])
			document := Document{Source: "kinesis/flights/shardId-000000000000/" +
				"49590338271490256608559692538361571095921575989136588898/0",
				Arrived: now, JSON: []byte(flight)}
			var dst []tally.Event
			b.SetBytes(int64(len(flight)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, _, err = set.Events(dst[:0], document, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestEvents_CostOneAllocationForTextAndOneForAdds(t *testing.T) {
	for name, most := range map[string]float64{"total": 2, "flights": 2, "match": 5, "skipped": 2} {
		w := newWork(parse(t, benchmarks[name])) // not from the pool, which forgets at random under the race detector
		document := Document{Source: "s", Arrived: now, JSON: []byte(flight)}
		var dst []tally.Event
		got := testing.AllocsPerRun(200, func() {
			var err error
			if dst, _, err = w.events(dst[:0], document, now); err != nil {
				t.Fatal(err)
			}
			w.reset()
		})
		if got > most {
			t.Errorf("%s: %v allocations a record, want at most %v", name, got, most)
		}
	}
}
