package ingest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

func TestFIFO_AfterAFailureTheRestOfTheGroupIsReportedAndLeftAlone(t *testing.T) {
	batch := []message{{"m1", "g", good("e1", "a")}, {"m2", "g", good("e2", "b")}, {"m3", "h", good("e3", "b")},
		{"m4", "g", good("e4", "b")}, {"m5", "h", good("e5", "b")}, {"m6", "g", "not json"}}
	for name, c := range map[string]struct {
		arn, bad string
		want     []string
		b        string
	}{
		"merge fails":               {queueARN + ".fifo", "a", []string{"m1", "m2", "m4", "m6"}, "2"},
		"nothing fails but the bad": {queueARN + ".fifo", "none", []string{"m6"}, "4"},
		"no FIFO queue":             {queueARN, "a", []string{"m1", "m6"}, "4"},
	} {
		m := newMachine(t, envelope.SQS, nil)
		m.store.Fault = func(call mergetest.Call) mergetest.Fault {
			if call.Method == mergetest.Commit && slices.ContainsFunc(call.Adds,
				func(a merge.SlottedAdd) bool { return a.Cell.Key == c.bad }) {
				if c.arn == queueARN { // the chunk has the others too
					return mergetest.RefuseOn(call, func(a merge.SlottedAdd) bool { return a.Cell.Key == c.bad })
				}
				return mergetest.Fault{Err: mergetest.ErrDenied}
			}
			return mergetest.Fault{}
		}
		if got := m.invoke(t, t.Context(), queueEvent(c.arn, batch...)); !slices.Equal(got, c.want) || m.total("b") != c.b {
			t.Errorf("%s: %v come again, want %v; b = %s, want %s", name, got, c.want, m.total("b"), c.b)
		}
		m.store.Fault = nil
		batch := slices.Clone(batch)
		batch[5].body = good("e6", "b")
		if got := m.invoke(t, t.Context(), queueEvent(c.arn, batch...)); len(got) != 0 || m.total("a") != "1" ||
			m.total("b") != "5" {
			t.Errorf("%s, delivered again: %v, a = %s, b = %s", name, got, m.total("a"), m.total("b"))
		}
	}
}

func TestFIFO_ABadMessageHoldsItsGroupBack(t *testing.T) {
	m := newMachine(t, envelope.SQS, nil)
	batch := queueEvent(queueARN+".fifo", message{"m1", "g", "not json"}, message{"m2", "g", good("e2", "a")},
		message{"m3", "h", good("e3", "a")})
	if got := m.invoke(t, t.Context(), batch); !slices.Equal(got, []string{"m1", "m2"}) || m.total("a") != "1" {
		t.Errorf("%v come again, a = %s", got, m.total("a"))
	}
}

func TestFIFO_WithinAGroupTheOrderIsKept(t *testing.T) {
	var order []string
	m := newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) {
		c.Sink = sinkFunc(func(_ context.Context, events []tally.Event) []merge.Outcome {
			groups := map[string]bool{}
			for _, e := range events {
				group := e.Adds[0].Cell.Key
				if groups[group] {
					t.Errorf("two messages of group %s in one merge", group)
				}
				groups[group] = true
				order = append(order, e.ID)
			}
			return slices.Repeat([]merge.Outcome{{Status: merge.Counted}}, len(events))
		})
	})
	var batch []message
	for i := range 10 {
		group := []string{"g", "h", "k"}[i%3]
		batch = append(batch, message{fmt.Sprint("m", i), group, good(fmt.Sprint("e", i), group)})
	}
	if got := m.invoke(t, t.Context(), queueEvent(queueARN+".fifo", batch...)); len(got) != 0 || len(order) != 10 ||
		!slices.IsSorted(order) {
		t.Errorf("%v come again, order %v", got, order)
	}
}
