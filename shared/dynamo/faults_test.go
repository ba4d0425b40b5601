package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"abacus/shared/local/table"
	"abacus/shared/local/wire"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// weather is a fault switch that a test turns while calls are under way.
type weather struct {
	now atomic.Pointer[func(wire.Call) wire.Fault]
}

func (w *weather) turn(to func(wire.Call) wire.Fault) { w.now.Store(&to) }

func (w *weather) fault(call wire.Call) wire.Fault {
	if now := w.now.Load(); now != nil && *now != nil {
		return (*now)(call)
	}
	return wire.Fault{}
}

// stormyStandIn is standIn under weather, which is calm at first.
func stormyStandIn(t testing.TB) (*weather, *dynamodb.Client) {
	t.Helper()
	w, service := &weather{}, table.New(table.Config{})
	service.Fault = w.fault
	client := NewClient(configFor(serve(t, service)))
	createTables(t, client)
	return w, client
}

// lostOnce loses the reply of the first call of each operation, which was applied.
func lostOnce() func(wire.Call) wire.Fault {
	var mu sync.Mutex
	lost := map[string]bool{}
	return func(call wire.Call) wire.Fault {
		mu.Lock()
		defer mu.Unlock()
		if lost[call.Name] {
			return wire.Fault{}
		}
		lost[call.Name] = true
		return wire.Fault{Lose: true}
	}
}

// Each method after a lost reply: the same call again finds what the first has done, and does nothing twice.
func TestStore_EveryCallAfterALostReplyRecognisesItself(t *testing.T) {
	for _, retries := range []bool{false, true} {
		for _, single := range []bool{false, true} {
			t.Run(fmt.Sprintf("sdk retries=%t,single=%t", retries, single), func(t *testing.T) {
				sky, client := stormyStandIn(t)
				o := optionsFor(client)
				o.SingleClaims = single
				store := storeOn(t, o)
				if retries {
					store = withRetries(store)
				}
				again := func(call func() error) { // until there is an answer: once more, or within the SDK
					t.Helper()
					sky.turn(lostOnce())
					defer sky.turn(nil)
					err := call()
					if (err != nil) == retries || err != nil && kindOf(err) != "unknown" {
						t.Fatalf("lost reply: %v", err)
					}
					for range 2 { // what it reads to find out may get lost as well
						if err != nil {
							err = call()
						}
					}
					if err != nil {
						t.Fatalf("after a lost reply: %v", err)
					}
				}
				lostCalls(t, store, again)
				total, err := readerOn(t, o).Get(t.Context(), someAttempt(1).Adds[0].Cell)
				if err != nil || total.String() != "1" {
					t.Errorf("counted %s times, %v", total, err)
				}
			})
		}
	}
}

func lostCalls(t *testing.T, store *Store, again func(func() error)) {
	t.Helper()
	ctx := t.Context()
	want := func(what string, ok bool, got any) {
		t.Helper()
		if !ok {
			t.Errorf("%s after a lost reply answers %+v", what, got)
		}
	}
	again(func() error {
		got := store.PutClaims(ctx, claimsNamed("T", "e"))[0]
		want("PutClaims", got.Err != nil || got.Standing.Token == "T", got)
		return got.Err
	})
	again(func() error {
		got, err := store.Abort(ctx, "T", time.Now().Add(2*time.Hour))
		want("Abort", err != nil || got.State == merge.Aborted, got)
		return err
	})
	again(func() error {
		got, err := store.TakeClaim(ctx, claimsNamed("U", "e")[0], "T")
		want("TakeClaim", err != nil || got.Token == "U", got)
		return err
	})
	slot := -1
	again(func() error {
		a := someAttempt(1)
		slot++
		a.Token, a.Adds[0].Slot = "U", slot // another slot in each call, as after a conflict
		got, err := store.Commit(ctx, a)
		want("Commit", err != nil || got.State == merge.Committed, got)
		return err
	})
	again(func() error {
		got, err := store.FindRecord(ctx, "U")
		want("FindRecord", err != nil || got.State == merge.Committed, got)
		return err
	})
	store.PutClaims(ctx, claimsNamed("T", "f"))
	again(func() error { return store.Release(ctx, "f", "T") })
	if got := store.PutClaims(ctx, claimsNamed("V", "f"))[0]; got.Standing.Token != "V" {
		t.Errorf("after Release the row is %+v", got)
	}
}

// withRetries lets the SDK retry on its own, as a client that is not from NewClient would.
func withRetries(s *Store) *Store {
	s.options = func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(s *retry.StandardOptions) {
			s.MaxAttempts = 4
			s.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}
	return s
}

func TestStore_NeverRetriesByItself(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "5")
	for _, answer := range []reply{refusalOf("ThrottlingException", ""), {status: 500}, {cut: true}} {
		for operation, call := range methods {
			s := &script{replies: map[string][]reply{operation: {answer}}}
			cfg := configFor(serve(t, s))
			cfg.RetryMaxAttempts = 5
			eager := dynamodb.NewFromConfig(cfg) // with the SDK's own retries
			if err := call(t.Context(), storeOn(t, optionsFor(eager))); err == nil || len(s.seen()) != 1 {
				t.Errorf("%s: %v after %d requests", operation, err, len(s.seen()))
			}
		}
	}
}

// A transaction that holds an item makes another on it a conflict, which names the adds that met it.
func TestCommit_MeetsAnotherTransaction(t *testing.T) {
	held, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, client := standIn(t, table.Config{Hold: func(context.Context) {
		once.Do(func() {
			close(held)
			<-free
		})
	}})
	store := storeOn(t, optionsFor(client))
	first, second := someAttempt(2), someAttempt(3)
	first.Token, second.Token = "A", "B"
	first.Adds = first.Adds[1:]
	done := make(chan error)
	go func() {
		_, err := store.Commit(t.Context(), first)
		done <- err
	}()
	<-held
	_, err := store.Commit(t.Context(), second)
	_, errAbort := store.Abort(t.Context(), "A", time.Now().Add(3*time.Hour))
	close(free)
	if kindOf(err) != "conflict [1] false" || kindOf(errAbort) != "conflict [] true" {
		t.Errorf("%v; %v", err, errAbort)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	second.Adds[1].Slot++
	if record, err := store.Commit(t.Context(), second); err != nil || record.State != merge.Committed {
		t.Errorf("on another slot: %+v, %v", record, err)
	}
}

// snapshot reads both tables whole.
func snapshot(t testing.TB, client *dynamodb.Client) mergetest.Snapshot {
	t.Helper()
	now := time.Now()
	snap := mergetest.Snapshot{
		Now: now, Claims: map[string]merge.Claim{}, Records: map[merge.Token]merge.Record{},
		Rows: map[mergetest.Row]mergetest.Count{},
	}
	var err error
	for _, item := range scan(t, client, dedupName) {
		pk, _ := textOf(item, attrPK)
		if token, ok := strings.CutPrefix(pk, commitPrefix); ok {
			snap.Records[merge.Token(token)], err = recordFrom(item)
		} else if event, bad := eventOf(pk); bad == nil {
			snap.Claims[event], err = claimFrom(item, event)
		} else {
			err = bad
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, item := range scan(t, client, countersName) {
		pk, _ := textOf(item, attrPK)
		sk, _ := textOf(item, attrSK)
		window, bucket, err := bucketOf(sk)
		n, errN := sumOf(item)
		slot, errSlot := strconv.Atoi(sk[strings.LastIndex(sk, "|")+1:])
		if err := errors.Join(err, errN, errSlot); err != nil {
			t.Fatal(err)
		}
		counter, key, _ := strings.Cut(pk, "|")
		cell := tally.Cell{Counter: counter, Key: key, Window: window, Bucket: bucket}
		snap.Rows[mergetest.Row{Cell: cell, Slot: slot}] = mergetest.Count{N: n}
	}
	return snap
}

func scan(t testing.TB, client *dynamodb.Client, name string) []row {
	t.Helper()
	var items []row
	in := &dynamodb.ScanInput{TableName: aws.String(name), ConsistentRead: aws.Bool(true)}
	for {
		out, err := client.Scan(context.WithoutCancel(t.Context()), in)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, out.Items...)
		if len(out.LastEvaluatedKey) == 0 {
			return items
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func flights(n, keys int) []tally.Event {
	events := make([]tally.Event, n)
	for i := range events {
		events[i].ID = fmt.Sprint("flight-", i)
		for k := range keys {
			cell := tally.Cell{Counter: "flights", Key: fmt.Sprint("k", k, "-", i%(k*5+1)), Window: "all"}
			events[i].Adds = append(events[i].Adds, tally.Add{Cell: cell, Delta: int64(k + 1)})
		}
	}
	return events
}

// merger is the core on a store, impatient.
func merger(t testing.TB, store merge.Store, now func() time.Time) *merge.Merger {
	t.Helper()
	m, err := merge.New(merge.Config{
		Store: store, Now: now, Backoff: time.Millisecond, BackoffCap: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stormy breaks one call in three in every way that the wire can show.
func stormy(seed uint64) func(wire.Call) wire.Fault {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 1))
	return func(wire.Call) wire.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch rng.IntN(18) {
		case 0, 1:
			return wire.Fault{Lose: true}
		case 2:
			return wire.Fault{Refuse: true}
		case 3:
			return wire.Fault{Refuse: true, Late: 3 * time.Millisecond}
		case 4:
			return wire.Fault{After: &wire.Error{Code: "InternalServerError", Status: 500}}
		case 5:
			return wire.Fault{Before: wire.Errorf("ThrottlingException", "slow down")}
		}
		return wire.Fault{}
	}
}

// The whole path under lost replies, late requests, refusals and throttles, with the SDK's own retries off and on,
// claims in batches and one by one, several workers at once, whose leases end while they are at work: every event is
// counted once.
func TestStore_CountsExactlyThroughAStorm(t *testing.T) {
	for i, name := range []string{"batches", "single claims", "batches, SDK retries", "single claims, SDK retries"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			sky, client := stormyStandIn(t)
			o := optionsFor(client)
			o.SingleClaims = i%2 == 1
			clock := &mergetest.Clock{}
			o.Now = clock.Now
			store := storeOn(t, o)
			if i >= 2 {
				store = withRetries(store)
			}
			events := flights(90, 3)
			sky.turn(stormy(seed))
			d := mergetest.Delivery{Batch: 30, Rounds: 100, Pause: func() { clock.Advance(2 * time.Minute) }}
			var workers sync.WaitGroup
			for w := range 3 {
				workers.Go(func() {
					m := merger(t, store, clock.Now)
					mine := slices.Concat(events[w*30:], events[:w*30]) // all take all events, each from its own start
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					mergetest.Deliver(t, mine, d, func(batch []tally.Event) []merge.Outcome {
						return m.MergeMany(ctx, batch)
					})
				})
			}
			workers.Wait()
			sky.turn(nil)
			mergetest.Audit(t, snapshot(t, client), events)
		})
	}
}

// Case B5: a burst of throttles does not become a permanent failure, nor a count that is off.
func TestB5_ABurstOfThrottlesIsSurvived(t *testing.T) {
	for _, retries := range []bool{false, true} {
		t.Run(fmt.Sprintf("sdk retries=%t", retries), func(t *testing.T) {
			sky, client := stormyStandIn(t)
			store := storeOn(t, optionsFor(client))
			if retries {
				store = withRetries(store)
			}
			sky.turn(func(call wire.Call) wire.Fault {
				if call.N <= 300 {
					return wire.Fault{Before: wire.Errorf("ProvisionedThroughputExceededException", "slow down")}
				}
				return wire.Fault{}
			})
			m, events := merger(t, store, time.Now), flights(500, 1)
			var workers sync.WaitGroup
			for w := range 50 {
				workers.Go(func() {
					mine := events[w*10 : w*10+10]
					mergetest.Deliver(t, mine, mergetest.Delivery{}, func(batch []tally.Event) []merge.Outcome {
						outcomes := m.MergeMany(t.Context(), batch)
						for _, o := range outcomes {
							if errors.Is(o.Err, merge.ErrPermanent) {
								t.Errorf("throttles passed for permanent: %v", o.Err)
							}
						}
						return outcomes
					})
				})
			}
			workers.Wait()
			mergetest.Audit(t, snapshot(t, client), events)
		})
	}
}

// Case B4: the limit of one transaction, and one past it, with the record among its actions.
func TestB4_LimitOfOneTransaction(t *testing.T) {
	_, client := standIn(t, table.Config{})
	store := storeOn(t, optionsFor(client))
	at, past := someAttempt(merge.MaxAdds), someAttempt(merge.MaxAdds+1)
	if record, err := store.Commit(t.Context(), at); err != nil || record.State != merge.Committed {
		t.Errorf("99 adds: %+v, %v", record, err)
	}
	past.Token = "past"
	if _, err := store.Commit(t.Context(), past); kindOf(err) != "permanent" {
		t.Errorf("100 adds: %v", err)
	}
	twice := someAttempt(1)
	twice.Token, twice.Adds = "twice", append(twice.Adds, twice.Adds[0])
	if _, err := store.Commit(t.Context(), twice); kindOf(err) != "permanent" {
		t.Errorf("one row twice: %v", err)
	}
}

// Case C4: a counter row that somebody else has made a text is refused by name, without a retry.
func TestC4_CounterThatIsNotANumberIsRefusedByName(t *testing.T) {
	service, client := standIn(t, table.Config{})
	store := storeOn(t, optionsFor(client))
	item := row{attrPK: text("c|k1"), attrSK: text("all|-|0"), attrN: text("many")}
	put := &dynamodb.PutItemInput{TableName: aws.String(countersName), Item: item}
	if _, err := client.PutItem(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	before := service.Calls()
	_, err := store.Commit(t.Context(), someAttempt(3))
	if kindOf(err) != "refused [1]" || service.Calls() != before+1 {
		t.Errorf("%v after %d calls", err, service.Calls()-before)
	}
	if _, ok := item[attrN].(*types.AttributeValueMemberS); !ok {
		t.Error("the row was changed")
	}
}
