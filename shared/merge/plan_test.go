package merge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"abacus/shared/merge"
	"abacus/shared/tally"

	"pgregory.net/rapid"
)

func cell(key string) tally.Cell { return tally.Cell{Counter: "views", Key: key, Window: "all"} }

func event(id string, keys ...string) tally.Event {
	e := tally.Event{ID: id}
	for _, key := range keys {
		e.Adds = append(e.Adds, tally.Add{Cell: cell(key), Delta: 1})
	}
	return e
}

// zipfEvents is the workload of the figures: n records, zipf(1.1) over 50 pages, from 6 countries. 1,000 of them with
// three keys move 269 cells.
func zipfEvents(n int, threeKeys bool) []tally.Event {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 1, 49)
	events := make([]tally.Event, n)
	for i := range events {
		page := fmt.Sprintf("page-%02d", zipf.Uint64())
		keys := []string{page}
		if threeKeys {
			keys = append(keys, fmt.Sprintf("%s|%02d", page, rng.IntN(6)), "all")
		}
		events[i] = event(fmt.Sprintf("event-%06d", i), keys...)
	}
	return events
}

// writeUnits is what the chunks cost in DynamoDB: one for each claim, and two for each row of each transaction.
func writeUnits(events int, chunks []merge.ChunkOf) float64 {
	units := events
	for _, c := range chunks {
		units += 2 * (1 + len(c.Cells))
	}
	return float64(units) / float64(events)
}

func TestFigures_WriteUnitsAndRequestsPerEvent(t *testing.T) {
	for _, tt := range []struct {
		records   int
		threeKeys bool
		most      float64
	}{{1000, false, 1.11}, {1000, true, 1.6}, {10000, false, 1.11}, {10000, true, 1.6}} {
		chunks, _ := merge.Plan(zipfEvents(tt.records, tt.threeKeys), merge.MaxAdds, merge.DefaultChunkEvents)
		requests := 0
		for _, c := range chunks {
			requests += (len(c.Events)+24)/25 + 1
		}
		distinct := map[tally.Cell]bool{}
		for _, c := range chunks {
			for _, cell := range c.Cells {
				distinct[cell] = true
			}
		}
		perEvent, units := float64(requests)/float64(tt.records), writeUnits(tt.records, chunks)
		t.Logf("%d records, three keys %t: %d cells in %d chunks, %.3f write units, %.4f requests an event", tt.records,
			tt.threeKeys, len(distinct), len(chunks), units, perEvent)
		if units > tt.most || perEvent > .05 {
			t.Errorf("%d records, three keys %t: %.3f write units and %.4f requests an event; at most %.2f and 0.05",
				tt.records, tt.threeKeys, units, perEvent, tt.most)
		}
		if want := 1; tt.records == 1000 && !tt.threeKeys && len(chunks) != want {
			t.Errorf("%d chunks where %d is enough", len(chunks), want)
		}
	}
}

func TestPlan_EachIdentityInOneChunkAndEveryChunkWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, perChunk := rapid.IntRange(5, 12).Draw(t, "cells"), rapid.IntRange(1, 20).Draw(t, "events per chunk")
		var events []tally.Event
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			id := fmt.Sprint("e", rapid.IntRange(0, 40).Draw(t, "id"))
			keys := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 5, rapid.ID).Draw(t, "keys")
			e := tally.Event{ID: id}
			for _, k := range keys {
				e.Adds = append(e.Adds, tally.Add{Cell: cell(fmt.Sprint(k)), Delta: 1})
			}
			events = append(events, e)
		}
		chunks, outcomes := merge.Plan(events, most, perChunk)
		planned := map[string]int{}
		for _, c := range chunks {
			checkChunk(t, events, c, most, perChunk)
			for _, i := range c.Events {
				planned[events[i].ID]++
			}
		}
		for i, e := range events {
			switch {
			case len(e.Adds) == 0 && outcomes[i].Status != merge.Counted:
				t.Fatalf("an event that moves nothing is %v", outcomes[i])
			case len(e.Adds) > 0 && planned[e.ID] != 1:
				t.Fatalf("identity %s is in %d chunks", e.ID, planned[e.ID])
			}
		}
	})
}

func checkChunk(t *rapid.T, events []tally.Event, c merge.ChunkOf, most, perChunk int) {
	if len(c.Events) == 0 || len(c.Events) > perChunk || len(c.Cells) > most {
		t.Fatalf("a chunk of %d events and %d cells; at most %d and %d", len(c.Events), len(c.Cells), perChunk, most)
	}
	cells := map[tally.Cell]bool{}
	for _, i := range c.Events {
		for _, add := range events[i].Adds {
			cells[add.Cell] = true
		}
	}
	seen := map[tally.Cell]bool{}
	for _, cell := range c.Cells {
		if seen[cell] {
			t.Fatalf("chunk names %v twice", cell)
		}
		seen[cell] = true
		delete(cells, cell)
	}
	if len(cells) > 0 {
		t.Fatalf("chunk lacks %v", cells)
	}
}

func TestPlan_EventsWithTheSameCellsGoTogether(t *testing.T) {
	var events []tally.Event
	for i := range 300 { // 150 kinds of event, 2 cells each; the two of one kind are far apart
		kind := fmt.Sprint(i % 150)
		events = append(events, event(fmt.Sprint("e", i), "a"+kind, "b"+kind))
	}
	chunks, _ := merge.Plan(events, merge.MaxAdds, merge.DefaultChunkEvents)
	cells := 0
	for _, c := range chunks {
		cells += len(c.Cells)
	}
	if cells != 300 || len(chunks) != 4 {
		t.Errorf("%d cells in %d chunks; 300 in 4 are enough", cells, len(chunks))
	}
}

func TestB4_AddsOfOneEventAtTheLimitAndOnePast(t *testing.T) {
	keys := make([]string, merge.MaxAdds+1)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	events := []tally.Event{
		event("at", keys[:merge.MaxAdds]...), event("past", keys...), event("twice", "a", "b", "a"),
		event("", "a"), event(""),
	}
	chunks, outcomes := merge.Plan(events, merge.MaxAdds, merge.DefaultChunkEvents)
	if len(chunks) != 1 || !slices.Equal(chunks[0].Events, []int{0}) || len(chunks[0].Cells) != merge.MaxAdds {
		t.Errorf("chunks %v; want the event with %d adds alone", chunks, merge.MaxAdds)
	}
	for i, want := range []error{nil, merge.ErrTooManyAdds, merge.ErrRepeatedCell, merge.ErrNoID, merge.ErrNoID} {
		if want != nil && (outcomes[i].Status != merge.Refused || !errors.Is(outcomes[i].Err, want)) {
			t.Errorf("event %d is %v; want refused: %v", i, outcomes[i], want)
		}
	}
}

func TestPlan_ALongIdentityIsBoundBeforeItIsCompared(t *testing.T) {
	long := string(make([]byte, 5000))
	chunks, _ := merge.Plan([]tally.Event{event(long, "a"), event(tally.BoundID(long), "a")}, 99, 1000)
	if len(chunks) != 1 || len(chunks[0].Events) != 1 {
		t.Errorf("chunks %v; an identity and its bound form are one", chunks)
	}
}
