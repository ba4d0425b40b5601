package merge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
)

// memory is the least that a store can be, so that the benchmark measures the core: it takes all claims and keeps none.
type memory struct {
	mu    sync.Mutex
	calls int
}

func (s *memory) PutClaims(_ context.Context, claims []merge.Claim) []merge.ClaimReply {
	replies := make([]merge.ClaimReply, len(claims))
	for i, claim := range claims {
		replies[i].Standing = claim
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls += (len(claims) + 24) / 25
	return replies
}

func (s *memory) Commit(context.Context, merge.Attempt) (merge.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return merge.Record{State: merge.Committed}, nil
}

func (s *memory) TakeClaim(context.Context, merge.Claim, merge.Token) (merge.Claim, error) {
	panic("not benchmarked")
}

func (s *memory) FindRecord(context.Context, merge.Token) (merge.Record, error) {
	panic("not benchmarked")
}

func (s *memory) Abort(context.Context, merge.Token, time.Time) (merge.Record, error) {
	panic("not benchmarked")
}

func (s *memory) Release(context.Context, string, merge.Token) error { panic("not benchmarked") }

func BenchmarkMergeMany(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10000} {
		for _, threeKeys := range []bool{false, true} {
			events := zipfEvents(n, threeKeys)
			b.Run(fmt.Sprintf("events=%d/keys=%d", n, len(events[0].Adds)), func(b *testing.B) {
				s := &memory{}
				m := newMerger(b, s)
				b.ReportAllocs()
				for b.Loop() {
					for _, o := range m.MergeMany(b.Context(), events) {
						if o.Status != merge.Counted {
							b.Fatal(o)
						}
					}
				}
				perEvent := float64(b.N * n)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/perEvent, "ns/event")
				b.ReportMetric(float64(s.calls)/perEvent, "requests/event")
			})
		}
	}
}

// BenchmarkDistinct packs events that share nothing, or one counter only.
func BenchmarkDistinct(b *testing.B) {
	for _, keys := range [][]string{nil, {"all"}} {
		events := numbered(10000, keys...)
		b.Run(fmt.Sprintf("shared=%d", len(keys)), func(b *testing.B) {
			m := newMerger(b, &memory{})
			b.ReportAllocs()
			for b.Loop() {
				m.MergeMany(b.Context(), events)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
		})
	}
}

func TestAllocations_OfTheCoreStayFarBelowOneAnEvent(t *testing.T) {
	for _, threeKeys := range []bool{false, true} {
		events := zipfEvents(1000, threeKeys)
		m := newMerger(t, &memory{})
		perEvent := testing.AllocsPerRun(5, func() { m.MergeMany(context.Background(), events) }) / float64(len(events))
		t.Logf("%.3f allocations an event, three keys %t", perEvent, threeKeys)
		if perEvent > .9 {
			t.Errorf("%.3f allocations an event", perEvent)
		}
	}
}

// BenchmarkHot is one counter moved by 16 sandboxes at once, against the number of slots: 5 ms a commit.
func BenchmarkHot(b *testing.B) {
	for _, slots := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			s := newTable(mergetest.New(b), 5*time.Millisecond)
			commits := 0
			for b.Loop() {
				var all sync.WaitGroup
				for range 16 {
					m := newMerger(b, s, realSleep, func(c *merge.Config) { c.Slots, c.Contended = slots, 100 })
					round := commits
					commits += 10
					all.Go(func() {
						for i := range 10 {
							if o := m.MergeOne(b.Context(), event(fmt.Sprint("e", round+i), "hot")); !o.Done() {
								b.Error(o)
							}
						}
					})
				}
				all.Wait()
			}
			b.ReportMetric(float64(commits)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(s.conflicts)/float64(commits), "conflicts/commit")
			b.ReportMetric(0, "ns/op")
		})
	}
}
