package demo

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

const shippedRules = "../../../functions/counters.yaml"

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestTruth_ByHandAndByTheShippedRulesAgree(t *testing.T) {
	events, err := load(sample)
	if err != nil {
		t.Fatal(err)
	}
	set, err := rules.Load(shippedRules)
	if err != nil {
		t.Fatal(err)
	}
	traffic := newTraffic(events, badFlights(), 1)
	byHand, err := flightTruth(events, traffic)
	if err != nil {
		t.Fatal(err)
	}
	byRules, err := ruleTruth(set, traffic, noon, noon)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(byHand.counts, byRules.counts) {
		t.Errorf("by hand %d cells, by the rules %d, and they differ", len(byHand.counts), len(byRules.counts))
	}
	if all := byHand.counts[tally.Cell{Counter: "flights", Key: "all", Window: "all"}]; all != 2000 {
		t.Errorf("%d flights, want the 2,000 distinct ones", all)
	}
	for name, refused := range map[string][]record{"hand": byHand.refused, "rules": byRules.refused} {
		if len(refused) != 5 {
			t.Errorf("by %s %d bad records, want 5", name, len(refused))
		}
		for _, r := range refused {
			if !r.bad {
				t.Errorf("by %s a good record is refused: %s", name, r.payload)
			}
		}
	}
}

func TestTruth_ByHandCountsARepeatOnce(t *testing.T) {
	one := []byte(`{"flight_id":"f1","date":"2001/01/02 00:10","delay":-3,"distance":999,"origin":"A","destination":"B"}`)
	two := []byte(`{"flight_id":"f2","date":"2001/01/01 23:59","delay":5,"distance":1000,"origin":"A","destination":"B"}`)
	got, err := countFlights([][]byte{one, two, one})
	if err != nil {
		t.Fatal(err)
	}
	const first, second = 978307200, 978393600 // 1 and 2 January 2001
	want := counts{}
	for _, key := range []string{"all", "origin/A", "route/A/B"} {
		want[tally.Cell{Counter: "flights", Key: key, Window: "all"}] = 2
		want[tally.Cell{Counter: "flights", Key: key, Window: "1d", Bucket: first}] = 1
		want[tally.Cell{Counter: "flights", Key: key, Window: "1d", Bucket: second}] = 1
	}
	for _, key := range []string{"all", "origin/A"} {
		want[tally.Cell{Counter: "delay_minutes", Key: key, Window: "all"}] = 2
		want[tally.Cell{Counter: "long_flights", Key: key, Window: "all"}] = 1
	}
	if !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

func TestTruth_AnotherFileNeedsItsRules(t *testing.T) {
	for _, line := range []string{
		`{"n":1}`, `{"flight_id":"f1"}`, `[]`,
		`{"flight_id":"f1","date":"soon","delay":1,"distance":1,"origin":"A","destination":"B"}`,
	} {
		if _, err := countFlights([][]byte{[]byte(line)}); err == nil || !strings.Contains(err.Error(), "rule file") {
			t.Errorf("%s: error %v, want one that asks for the rule file", line, err)
		}
	}
}

func TestTruth_ByRulesTellsRecordsWithoutIDApart(t *testing.T) {
	set, err := rules.Parse("r.yaml", []byte("counters:\n  - {name: c, keys: [all], windows: {all: forever, 1h: 14d}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	traffic := newTraffic(numbered(20), badForAnyRules([]byte(`{"n":1}`)), 3)
	got, err := ruleTruth(set, traffic, noon, noon.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if n := got.counts[tally.Cell{Counter: "c", Key: "all", Window: "all"}]; n != 22 {
		t.Errorf("%d counted, want 20 and the 2 copies, which nothing tells from new events", n)
	}
	if len(got.refused) != 5 {
		t.Errorf("%d refused, want 5", len(got.refused))
	}
	for _, r := range got.refused {
		if !r.bad {
			t.Errorf("refused %s", r.payload)
		}
	}
	if _, err := ruleTruth(set, traffic, noon.Add(-time.Second), noon); !errors.Is(err, errMoving) {
		t.Errorf("published over the full hour: %v, want errMoving", err)
	}
}
