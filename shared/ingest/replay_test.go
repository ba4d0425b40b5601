package ingest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

func statuses(outcomes []Outcome) []Status {
	var all []Status
	for _, o := range outcomes {
		all = append(all, o.Status)
	}
	return all
}

func decoded(t *testing.T, kind envelope.Kind, event []byte) *envelope.Batch {
	t.Helper()
	b, err := envelope.Decode(kind, event)
	if err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestReplay_EveryRecordIsAnsweredForAndCountsOnce(t *testing.T) {
	for _, kind := range []envelope.Kind{envelope.Kinesis, envelope.SQS} {
		m := newMachine(t, envelope.SQS, nil) // one handler replays both
		event := map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent, envelope.SQS: sqsEvent}[kind]
		batch := decoded(t, kind, event(good("e1", "a"), "not json", `{"skip":true}`, good("e1", "a"),
			good("e2", "a")+good("e1", "a")))
		first := m.Replay(t.Context(), batch)
		if got, want := statuses(first), []Status{Counted, Bad, Skipped, Duplicate, Counted}; !slices.Equal(got, want) ||
			first[1].Reason == nil {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
		again := statuses(m.Replay(t.Context(), batch))
		if want := []Status{Duplicate, Bad, Skipped, Duplicate, Duplicate}; !slices.Equal(again, want) {
			t.Errorf("%s, again: %v, want %v", kind, again, want)
		}
		if m.total("a") != "2" {
			t.Errorf("%s: a = %s, want 2", kind, m.total("a"))
		}
	}
}

func TestReplay_ADeliveryAndAReplayOfOneRecordCountOnce(t *testing.T) {
	m := newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) { c.Parker = new(lot) })
	event := kinesisEvent(`{"key":"a","delta":1}`, `{"key":"a","delta":1}`) // known by their identities
	m.invoke(t, t.Context(), event)
	before := m.total("a")
	for _, o := range m.Replay(t.Context(), decoded(t, envelope.Kinesis, event)) {
		if o.Status != Duplicate {
			t.Errorf("%+v, want a duplicate", o)
		}
	}
	if m.total("a") != before || before == "0" {
		t.Errorf("a = %s, was %s", m.total("a"), before)
	}
}

func TestReplay_WhatFailsIsFailedAndParksNothing(t *testing.T) {
	parker := new(lot)
	m := newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) { c.Parker = parker })
	m.store.Fault = func(mergetest.Call) mergetest.Fault { return mergetest.Fault{Err: mergetest.ErrDenied} }
	batch := decoded(t, envelope.Kinesis, kinesisEvent(good("e1", "a"), "bad"))
	if got := statuses(m.Replay(t.Context(), batch)); !slices.Equal(got, []Status{Failed, Bad}) || len(parker.kept) != 0 {
		t.Errorf("%v, %d parked", got, len(parker.kept))
	}
	for name, sink := range map[string]sinkFunc{
		"panics":  func(context.Context, []tally.Event) []merge.Outcome { panic("sink") },
		"too few": func(context.Context, []tally.Event) []merge.Outcome { return nil },
		"in flight": func(_ context.Context, e []tally.Event) []merge.Outcome {
			return slices.Repeat([]merge.Outcome{{Status: merge.InFlight}}, len(e))
		},
	} {
		m := newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) { c.Sink = sink })
		if got := statuses(m.Replay(t.Context(), batch)); !slices.Equal(got, []Status{Failed, Bad}) {
			t.Errorf("a sink that %s: %v", name, got)
		}
	}
	m = newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) { c.Log = nil })
	m.opener = nil
	if got := statuses(m.Replay(t.Context(), batch)); !slices.Equal(got, []Status{Failed, Failed}) {
		t.Errorf("a panic in opening: %v", got)
	}
}

func TestReplay_TakesOverNothingThatAShardIsAtWorkOn(t *testing.T) {
	serials := []string{}
	m := newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) {
		c.Sink = sinkFunc(func(_ context.Context, events []tally.Event) []merge.Outcome {
			for _, e := range events {
				serials = append(serials, e.Serial)
			}
			return slices.Repeat([]merge.Outcome{{Status: merge.Counted}}, len(events))
		})
	})
	m.Replay(t.Context(), decoded(t, envelope.Kinesis, kinesisEvent(good("e1", "a"))))
	if !slices.Equal(serials, []string{""}) {
		t.Errorf("serial sources %q, want none", serials)
	}
}

func TestReplay_ByPositionIsRefused(t *testing.T) {
	sink := &marks{mark: map[tally.Cell]string{}, total: map[tally.Cell]int64{}, fails: func() bool { return false }}
	m := newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) { c.Sink, c.ByPosition = sink, true })
	got := m.Replay(t.Context(), decoded(t, envelope.Kinesis, kinesisEvent(good("e1", "a"))))
	if len(got) != 1 || got[0].Status != Failed || !errors.Is(got[0].Reason, errByPosition) || len(sink.total) != 0 {
		t.Errorf("%+v, counted %v", got, sink.total)
	}
}
