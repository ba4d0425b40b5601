package ingest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
)

// slow is a store whose commits take a while.
type slow struct {
	merge.Store
	takes time.Duration
}

func (s slow) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	select {
	case <-time.After(s.takes):
		return s.Store.Commit(ctx, a)
	case <-ctx.Done():
		return merge.Record{}, ctx.Err()
	}
}

func TestC8_TheAnswerComesBeforeTheDeadlineAndNamesExactlyWhatIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, envelope.SQS, func(_ *Config, core *merge.Config) {
			core.Store = slow{core.Store, 300 * time.Millisecond}
			core.Workers, core.ChunkEvents = 1, 1
		})
		var bodies []string
		for i := range 10 {
			bodies = append(bodies, good(fmt.Sprint("e", i+1), fmt.Sprint("k", i+1)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		got := m.invoke(t, ctx, sqsEvent(bodies...))
		if left := 1500*time.Millisecond - time.Since(start); left < 50*time.Millisecond {
			t.Errorf("answered %v before the deadline", left)
		}
		if len(got) == 0 || len(got) == 10 {
			t.Fatalf("%d of 10 come again; the case wants some of both", len(got))
		}
		for i := range 10 {
			listed, counted := slices.Contains(got, fmt.Sprint("m", i+1)), m.total(fmt.Sprint("k", i+1)) == "1"
			held := m.store.Snapshot().Held(fmt.Sprint("e", i+1))
			if listed == counted || listed && held {
				t.Errorf("message %d: listed %t, counted %t, claim held %t", i+1, listed, counted, held)
			}
		}
		m.store.Fault = func(mergetest.Call) mergetest.Fault { return mergetest.Fault{} }
		if got := m.invoke(t, t.Context(), sqsEvent(bodies...)); len(got) != 0 {
			t.Errorf("delivered again: %v", got)
		}
		for i := range 10 {
			if got := m.total(fmt.Sprint("k", i+1)); got != "1" {
				t.Errorf("k%d = %s", i+1, got)
			}
		}
	})
}

func TestC8_ADeadlineThatHasPassedLosesNothing(t *testing.T) {
	for _, kind := range []envelope.Kind{envelope.Kinesis, envelope.SQS} {
		m := newMachine(t, kind, nil)
		event := map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent, envelope.SQS: sqsEvent}[kind]
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if got := m.invoke(t, ctx, event(good("e1", "a"), good("e2", "a"))); len(got) != 2 || m.total("a") != "0" {
			t.Errorf("%s: %v come again, a = %s", kind, got, m.total("a"))
		}
		if got := m.invoke(t, t.Context(), event(good("e1", "a"), good("e2", "a"))); len(got) != 0 || m.total("a") != "2" {
			t.Errorf("%s, delivered again: %v, a = %s", kind, got, m.total("a"))
		}
	}
}
