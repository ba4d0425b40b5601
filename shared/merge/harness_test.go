package merge_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// newMerger returns a Merger on store that does not wait between tries.
func newMerger(t mergetest.TB, store merge.Store, change ...func(*merge.Config)) *merge.Merger {
	t.Helper()
	cfg := merge.Config{Store: store, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	if s, ok := store.(interface{ Now() time.Time }); ok {
		cfg.Now = s.Now
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := merge.New(cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// heard is a Recorder that remembers.
type heard struct {
	mu     sync.Mutex
	counts map[string]int
	causes map[string]error
	timed  map[string]int
}

func (h *heard) Count(name string, n int, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts, h.causes = map[string]int{}, map[string]error{}
	}
	h.counts[name] += n
	if cause != nil {
		h.causes[name] = cause
	}
}

func (h *heard) Observe(name string, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timed == nil {
		h.timed = map[string]int{}
	}
	h.timed[name]++
}

func (h *heard) want(t *testing.T, counts map[string]int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !maps.Equal(h.counts, counts) {
		t.Errorf("recorded %v, want %v", h.counts, counts)
	}
}

func recordTo(h *heard) func(*merge.Config) { return func(c *merge.Config) { c.Recorder = h } }

// script is a Fault that breaks the calls of each method in turn; calls beyond its end are healthy.
func script(of map[mergetest.Method][]mergetest.Fault) func(mergetest.Call) mergetest.Fault {
	var mu sync.Mutex
	return func(call mergetest.Call) mergetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		faults := of[call.Method]
		if len(faults) == 0 {
			return mergetest.Fault{}
		}
		of[call.Method] = faults[1:]
		return faults[0]
	}
}

// always is a Fault that breaks every call of one method.
func always(method mergetest.Method, f mergetest.Fault) func(mergetest.Call) mergetest.Fault {
	return func(call mergetest.Call) mergetest.Fault {
		if call.Method == method {
			return f
		}
		return mergetest.Fault{}
	}
}

func times(n int, f mergetest.Fault) []mergetest.Fault {
	faults := make([]mergetest.Fault, n)
	for i := range faults {
		faults[i] = f
	}
	return faults
}

var (
	before = mergetest.Fault{Err: mergetest.ErrInjected}                // not applied, and the caller cannot know
	after  = mergetest.Fault{Err: mergetest.ErrInjected, Applied: true} // a lost reply
	late   = mergetest.Fault{Err: mergetest.ErrInjected, Late: 1 << 20} // lands when all is over
)

func statuses(outcomes []merge.Outcome) []merge.Status {
	all := make([]merge.Status, len(outcomes))
	for i, o := range outcomes {
		all[i] = o.Status
	}
	return all
}

// wantAll checks that every outcome has one status, and a reason where one is due.
func wantAll(t *testing.T, outcomes []merge.Outcome, want merge.Status) {
	t.Helper()
	for i, o := range outcomes {
		if o.Status != want {
			t.Fatalf("outcome %d is %v, want status %d", i, o, want)
		}
		wantReason(t, o)
	}
}

func wantReason(t *testing.T, o merge.Outcome) {
	t.Helper()
	if o.Done() != (o.Err == nil) {
		t.Fatalf("status %d with error %v", o.Status, o.Err)
	}
}

func wantIs(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v; want one that is %v", err, target)
	}
}

// numbered returns n events, each with a counter of its own and those named.
func numbered(n int, keys ...string) []tally.Event {
	events := make([]tally.Event, n)
	for i := range events {
		events[i] = event(fmt.Sprint("e", i), append([]string{fmt.Sprint("own", i)}, keys...)...)
	}
	return events
}

func total(s *mergetest.Store, key string) int64 {
	n, _ := s.Total(cell(key)).Int64()
	return n
}
