package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

func TestC1_AnswersForNoneOneAndAllFailed(t *testing.T) {
	events := map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent, envelope.SQS: sqsEvent}
	names := map[envelope.Kind][]string{envelope.Kinesis: {"1", "2", "3"}, envelope.SQS: {"m1", "m2", "m3"}}
	for kind, event := range events {
		m := newMachine(t, kind, nil)
		n := names[kind]
		for _, c := range []struct {
			bodies []string
			want   string
		}{
			{[]string{good("e1", "a"), good("e2", "a"), good("e3", "a")}, `{"batchItemFailures":[]}`},
			{[]string{good("e4", "a"), "not json", good("e5", "a")},
				fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%q}]}`, n[1])},
			{[]string{"x", "y", "z"}, fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%q},{"itemIdentifier":%q},`+
				`{"itemIdentifier":%q}]}`, n[0], n[1], n[2])},
		} {
			got, err := m.Invoke(t.Context(), event(c.bodies...))
			if err != nil || string(got) != c.want {
				t.Errorf("%s:\n got %s, %v\nwant %s", kind, got, err, c.want)
			}
		}
		if got := m.total("a"); got != "5" {
			t.Errorf("%s: a = %s, want 5", kind, got)
		}
	}
}

func TestC2_WithTheStoreDownEveryRecordIsNamed(t *testing.T) {
	for _, n := range []int{1, 3} {
		m := newMachine(t, envelope.SQS, nil)
		m.store.Fault = func(mergetest.Call) mergetest.Fault { return mergetest.Fault{Err: mergetest.ErrDenied} }
		var bodies, want []string
		for i := range n {
			bodies, want = append(bodies, good(fmt.Sprint("e", i), "a")), append(want, fmt.Sprintf("m%d", i+1))
		}
		if got := m.invoke(t, t.Context(), sqsEvent(bodies...)); !slices.Equal(got, want) {
			t.Errorf("%d messages: %v come again, want %v", n, got, want)
		}
		m.store.Fault = nil
		if got := m.invoke(t, t.Context(), sqsEvent(bodies...)); len(got) != 0 || m.total("a") != fmt.Sprint(n) {
			t.Errorf("%d messages, delivered again: %v, a = %s", n, got, m.total("a"))
		}
	}
}

func TestC2_ASinkThatBreaksItsContractAcknowledgesNothing(t *testing.T) {
	for name, sink := range map[string]sinkFunc{
		"panics": func(context.Context, []tally.Event) []merge.Outcome { panic("sink") },
		"nil":    func(context.Context, []tally.Event) []merge.Outcome { return nil },
		"too few": func(context.Context,
			[]tally.Event) []merge.Outcome {
			return []merge.Outcome{{Status: merge.Counted}}
		},
		"zero values": func(_ context.Context, e []tally.Event) []merge.Outcome { return make([]merge.Outcome, len(e)) },
		"no status": func(_ context.Context, e []tally.Event) []merge.Outcome {
			return slices.Repeat([]merge.Outcome{{Status: 99}}, len(e))
		},
	} {
		m := newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) { c.Sink = sink })
		got := m.invoke(t, t.Context(), sqsEvent(good("e1", "a"), good("e2", "a"), `{"skip":true}`))
		if !slices.Equal(got, []string{"m1", "m2"}) {
			t.Errorf("a sink that %s: %v come again, want m1 and m2", name, got)
		}
	}
}

// broken is a log that panics.
type broken struct{ slog.Handler }

func (broken) Enabled(context.Context, slog.Level) bool  { return true }
func (broken) Handle(context.Context, slog.Record) error { panic("log") }

func TestC2_APanicOutsideARecordIsAnErrorAndNoAnswer(t *testing.T) {
	m := newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) { c.Log = slog.New(broken{slog.DiscardHandler}) })
	var panicked *merge.PanicError
	if answer, err := m.Invoke(t.Context(), sqsEvent("not json")); !errors.As(err, &panicked) || answer != nil {
		t.Errorf("a panic became the answer %s, %v", answer, err)
	}
	m = newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) { c.Now = func() time.Time { panic("clock") } })
	if answer, err := m.Invoke(t.Context(), sqsEvent(good("e1", "a"))); !errors.As(err, &panicked) || answer != nil {
		t.Errorf("a panic became the answer %s, %v", answer, err)
	}
	m = newMachine(t, envelope.SQS, nil)
	m.opener = nil // as any fault in the code of opening payloads
	if got := m.invoke(t, t.Context(), sqsEvent(good("e1", "a"))); !slices.Equal(got, []string{"m1"}) {
		t.Errorf("a panic in opening a payload: %v come again, want m1", got)
	}
}

func TestC3_WhatIsNotAnEventOfTheSourceIsAnErrorAndCountsNothing(t *testing.T) {
	kinesis, sqs := newMachine(t, envelope.Kinesis, nil), newMachine(t, envelope.SQS, nil)
	for _, c := range []struct {
		m     *machine
		event string
	}{
		{sqs, `{}`}, {sqs, `{"records":[]}`}, {sqs, `{"Records":null}`}, {sqs, `{"Records":[]}`}, {sqs, `[]`}, {sqs, ``},
		{sqs, string(kinesisEvent(good("e1", "a")))}, {kinesis, string(sqsEvent(good("e1", "a")))}, {kinesis, `{}`},
		{kinesis, `[]`},
		{sqs, `{"Records":[{"eventSource":"aws:s3","s3":{}}]}`},
	} {
		answer, err := c.m.Invoke(t.Context(), []byte(c.event))
		if !errors.Is(err, envelope.ErrEvent) || answer != nil {
			t.Errorf("%s to %s: %s, %v, want ErrEvent", c.event, c.m.kind, answer, err)
		}
		if c.m.heard.counts[MetricErrors] == 0 || c.m.heard.flushes == 0 {
			t.Errorf("%s: nobody hears of it", c.event)
		}
	}
	if n := len(sqs.store.Snapshot().Totals()) + len(kinesis.store.Snapshot().Totals()); n != 0 {
		t.Errorf("%d cells were counted", n)
	}
	if got := kinesis.invoke(t, t.Context(), []byte(`{"Records":[]}`)); len(got) != 0 {
		t.Errorf("an empty Kinesis batch: %v", got)
	}
}

func TestC4_OneUnreadableRecordLeavesItsNeighboursAlone(t *testing.T) {
	for kind, want := range map[envelope.Kind]string{envelope.SQS: "m2", envelope.Kinesis: "2"} {
		for _, body := range []string{"not json", `{"id":"e2","key":"a","delta":1.5}`, `{"id":"e2","key":"","delta":1}`,
			`{"id":"e2","key":"a"}`, "", `[5]`, "\x1f\x8b\x08"} {
			m := newMachine(t, kind, nil)
			event := map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent, envelope.SQS: sqsEvent}[kind]
			if got := m.invoke(t, t.Context(), event(good("e1", "a"), body, good("e3", "a"))); !slices.Equal(got,
				[]string{want}) {
				t.Errorf("%s %q: %v come again, want %s", kind, body, got, want)
			}
			if m.total("a") != "2" {
				t.Errorf("%s %q: a = %s, want 2", kind, body, m.total("a"))
			}
		}
	}
}

func TestC4_ACounterThatCannotTakeItsAddIsABadRecord(t *testing.T) {
	parker := new(lot)
	for kind, event := range map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent,
		envelope.SQS: sqsEvent} {
		m := newMachine(t, kind, func(c *Config, _ *merge.Config) { c.Parker = parker })
		m.store.Fault = func(call mergetest.Call) mergetest.Fault {
			return mergetest.RefuseOn(call, func(a merge.SlottedAdd) bool { return a.Cell.Key == "text" })
		}
		got := m.invoke(t, t.Context(), event(good("e1", "a"), good("e2", "text"), good("e3", "a")))
		want := map[envelope.Kind][]string{envelope.Kinesis: {}, envelope.SQS: {"m2"}}[kind]
		if !slices.Equal(got, want) || m.total("a") != "2" {
			t.Errorf("%s: %v come again, want %v; a = %s, want 2", kind, got, want, m.total("a"))
		}
	}
	if got := parker.numbers(); !slices.Equal(got, []string{"2"}) {
		t.Errorf("parked %v, want 2", got)
	}
}

func TestC7_APanicIsTheFailureOfItsRecordAlone(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte(ruleFile))
	if err != nil {
		t.Fatal(err)
	}
	healthy := false
	for kind, want := range map[envelope.Kind]string{envelope.SQS: "m2", envelope.Kinesis: "2"} {
		healthy = false
		parker := new(lot)
		m := newMachine(t, kind, func(c *Config, _ *merge.Config) {
			c.Parker = parker
			c.Rules = rulesFunc(func(dst []tally.Event, doc rules.Document) ([]tally.Event, error) {
				if !healthy && strings.Contains(string(doc.JSON), "e2") {
					panic(string(doc.JSON))
				}
				events, _, err := set.Events(dst, doc, c.Now())
				return events, err
			})
		})
		event := map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent, envelope.SQS: sqsEvent}[kind]
		batch := event(good("e1", "a"), good("e2", "a")+good("e4", "a"), good("e3", "a"))
		if got := m.invoke(t, t.Context(), batch); !slices.Equal(got, []string{want}) || m.total("a") != "2" {
			t.Errorf("%s: %v come again, want %s; a = %s, want 2", kind, got, want, m.total("a"))
		}
		if !strings.Contains(m.log.String(), "stack") || strings.Contains(m.log.String(), "delta") {
			t.Errorf("%s: the log must have the stack and nothing of the record: %s", kind, m.log)
		}
		healthy = true
		if got := m.invoke(t, t.Context(), batch); len(got) != 0 || m.total("a") != "4" {
			t.Errorf("%s, delivered again: %v, a = %s, want 4", kind, got, m.total("a"))
		}
		if len(parker.kept) != 0 {
			t.Errorf("%s: a panic passed for a bad record", kind)
		}
	}
}

func TestC7_APanicAfterTheClaimLosesAndDoublesNothing(t *testing.T) {
	m := newMachine(t, envelope.SQS, nil)
	broken := true
	m.store.Fault = func(call mergetest.Call) mergetest.Fault {
		if broken && call.Method == mergetest.Commit {
			return mergetest.Fault{Panic: "commit"}
		}
		return mergetest.Fault{}
	}
	batch := sqsEvent(good("e1", "a"), good("e2", "a"), good("e3", "a"))
	if got := m.invoke(t, t.Context(), batch); len(got) != 3 || m.total("a") != "0" {
		t.Errorf("%v come again, a = %s", got, m.total("a"))
	}
	broken = false
	if got := m.invoke(t, t.Context(), batch); len(got) != 0 || m.total("a") != "3" {
		t.Errorf("delivered again: %v, a = %s, want 3", got, m.total("a"))
	}
}

func TestD6_EveryDocumentOfARecordCountsUnderItsOwnIdentity(t *testing.T) {
	for kind, event := range map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent,
		envelope.SQS: sqsEvent} {
		m := newMachine(t, kind, nil)
		// Without an id of their own the documents are told apart by their place.
		anonymous := `{"key":"a","delta":1}`
		batch := event(good("e3", "a")+"\n"+good("e4", "a")+"\n", "["+anonymous+","+anonymous+"]",
			anonymous+anonymous+anonymous, "\uFEFF"+anonymous)
		for delivery := range 2 {
			if got := m.invoke(t, t.Context(), batch); len(got) != 0 || m.total("a") != "8" {
				t.Errorf("%s, delivery %d: %v come again, a = %s, want 8", kind, delivery, got, m.total("a"))
			}
		}
	}
}

func TestD6_ARecordWithOneBadDocumentIsBadAsAWhole(t *testing.T) {
	parker := new(lot)
	m := newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) { c.Parker = parker })
	payload := good("e1", "a") + "\n" + `{"id":"e2","key":"a","delta":"1"}` + "\n" + good("e3", "a")
	if got := m.invoke(t, t.Context(), kinesisEvent(good("e0", "a"), payload)); len(got) != 0 || m.total("a") != "1" {
		t.Fatalf("%v come again, a = %s, want 1", got, m.total("a"))
	}
	if len(parker.kept) != 1 || string(parker.kept[0].Payload) != payload || !strings.HasPrefix(parker.kept[0].Reason,
		"document 1: ") {
		t.Errorf("parked %+v", parker.kept)
	}
}

func TestD7_ARedeliveryCountsInTheBucketOfTheFirst(t *testing.T) {
	m := newMachine(t, envelope.SQS, nil)
	batch := sqsEvent(`{"key":"a","delta":1}`)
	m.invoke(t, t.Context(), batch)
	m.store.Clock.Advance(72 * 3600e9)
	m.invoke(t, t.Context(), batch)
	day := tally.Cell{Counter: "c", Key: "a", Window: "1d", Bucket: 1_699_920_000} // of the message's SentTimestamp
	if got := m.store.Total(day).String(); got != "1" || len(m.store.Snapshot().Totals()) != 2 {
		t.Errorf("the day of arrival has %s, want 1; cells: %v", got, m.store.Snapshot().Totals())
	}
}

func TestA4_ADuplicateInOneBatchIsAcknowledgedOnlyWithTheFirst(t *testing.T) {
	m := newMachine(t, envelope.SQS, nil)
	broken := true
	m.store.Fault = func(call mergetest.Call) mergetest.Fault {
		if broken && call.Method == mergetest.Commit {
			return mergetest.Fault{Err: mergetest.ErrDenied}
		}
		return mergetest.Fault{}
	}
	batch := sqsEvent(good("e1", "a"), good("e1", "a"))
	if got := m.invoke(t, t.Context(), batch); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("%v come again, want both", got)
	}
	broken = false
	if got := m.invoke(t, t.Context(), batch); len(got) != 0 || m.total("a") != "1" {
		t.Errorf("delivered again: %v, a = %s", got, m.total("a"))
	}
}
