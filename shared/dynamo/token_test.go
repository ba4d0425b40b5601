package dynamo

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"abacus/shared/local/table"
	"abacus/shared/local/wire"
	"abacus/shared/merge"
	"abacus/shared/tally"
)

// tokens watches that no request token goes with two bodies.
type tokens struct {
	*testing.T
	mu   sync.Mutex
	seen map[string]string
	next func(n int) wire.Fault // of the n-th transaction, from 0
	n    int
}

func (s *tokens) fault(call wire.Call) wire.Fault {
	if call.Name != operationCommit {
		return wire.Fault{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var in struct{ ClientRequestToken string }
	if err := json.Unmarshal(call.Body, &in); err != nil || in.ClientRequestToken == "" {
		s.Errorf("a transaction without a token: %v", err)
	}
	if body, ok := s.seen[in.ClientRequestToken]; ok && body != string(call.Body) {
		s.Error("one token goes with two bodies")
	}
	s.seen[in.ClientRequestToken] = string(call.Body)
	s.n++
	return s.next(s.n - 1)
}

// Case B2: what makes a repeated transaction harmless is the commit record, not DynamoDB's memory of its request token.
func TestB2_RepeatedTransactionsCountOnceWhateverBecomesOfTheirTokens(t *testing.T) {
	failed := wire.Errorf("InternalServerError", "m")
	failed.Status = 500
	for name, next := range map[string]func(n int) wire.Fault{
		"applied, and the answer fails beyond the SDK's own tries": func(n int) wire.Fault {
			if n < 5 {
				return wire.Fault{After: failed}
			}
			return wire.Fault{}
		},
		"in progress four times": func(n int) wire.Fault {
			if n < 4 {
				return wire.Fault{Before: wire.Errorf("TransactionInProgressException", "m")}
			}
			return wire.Fault{}
		},
		"a mismatch": func(n int) wire.Fault {
			if n == 0 {
				return wire.Fault{Before: wire.Errorf("IdempotentParameterMismatchException", "m")}
			}
			return wire.Fault{}
		},
		"a mismatch after it was applied": func(n int) wire.Fault {
			if n == 0 {
				return wire.Fault{After: wire.Errorf("IdempotentParameterMismatchException", "m")}
			}
			return wire.Fault{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sky, client := stormyStandIn(t)
			watch := &tokens{T: t, seen: map[string]string{}, next: next}
			sky.turn(watch.fault)
			store := withRetries(storeOn(t, optionsFor(client)))
			event := flights(1, 3)
			for delivery := range 3 {
				if o := merger(t, store, time.Now).MergeMany(t.Context(), event)[0]; o.Done() {
					break
				} else if delivery == 2 {
					t.Fatalf("not counted in three deliveries: %v", o.Err)
				}
			}
			for _, add := range event[0].Adds {
				got, err := readerOn(t, optionsFor(client)).Get(t.Context(), add.Cell)
				if err != nil || got != tally.SumOf(add.Delta) {
					t.Errorf("%s = %s, %v; want %d", add.Cell.Key, got, err, add.Delta)
				}
			}
		})
	}
}

func TestB2_AMismatchOrATransactionInProgressIsNeverASuccess(t *testing.T) {
	for _, code := range []string{"IdempotentParameterMismatchException", "TransactionInProgressException"} {
		s := &script{replies: map[string][]reply{operationCommit: {refusalOf(code, "")}}}
		record, err := storeOn(t, scripted(t, s)).Commit(t.Context(), someAttempt(1))
		if kindOf(err) != "unknown" || record.State == merge.Committed {
			t.Errorf("%s: %+v, %v", code, record, err)
		}
	}
}

// DynamoDB forgets a request token after ten minutes; a repeat eleven minutes later is a new request to it.
func TestB2_ElevenMinutesLaterTheRecordStillRecognisesTheRepeat(t *testing.T) {
	var mu sync.Mutex
	ahead := time.Duration(0)
	service := table.New(table.Config{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}})
	sky := &weather{}
	service.Fault = sky.fault
	client := NewClient(configFor(serve(t, service)))
	createTables(t, client)
	store := storeOn(t, optionsFor(client))
	sky.turn(lostOnce())
	attempt := someAttempt(3)
	if _, err := store.Commit(t.Context(), attempt); kindOf(err) != "unknown" {
		t.Fatalf("lost reply: %v", err)
	}
	sky.turn(nil)
	mu.Lock()
	ahead = 11 * time.Minute
	mu.Unlock()
	if record, err := store.Commit(t.Context(), attempt); err != nil || record.State != merge.Committed {
		t.Errorf("%+v, %v", record, err)
	}
	for _, add := range attempt.Adds {
		if got, err := readerOn(t, optionsFor(client)).Get(t.Context(), add.Cell); err != nil || fmt.Sprint(got) != "1" {
			t.Errorf("%s = %s, %v", add.Cell.Key, got, err)
		}
	}
}
