package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// memory is a merge.Store of maps, for measuring all but the store. It answers as a healthy store does.
type memory struct {
	mu      sync.Mutex
	claims  map[string]merge.Claim
	records map[merge.Token]merge.Record
	totals  map[tally.Cell]tally.Sum
}

func newMemory() *memory {
	return &memory{
		claims: map[string]merge.Claim{}, records: map[merge.Token]merge.Record{}, totals: map[tally.Cell]tally.Sum{},
	}
}

// forget empties the store and keeps its maps' room.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.claims)
	clear(m.records)
	clear(m.totals)
}

func (m *memory) PutClaims(_ context.Context, claims []merge.Claim) []merge.ClaimReply {
	m.mu.Lock()
	defer m.mu.Unlock()
	replies := make([]merge.ClaimReply, len(claims))
	for i, c := range claims {
		standing, ok := m.claims[c.Event]
		if !ok {
			standing = c
			m.claims[c.Event] = c
		}
		replies[i].Standing = standing
	}
	return replies
}

func (m *memory) TakeClaim(_ context.Context, claim merge.Claim, from merge.Token) (merge.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[claim.Event].Token == from {
		m.claims[claim.Event] = claim
	}
	return m.claims[claim.Event], nil
}

func (m *memory) FindRecord(_ context.Context, token merge.Token) (merge.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[token], nil
}

func (m *memory) Abort(_ context.Context, token merge.Token, _ time.Time) (merge.Record, error) {
	return m.decide(token, merge.Record{State: merge.Aborted}, nil), nil
}

func (m *memory) Commit(_ context.Context, a merge.Attempt) (merge.Record, error) {
	return m.decide(a.Token, merge.Record{State: merge.Committed, Except: a.Except}, a.Adds), nil
}

func (m *memory) decide(token merge.Token, record merge.Record, adds []merge.SlottedAdd) merge.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if standing, ok := m.records[token]; ok {
		return standing
	}
	m.records[token] = record
	for _, add := range adds {
		m.totals[add.Cell] = m.totals[add.Cell].Plus(add.Delta)
	}
	return record
}

func (m *memory) Release(_ context.Context, event string, token merge.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[event].Token == token {
		delete(m.claims, event)
	}
	return nil
}

// invocations is how many whole invocations one measurement takes.
const invocations = 20

// cost is what one event of an invocation takes.
type cost struct{ micros, allocs float64 }

// costOf measures processor time, that of collecting garbage included. Other work on the machine moves it less than the
// time on the clock.
func costOf(events int, invoke func() error) (cost, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime()
	for range invocations {
		if err := invoke(); err != nil {
			return cost{}, err
		}
	}
	spent := processorTime() - began
	runtime.ReadMemStats(&after)
	n := float64(invocations * events)
	return cost{float64(spent.Nanoseconds()) / 1e3 / n, float64(after.Mallocs-before.Mallocs) / n}, nil
}

// measureInvoke compares whole invocations, from the event's bytes to the answer's, without a network. Measurements
// alternate, so that a busy moment of the machine falls on both.
func measureInvoke(ctx context.Context, o Options) ([]figure, error) {
	var figures []figure
	for _, w := range []struct{ name, rules string }{{"1 key", oneKey}, {"3 keys", threeKeys}} {
		const records = 1000
		event := kinesisEvent(views(records, "i"))
		store := newMemory()
		handler, err := handlerOn(store, nil, w.rules)
		if err != nil {
			return nil, err
		}
		var micros, allocs [2][]float64
		for range 5 * o.Rounds {
			for i, invoke := range []func() error{
				func() error {
					_, err := naiveInvoke(event, w.rules, map[string]int64{})
					return err
				},
				func() error {
					store.forget() // each invocation counts new events
					_, err := handler.Invoke(ctx, event)
					return err
				},
			} {
				c, err := costOf(records, invoke)
				if err != nil {
					return nil, err
				}
				micros[i], allocs[i] = append(micros[i], c.micros), append(allocs[i], c.allocs)
			}
		}
		for i := range micros {
			slices.Sort(micros[i])
			slices.Sort(allocs[i])
		}
		middle := len(micros[0]) / 2
		ratio := micros[0][middle] / micros[1][middle]
		figures = append(figures, figure{
			name:      "whole invocation without a network, 1,000 records, " + w.name + ", us of processor an event",
			reference: format(micros[0][middle]), ours: fmt.Sprintf("%s (%s times)", format(micros[1][middle]), format(ratio)),
			target: "at least 4 times", met: judge(ratio >= 4),
		}, figure{
			name: "allocations an event, " + w.name, reference: format(allocs[0][middle]), ours: format(allocs[1][middle]),
			target: "at most 4", met: judge(allocs[1][middle] <= 4),
		})
	}
	return figures, nil
}
