package merge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// marks is a strict merge.MarkStore in memory whose calls a test breaks.
type marks struct {
	mu     sync.Mutex
	rows   map[tally.Cell]markRow
	calls  int
	fault  func() markFault // nil: healthy
	late   []func()         // calls that land when the test lets them
	mutate func(m *merge.Move)
}

type markRow struct {
	n    tally.Sum
	mark string
}

type markFault int

const (
	markHealthy markFault = iota
	markRefused           // not applied
	markLost              // applied, reply lost
	markLate              // applied later
)

var errLost = errors.New("no answer")

func (s *marks) Advance(_ context.Context, m merge.Move) (string, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if m.At == "" && m.Below == "" || m.Last < m.Below || m.At != "" && m.Last <= m.At {
		return "", false, errors.New("misuse")
	}
	if s.mutate != nil {
		s.mutate(&m)
	}
	f := markHealthy
	if s.fault != nil {
		f = s.fault()
	}
	switch f {
	case markRefused:
		return "", false, errLost
	case markLost:
		s.apply(m)
		return "", false, errLost
	case markLate:
		s.late = append(s.late, func() { s.apply(m) })
		return "", false, errLost
	}
	mark, moved := s.apply(m)
	return mark, moved, nil
}

func (s *marks) apply(m merge.Move) (string, bool) {
	row, there := s.rows[m.Cell]
	allowed := !there || row.mark < m.Below
	if m.At != "" {
		allowed = there && row.mark == m.At
	}
	if allowed {
		s.rows[m.Cell] = markRow{row.n.Plus(m.Delta), m.Last}
	}
	return s.rows[m.Cell].mark, allowed
}

func positional(t *testing.T, s merge.MarkStore, seed uint64) *merge.Positional {
	t.Helper()
	m, err := merge.New(merge.Config{
		Store: mergetest.New(t), Workers: 1, Rand: rand.NewPCG(seed, 1),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m.ByPosition(s)
}

func position(n int) string {
	digits := strconv.Itoa(n)
	return fmt.Sprintf("%03d%s", len(digits), digits)
}

// laneOf is one shard's events, in order.
func laneOf(keys []int) []tally.Event {
	events := make([]tally.Event, len(keys))
	for i, k := range keys {
		events[i] = tally.Event{
			ID: fmt.Sprint(i), Serial: "shard", Position: position(i + 1),
			Adds: []tally.Add{
				{Cell: tally.Cell{Counter: "c", Key: fmt.Sprint(k), Window: "all"}, Delta: int64(1 + i%3)},
				{Cell: tally.Cell{Counter: "c", Key: "all", Window: "all"}, Delta: 1 - 2*int64(i%2)},
			},
		}
	}
	return events
}

// deliverLane delivers a shard by Lambda's rules under faults until it is drained, and says what went wrong.
func deliverLane(t *testing.T, seed uint64, mutate func(*merge.Move)) error {
	rng := rand.New(rand.NewPCG(seed, 2))
	keys := make([]int, 1+rng.IntN(14))
	for i := range keys {
		keys[i] = rng.IntN(3)
	}
	events := laneOf(keys)
	most := map[tally.Cell]tally.Sum{}
	for _, e := range events {
		for _, add := range e.Adds {
			most[add.Cell] = most[add.Cell].Plus(tally.SumOf(add.Delta))
		}
	}
	s := &marks{rows: map[tally.Cell]markRow{}, mutate: mutate}
	share, calm := []float64{0, 0.1, 0.3}[rng.IntN(3)], 3+rng.IntN(60)
	dead := false
	s.fault = func() markFault {
		x := rng.Float64()
		switch {
		case dead:
			return markRefused
		case calm <= 0 || x >= share:
			return markHealthy
		case x < share/4:
			return markRefused
		case x < share/2:
			return markLost
		case x < share*3/4:
			return markLate
		}
		dead = true
		return markLost
	}
	p := positional(t, s, seed)
	for at, rounds := 0, 0; at < len(events); rounds++ {
		if rounds > 3000 {
			return errors.New("stuck")
		}
		calm--
		for len(s.late) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(s.late))
			land := s.late[i]
			s.late = append(s.late[:i], s.late[i+1:]...)
			land()
		}
		batch := events[at : at+1+rng.IntN(len(events)-at)]
		if len(batch) > 1 && rng.IntN(3) == 0 {
			batch = batch[:len(batch)/2]
		}
		dead = false
		outcomes := p.MergeMany(t.Context(), batch)
		if dead { // nobody heard the answer
			continue
		}
		done := 0
		for done < len(batch) && outcomes[done].Done() {
			done++
		}
		at += done
	}
	for _, land := range s.late {
		land()
	}
	for cell, want := range most {
		if got := s.rows[cell].n; got != want {
			return fmt.Errorf("%s is %s, want %s", cell.Key, got, want)
		}
	}
	return nil
}

func positionSeeds(t *testing.T, n uint64) (from, to uint64) {
	if text := os.Getenv("ABACUS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return seed, seed + 1
	}
	from = rand.Uint64N(1 << 40)
	return from, from + n
}

func TestPositionGuard_EachEventCountsOnceUnderEverySchedule(t *testing.T) {
	from, to := positionSeeds(t, 3_000)
	for seed := from; seed < to; seed++ {
		if err := deliverLane(t, seed, nil); err != nil {
			t.Fatalf("seed %d (ABACUS_SEED takes one): %v", seed, err)
		}
	}
}

func TestPositionGuard_EachRuleIsNeeded(t *testing.T) {
	for name, mutate := range map[string]func(*merge.Move){
		"first may be at the mark": func(m *merge.Move) {
			if m.At == "" {
				m.Below += "~" // <= for <
			}
		},
		"no condition on what is recomputed": func(m *merge.Move) {
			if m.At != "" {
				m.At, m.Below = "", "~"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5_000) {
				if deliverLane(t, seed, mutate) != nil {
					return
				}
			}
			t.Error("no schedule tells it from the rule")
		})
	}
}

func TestPositionGuard_OverlapIsResolvedFromTheRowsMark(t *testing.T) {
	s := &marks{rows: map[tally.Cell]markRow{}}
	p := positional(t, s, 1)
	events := laneOf([]int{0, 0, 0, 0})
	for _, o := range p.MergeMany(t.Context(), events[:3]) {
		if o.Status != merge.Counted {
			t.Fatalf("first delivery: %+v", o)
		}
	}
	if s.calls != 2 {
		t.Fatalf("%d writes for 2 cells", s.calls)
	}
	s.calls = 0
	for i, o := range p.MergeMany(t.Context(), events[1:]) {
		want := merge.Duplicate
		if i == 2 {
			want = merge.Counted
		}
		if o.Status != want {
			t.Fatalf("event %d of the overlap: %+v, want %v", i, o, want)
		}
	}
	if s.calls != 4 {
		t.Fatalf("%d calls to resolve the overlap of 2 cells", s.calls)
	}
	if got := s.rows[events[0].Adds[0].Cell].n.String(); got != "7" {
		t.Fatalf("count %s, want 7", got)
	}
}

func TestPositionGuard_EventWithoutPositionIsRefused(t *testing.T) {
	s := &marks{rows: map[tally.Cell]markRow{}}
	event := laneOf([]int{0})[0]
	event.Position = ""
	o := positional(t, s, 1).MergeMany(t.Context(), []tally.Event{event})[0]
	if o.Status != merge.Refused || !errors.Is(o.Err, merge.ErrNoPosition) {
		t.Fatalf("outcome %+v", o)
	}
	if s.calls != 0 {
		t.Fatal("the store was called")
	}
}

func TestPositionGuard_SumsBeyondInt64AreExact(t *testing.T) {
	s := &marks{rows: map[tally.Cell]markRow{}}
	events := laneOf([]int{0, 0})
	for i := range events {
		events[i].Adds = events[i].Adds[:1]
		events[i].Adds[0].Delta = 1<<63 - 1
	}
	positional(t, s, 1).MergeMany(t.Context(), events)
	if got := s.rows[events[0].Adds[0].Cell].n.String(); got != "18446744073709551614" {
		t.Fatalf("count %s", got)
	}
}

func TestPositionGuard_MarkThatIsNoPositionFailsAndLosesNothing(t *testing.T) {
	for _, mark := range []string{"zzz", "49590338271490256608559692538361571095921575989136588898", "~"} {
		events := laneOf([]int{0, 0})
		cell := events[0].Adds[0].Cell
		s := &marks{rows: map[tally.Cell]markRow{cell: {mark: mark}}}
		for i, o := range positional(t, s, 1).MergeMany(t.Context(), events) {
			if o.Status != merge.Failed || o.Err == nil {
				t.Errorf("mark %q: event %d ends as %+v, want Failed", mark, i, o)
			}
		}
		if s.rows[cell].mark != mark {
			t.Errorf("mark %q was moved", mark)
		}
	}
}
