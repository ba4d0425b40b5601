package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

// heavy makes each document move n cells.
func heavy(n int) rulesFunc {
	return func(dst []tally.Event, doc rules.Document) ([]tally.Event, error) {
		event := tally.Event{ID: doc.Source, Serial: doc.Serial, Adds: make([]tally.Add, n)}
		for i := range event.Adds {
			event.Adds[i] = tally.Add{Cell: tally.Cell{Counter: "c", Key: fmt.Sprint(i), Window: tally.All}, Delta: 1}
		}
		return append(dst, event), nil
	}
}

func TestBounds_RecordThatMovesTooMuchIsBadAndItsNeighboursCount(t *testing.T) {
	const adds = 64
	for _, documents := range []int{maxRecordAdds / adds, maxRecordAdds/adds + 1} {
		counted, largest := 0, 0
		var parkedDocuments int
		h, err := New(Config{
			Kind: envelope.Kinesis, Rules: heavy(adds),
			Parker: parkerFunc(func(context.Context, []byte) error { parkedDocuments++; return nil }),
			Sink: sinkFunc(func(_ context.Context, events []tally.Event) []merge.Outcome {
				outcomes := make([]merge.Outcome, len(events))
				for i := range outcomes {
					outcomes[i].Status = merge.Counted
				}
				counted, largest = counted+len(events), max(largest, len(events)*adds)
				return outcomes
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		one := `{"is":"C"}`
		answer, err := h.Invoke(t.Context(), kinesisEvent(one, strings.Repeat(one, documents), one))
		if err != nil || string(answer) != `{"batchItemFailures":[]}` {
			t.Fatalf("%d documents: %s, %v", documents, answer, err)
		}
		wantCounted, wantParked := documents+2, 0
		if documents*adds > maxRecordAdds {
			wantCounted, wantParked = 2, 1
		}
		if counted != wantCounted || parkedDocuments != wantParked {
			t.Errorf("%d documents: %d counted and %d parked, want %d and %d",
				documents, counted, parkedDocuments, wantCounted, wantParked)
		}
		if largest > maxRecordAdds+maxPendingAdds {
			t.Errorf("%d moves in one merge", largest)
		}
	}
}

func TestPosition_BatchOutOfOrderIsAnErrorAndCountsNothing(t *testing.T) {
	h, err := New(Config{
		Kind: envelope.Kinesis, ByPosition: true, Rules: heavy(1),
		Sink: sinkFunc(func(context.Context, []tally.Event) []merge.Outcome {
			t.Error("something was counted")
			return nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, second := range map[string]string{
		"twice the same": "1", "lower": "0", "too many digits": strings.Repeat("9", maxDigits+1),
	} {
		raw := string(kinesisEvent(`{"is":"C"}`, `{"is":"C"}`))
		bent := strings.ReplaceAll(raw, `"sequenceNumber":"2"`, `"sequenceNumber":"`+second+`"`)
		bent = strings.ReplaceAll(bent, `shardId-000000000001:2`, `shardId-000000000001:`+second)
		if answer, err := h.Invoke(t.Context(), []byte(bent)); !errors.Is(err, envelope.ErrEvent) {
			t.Errorf("%s: %s, %v, want ErrEvent", name, answer, err)
		}
	}
}

type parkerFunc func(ctx context.Context, document []byte) error

func (f parkerFunc) Park(ctx context.Context, document []byte) error { return f(ctx, document) }
