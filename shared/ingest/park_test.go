package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// parking returns a Kinesis machine that parks in p.
func parking(t *testing.T, p Parker) *machine {
	t.Helper()
	return newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) { c.Parker = p })
}

func TestPark_ABadRecordIsKeptWithAllThatItTakesToCountItLater(t *testing.T) {
	parker := new(lot)
	m := parking(t, parker)
	if got := m.invoke(t, t.Context(), kinesisEvent(good("e1", "a"), "not json", good("e3", "a"))); len(got) != 0 ||
		m.total("a") != "2" {
		t.Fatalf("%v come again, a = %s", got, m.total("a"))
	}
	if len(parker.kept) != 1 {
		t.Fatalf("%d parked", len(parker.kept))
	}
	p := parker.kept[0]
	if p.Kind != envelope.Kinesis || p.Source != streamARN || p.Shard != "shardId-000000000001" || p.Number != "2" ||
		p.Identity != envelope.KinesisIdentity(streamARN, p.Shard, "2") || string(p.Payload) != "not json" || p.Round != 0 ||
		p.Rules != m.rules.Digest() || !strings.HasPrefix(p.Reason, "payload cannot be read: ") ||
		p.Arrived.UnixMilli() != 1_700_000_000_500 ||
		p.First.IsZero() || !p.First.Equal(p.Last) || p.First.Location() != time.UTC {
		t.Errorf("parked %+v", p)
	}
	if m.heard.counts[merge.MetricParked] != 1 || m.heard.counts[MetricDone] != 2 || m.heard.counts[MetricFailed] != 0 {
		t.Errorf("heard %v", m.heard.counts)
	}
}

func TestPark_ARecordThatCannotBeParkedComesAgain(t *testing.T) {
	parker := &lot{refuse: func(_ context.Context, p envelope.Parked) error {
		switch p.Number {
		case "1":
			return errFull
		case "2":
			panic("queue")
		}
		return nil
	}}
	m := parking(t, parker)
	batch := kinesisEvent("bad", "bad", "bad", good("e4", "a"))
	if got := m.invoke(t, t.Context(), batch); !slices.Equal(got, []string{"1", "2"}) || m.total("a") != "1" {
		t.Errorf("%v come again, want 1 and 2; a = %s", got, m.total("a"))
	}
	if got := parker.numbers(); !slices.Equal(got, []string{"3"}) {
		t.Errorf("parked %v", got)
	}
	if log := m.log.String(); !strings.Contains(log, errFull.Error()) || !strings.Contains(log,
		`"shard":"shardId-000000000001"`) {
		t.Errorf("the log does not say why and where: %s", log)
	}
	parker.refuse = nil
	if got := m.invoke(t, t.Context(), batch); len(got) != 0 || m.total("a") != "1" {
		t.Errorf("delivered again: %v, a = %s", got, m.total("a"))
	}
}

func TestPark_ARecordBehindOneThatComesAgainIsParkedOnlyOnce(t *testing.T) {
	parker := new(lot)
	m := parking(t, parker)
	m.store.Fault = func(call mergetest.Call) mergetest.Fault {
		if call.Method == mergetest.Commit {
			return mergetest.Fault{Err: mergetest.ErrDenied}
		}
		return mergetest.Fault{}
	}
	batch := kinesisEvent("bad", good("e2", "a"), "bad", "bad")
	for range 3 {
		if got := m.invoke(t, t.Context(), batch); !slices.Equal(got, []string{"2", "3", "4"}) {
			t.Errorf("%v come again, want 2, 3 and 4", got)
		}
		if slices.Contains(parker.numbers(), "3") {
			t.Error("record 3 was parked, and comes again")
		}
	}
	m.store.Fault, parker.kept = nil, nil
	if got := m.invoke(t, t.Context(), kinesisEvent(good("e0", "b"), good("e2", "a"), "bad", "bad")); len(got) != 0 {
		t.Errorf("delivered again: %v come again", got)
	}
	if got := parker.numbers(); !slices.Equal(got, []string{"3", "4"}) || m.total("a") != "1" {
		t.Errorf("parked %v, a = %s", got, m.total("a"))
	}
}

func TestPark_ARecordTooLargeForAMessageComesAgainAndTheLogSaysSo(t *testing.T) {
	parker := new(lot)
	m := parking(t, parker)
	noise := make([]byte, 800_000) // nothing makes it smaller
	rand.NewChaCha8([32]byte{1}).Read(noise)
	for range 2 {
		if got := m.invoke(t, t.Context(), kinesisEvent(string(noise), string(noise[:700_000]))); !slices.Equal(got,
			[]string{"1"}) {
			t.Errorf("%v come again, want 1", got)
		}
	}
	if parker.notices != 1 {
		t.Errorf("%d notices of one record, want 1", parker.notices)
	}
	if !strings.Contains(m.log.String(), envelope.ErrParkedSize.Error()) || !slices.Equal(parker.numbers(),
		[]string{"2", "2"}) {
		t.Errorf("parked %v; %s", parker.numbers(), m.log)
	}
}

func TestPark_SQSLeavesBadMessagesToTheQueuesOwnRedrive(t *testing.T) {
	parker := new(lot)
	m := newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) { c.Parker = parker })
	if got := m.invoke(t, t.Context(), sqsEvent("bad")); !slices.Equal(got, []string{"m1"}) || len(parker.kept) != 0 {
		t.Errorf("%v come again, %d parked", got, len(parker.kept))
	}
	if m.heard.counts[MetricBad] != 1 {
		t.Errorf("heard %v", m.heard.counts)
	}
}

func TestPark_FewAtATimeAndTheFirstOnesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		parker := &lot{refuse: func(ctx context.Context, _ envelope.Parked) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		m := parking(t, parker)
		var payloads []string
		for range 100 {
			payloads = append(payloads, "bad")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		got := m.invoke(t, ctx, kinesisEvent(payloads...))
		if took := time.Since(start); took > 9*time.Second {
			t.Errorf("answered after %v of 10 s", took)
		}
		if most.Load() != parkWidth {
			t.Errorf("%d at once, want %d", most.Load(), parkWidth)
		}
		// What is left is the end of the batch, so that the shard moves on.
		parked := len(parker.kept)
		if parked < 5*parkWidth || len(got) != 100-parked || got[0] != fmt.Sprint(parked+1) {
			t.Errorf("%d parked, %d come again, the first is %s", parked, len(got), got[0])
		}
	})
}

func TestPark_HasTimeLeftWhenCountingUsesAllOfIts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parker := new(lot)
		m := parking(t, parker)
		m.sink = sinkFunc(func(ctx context.Context, events []tally.Event) []merge.Outcome {
			<-ctx.Done()
			return make([]merge.Outcome, len(events))
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		got := m.invoke(t, ctx, kinesisEvent("bad", good("e2", "a")))
		if !slices.Equal(got, []string{"2"}) || !slices.Equal(parker.numbers(), []string{"1"}) || ctx.Err() != nil {
			t.Errorf("%v come again, %v parked, %v", got, parker.numbers(), ctx.Err())
		}
	})
}

func TestPark_AfterTheDeadlineNothingIsParkedAndNothingLost(t *testing.T) {
	parker := new(lot)
	m := parking(t, parker)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	if got := m.invoke(t, ctx, kinesisEvent("bad", good("e2", "a"))); !slices.Equal(got, []string{"1", "2"}) ||
		len(parker.kept) != 0 {
		t.Errorf("%v come again, %d parked", got, len(parker.kept))
	}
}
