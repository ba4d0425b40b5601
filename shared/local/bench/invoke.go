package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
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

// measureInvoke compares whole invocations, from the event's bytes to the answer's, without a network.
func measureInvoke(ctx context.Context, o Options) ([]figure, error) {
	var figures []figure
	for _, w := range []struct {
		name  string
		rules string
	}{{"1 key", oneKey}, {"3 keys", threeKeys}} {
		const records = 1000
		event := kinesisEvent(views(records, "i"))
		byLibrary := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := naiveInvoke(event, w.rules, map[string]int64{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		var failure error
		byUs := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				handler, err := handlerOn(newMemory(), w.rules) // each invocation counts new events
				b.StartTimer()
				if err == nil {
					_, err = handler.Invoke(ctx, event)
				}
				if err != nil {
					failure = err
					b.Fatal(err)
				}
			}
		})
		if failure != nil {
			return nil, failure
		}
		ratio := float64(byLibrary.NsPerOp()) / float64(byUs.NsPerOp())
		allocs := float64(byUs.AllocsPerOp()) / records
		figures = append(figures, figure{
			name:      "whole invocation without a network, 1,000 records, " + w.name + ", us an event",
			reference: format(float64(byLibrary.NsPerOp()) / 1e3 / records),
			ours:      fmt.Sprintf("%s (%s times)", format(float64(byUs.NsPerOp())/1e3/records), format(ratio)),
			target:    "at least 4 times", met: judge(ratio >= 4),
		}, figure{
			name:      "allocations an event, " + w.name,
			reference: format(float64(byLibrary.AllocsPerOp()) / records), ours: format(allocs),
			target: "at most 4", met: judge(allocs <= 4),
		})
	}
	return figures, nil
}
