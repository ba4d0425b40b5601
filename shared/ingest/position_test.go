package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"

	"pgregory.net/rapid"
)

// marks is a Sink that counts by position: a cell takes what lies above its mark, and nothing else ever again.
type marks struct {
	mark  map[tally.Cell]string
	total map[tally.Cell]int64
	fails func() bool // draws whether the next call fails
}

func (m *marks) MergeMany(_ context.Context, events []tally.Event) []merge.Outcome {
	outcomes := make([]merge.Outcome, len(events))
	if m.fails() {
		return outcomes
	}
	for i, e := range events {
		outcomes[i].Status = merge.Duplicate
		for _, a := range e.Adds {
			if e.Position > m.mark[a.Cell] {
				m.mark[a.Cell] = e.Position
				m.total[a.Cell] += a.Delta
				outcomes[i].Status = merge.Counted
			}
		}
	}
	return outcomes
}

// TestPosition_WhatIsNotCountedIsNeverPassed plays a shard under the position guard: records that make the rules
// panic now and then, bad ones, and ones that are bad until a new rule file is deployed; a park queue and a sink that
// fail now and then. Each record must end counted once or parked, and not both: a mark that passed a record that was
// still to come would lose it.
func TestPosition_WhatIsNotCountedIsNeverPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.StringMatching(`[gpbm]{1,9}`).Draw(t, "records") // good, panics, bad, mended by the next deployment
		sometimes := func(what string) func() bool {
			return func() bool { return rapid.IntRange(0, 2).Draw(t, what) == 0 }
		}
		panics, noRoom := sometimes("panic"), sometimes("no room")
		sink := &marks{mark: map[tally.Cell]string{}, total: map[tally.Cell]int64{}, fails: sometimes("sink fails")}
		parker := &lot{refuse: func(context.Context, envelope.Parked) error {
			if noRoom() {
				return errFull
			}
			return nil
		}}
		deployed := false
		h, err := New(Config{Kind: envelope.Kinesis, Sink: sink, ByPosition: true, Parker: parker,
			Rules: rulesFunc(func(dst []tally.Event, doc rules.Document) ([]tally.Event, error) {
				kind := doc.JSON[len(`{"is":"`)]
				if kind == 'b' || kind == 'm' && !deployed {
					return dst, rules.ErrBadRecord
				}
				if kind == 'p' && panics() {
					panic("rules")
				}
				return append(dst, tally.Event{ID: doc.Source, Serial: doc.Serial, Adds: []tally.Add{
					{Cell: tally.Cell{Counter: "all"}, Delta: 1}, {Cell: tally.Cell{Counter: doc.Source}, Delta: 1}}}), nil
			})})
		if err != nil {
			t.Fatal(err)
		}
		h.mergeAt = rapid.IntRange(1, 5).Draw(t, "events in a merge")
		var payloads []string
		for _, kind := range kinds {
			payloads = append(payloads, fmt.Sprintf(`{"is":"%c"}`, kind))
		}
		from := 0
		for delivery := 0; from < len(payloads); delivery++ {
			if delivery > 200 {
				t.Fatalf("record %d comes again for ever", from+1)
			}
			deployed = deployed || rapid.Bool().Draw(t, "deploy")
			answer, err := h.Invoke(context.Background(), shard(from, payloads))
			if err != nil {
				t.Fatal(err)
			}
			from = lowest(string(answer), len(payloads))
		}
		counted := int64(0)
		for i, kind := range kinds {
			number := fmt.Sprint(i + 1)
			identity := envelope.KinesisIdentity(streamARN, "shardId-000000000001", envelope.SequenceNumber(number))
			once, kept := sink.total[tally.Cell{Counter: identity}], slices.Contains(parker.numbers(), number)
			if counted += once; kept && once != 0 || !kept && once != 1 || kept && strings.ContainsRune("gp", kind) {
				t.Fatalf("record %s (%c) was counted %d times, parked: %t", number, kind, once, kept)
			}
		}
		if got := sink.total[tally.Cell{Counter: "all"}]; got != counted {
			t.Fatalf("the common cell has %d of %d", got, counted)
		}
	})
}

// shard is the batch of the records from the given one on, numbered from 1.
func shard(from int, payloads []string) []byte {
	event := string(kinesisEvent(payloads...))
	for i := range from {
		end := strings.Index(event, fmt.Sprintf(`{"kinesis":{"sequenceNumber":"%d"`, i+2))
		event = `{"Records":[` + event[end:]
	}
	return []byte(event)
}

// lowest is the index of the lowest record that an answer names, or n.
func lowest(answer string, n int) int {
	for i := range n {
		if strings.Contains(answer, fmt.Sprintf(`"%d"`, i+1)) {
			return i
		}
	}
	return n
}

func TestPosition_WithoutAParkQueueABadRecordHoldsTheShard(t *testing.T) {
	sink := &marks{mark: map[tally.Cell]string{}, total: map[tally.Cell]int64{}, fails: func() bool { return false }}
	m := newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) { c.Sink, c.ByPosition = sink, true })
	got := m.invoke(t, t.Context(), kinesisEvent(good("e1", "a"), "bad", good("e3", "a")))
	a := sink.total[tally.Cell{Counter: "c", Key: "a", Window: "all"}]
	if !slices.Equal(got, []string{"2", "3"}) || a != 1 {
		t.Errorf("%v come again, want 2 and 3; a = %d, want 1", got, a)
	}
}
