package merge_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// The model: a few processes merge overlapping batches of the same events through the real MergeMany. Every call on
// the store waits for a seeded scheduler, which picks the next one and its fate: healthy, refused, throttled, met by
// another transaction, applied with its reply lost, landing later, timed out, or the process stops dead. Clocks
// disagree. The source delivers each event again until it is done. Afterwards each must have been counted exactly once,
// and at no time may any have been counted twice or be called done without having been counted.

// verdict is how a schedule ended.
type verdict string

const (
	exact verdict = "exact"
	lost  verdict = "lost"  // called done, not counted
	over  verdict = "over"  // counted more than once
	stuck verdict = "stuck" // never done, though the faults have ended
)

// schedules returns how many to run, and the first seed: ABACUS_SCHEDULES and ABACUS_SEED override them.
func schedules(t *testing.T, n int) (seed uint64, count int) {
	t.Helper()
	seed, count = rand.Uint64()>>16, n
	if text := os.Getenv("ABACUS_SCHEDULES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("ABACUS_SCHEDULES: %v", err)
		}
	}
	if text := os.Getenv("ABACUS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("ABACUS_SEED: %v", err)
		}
		if os.Getenv("ABACUS_SCHEDULES") == "" {
			count = 1
		}
	}
	t.Logf("%d schedules from seed %d; ABACUS_SEED=<seed> repeats one", count, seed)
	return seed, count
}

func TestModel_NoScheduleLosesOrDoublesAnEvent(t *testing.T) {
	seed, count := schedules(t, 2500)
	seen := coverage{}
	for i := range count {
		v, detail := runSchedule(t, t, seed+uint64(i), func(p *process) merge.Store { return watched{p, seen} })
		if v != exact || t.Failed() {
			t.Fatalf("seed %d: %s %s", seed+uint64(i), v, detail)
		}
	}
	t.Logf("%v", seen)
	for _, path := range []string{
		"duplicate", "excepted event taken over", "aborted event taken over", "another attempt aborted",
		"another attempt found committed by its abort", "own attempt found committed by its abort",
		"own attempt found aborted by its commit", "refused event left out", "claim given back after a commit",
	} {
		if count >= 2500 && seen[path] == 0 {
			t.Errorf("no schedule reached: %s", path)
		}
	}
}

// TestModel_SeedRepeatsItsSchedule makes a failing seed worth printing.
func TestModel_SeedRepeatsItsSchedule(t *testing.T) {
	seed, _ := schedules(t, 0)
	for i := range uint64(30) {
		var traces [2][]string
		for run := range traces {
			synctest.Test(t, func(t *testing.T) {
				s := newSchedule(t, seed+i, nil)
				s.run(t)
				s.drain()
				traces[run] = s.trace
			})
		}
		if !slices.Equal(traces[0], traces[1]) {
			t.Fatalf("seed %d: %d steps, then %d others", seed+i, len(traces[0]), len(traces[1]))
		}
	}
}

// schedule is one run of the model.
type schedule struct {
	rng    *rand.Rand
	store  *mergetest.Store
	mutant mutant
	events []tally.Event
	done   map[string]bool

	mu     sync.Mutex
	parked []*parked
	ended  []*process
	under  int // merges under way

	trace          []string // calls in the order in which they went on
	live           []*process
	started        int
	faults, crash  float64
	faultsUntil    int
	serial, chunks int
}

// parked is a call that waits for the scheduler.
type parked struct {
	call   mergetest.Call
	resume chan mergetest.Fault
}

// process is one invocation of one process: a merge.Store whose claims travel one by one.
type process struct {
	*mergetest.Worker
	schedule *schedule
	name     string
	batch    []tally.Event
	outcomes []merge.Outcome
}

func (p *process) owns(token merge.Token) bool { return strings.HasPrefix(string(token), p.name+"/") }

func (p *process) PutClaims(ctx context.Context, claims []merge.Claim) []merge.ClaimReply {
	replies := make([]merge.ClaimReply, len(claims))
	var all sync.WaitGroup
	for i := range claims {
		all.Go(func() { replies[i] = p.Worker.PutClaims(ctx, claims[i:i+1])[0] })
	}
	all.Wait()
	return replies
}

func runSchedule(t *testing.T, misuse mergetest.TB, seed uint64, m mutant) (v verdict, detail string) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(misuse, seed, m)
		v, detail = s.run(t)
		s.drain()
		if v == exact && misuse != (silentTB{}) {
			mergetest.Audit(t, s.store.Snapshot(), s.events)
		}
	})
	return v, detail
}

func newSchedule(misuse mergetest.TB, seed uint64, m mutant) *schedule {
	rng := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	s := &schedule{
		rng: rng, store: mergetest.New(misuse), mutant: m, done: map[string]bool{},
		faults: pick(0, .05, .2, .4), crash: pick(0, .02, .1), faultsUntil: 5 + rng.IntN(116),
		serial: rng.IntN(3), chunks: 1 + rng.IntN(4),
	}
	s.store.DoneContexts = true
	s.store.Fault = s.park
	total := tally.Cell{Counter: "c", Key: "total", Window: "all"}
	for i := range 1 + rng.IntN(4) {
		event := tally.Event{ID: fmt.Sprintf("e%d", i), Adds: []tally.Add{
			{Cell: tally.Cell{Counter: "c", Key: fmt.Sprintf("k%d", i), Window: "all"}, Delta: 1},
			{Cell: total, Delta: int64(rng.IntN(5) - 2)},
		}}
		if s.serial == 1 {
			event.Serial = "shard"
		}
		s.events = append(s.events, event)
	}
	return s
}

// park is the store's Fault: it holds a call until the scheduler has decided its fate.
func (s *schedule) park(call mergetest.Call) mergetest.Fault {
	p := &parked{call: call, resume: make(chan mergetest.Fault)}
	s.mu.Lock()
	s.parked = append(s.parked, p)
	s.mu.Unlock()
	return <-p.resume
}

func (s *schedule) run(t *testing.T) (verdict, string) {
	const steps = 4000
	for step := range steps {
		synctest.Wait()
		if v, detail := s.check(); v != exact {
			return v, detail
		}
		pending := s.pending()
		if len(pending) == 0 && len(s.live) == 0 {
			return exact, ""
		}
		calm := step > s.faultsUntil
		pace, most := .3, 3
		if calm {
			pace = .03 // calls are answered in good time
		}
		if s.rng.Float64() < pace {
			time.Sleep(time.Duration(s.rng.IntN(4)) * time.Second)
			continue
		}
		if calm && s.serial == 1 { // deliveries of one shard that overlap without end would abort each other without end
			most = 1
		}
		if len(pending) > 0 && (len(s.live) == 0 || len(s.live) < most && s.rng.Float64() < .3) {
			s.start(t)
			continue
		}
		s.step(calm)
	}
	return stuck, fmt.Sprint(s.pending())
}

// check hears what ended merges answered, and compares it with what the store holds.
func (s *schedule) check() (verdict, string) {
	s.mu.Lock()
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	totals := s.store.Snapshot().Totals()
	for _, event := range s.events {
		if n, _ := totals[event.Adds[0].Cell].Int64(); n > 1 {
			return over, event.ID
		}
	}
	for _, p := range ended {
		s.live = slices.DeleteFunc(s.live, func(other *process) bool { return other == p })
		if p.Stopped() {
			continue // nobody hears a dead process
		}
		for i, outcome := range p.outcomes {
			if !outcome.Done() {
				continue
			}
			s.done[p.batch[i].ID] = true
			if totals[p.batch[i].Adds[0].Cell].IsZero() {
				return lost, p.batch[i].ID
			}
		}
	}
	return exact, ""
}

func (s *schedule) pending() []tally.Event {
	return slices.DeleteFunc(slices.Clone(s.events), func(e tally.Event) bool { return s.done[e.ID] })
}

// callTimeout is no whole number of seconds, for the same reason as a delivery's deadline.
const callTimeout = 3*time.Second + time.Millisecond

// start delivers a random part of the events, those done included, to a new process.
func (s *schedule) start(t *testing.T) {
	s.started++
	p := &process{schedule: s, name: fmt.Sprintf("p%d", s.started)}
	p.Worker = s.store.NewWorker(p.name)
	for _, i := range s.rng.Perm(len(s.events))[:1+s.rng.IntN(len(s.events))] {
		p.batch = append(p.batch, s.events[i])
	}
	s.live = append(s.live, p)
	var store merge.Store = p
	if s.mutant != nil {
		store = s.mutant(p)
	}
	attempts := 0
	skew := time.Duration(s.rng.IntN(21)-10) * time.Second
	if s.rng.IntN(10) == 0 {
		skew *= 1000 // a clock that jumped
	}
	merger, err := merge.New(merge.Config{
		Store: store, Rand: rand.NewPCG(s.rng.Uint64(), 0), Workers: 1, ChunkEvents: s.chunks, CallTimeout: callTimeout,
		Now:   func() time.Time { return s.store.Now().Add(skew) },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		NewToken: func() merge.Token {
			attempts++
			return merge.Token(fmt.Sprintf("%s/%d", p.name, attempts))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.under++
	s.mu.Unlock()
	// Deadlines fall between the whole seconds at which the scheduler wakes: timers of one instant fire in any order.
	timeout := time.Duration(2+s.rng.IntN(20))*time.Second + time.Duration(s.started)*37*time.Microsecond
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		p.outcomes = merger.MergeMany(ctx, p.batch)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.under--
		s.ended = append(s.ended, p)
	}()
}

// step lets one parked call go on.
func (s *schedule) step(calm bool) {
	s.mu.Lock()
	slices.SortStableFunc(s.parked, func(a, b *parked) int {
		return cmp.Or(
			cmp.Compare(a.call.Worker, b.call.Worker), cmp.Compare(a.call.Method, b.call.Method),
			cmp.Compare(a.call.Token, b.call.Token), slices.Compare(a.call.Events, b.call.Events),
		)
	})
	if len(s.parked) == 0 {
		s.mu.Unlock()
		time.Sleep(time.Second)
		return
	}
	i := s.rng.IntN(len(s.parked))
	p := s.parked[i]
	s.parked = slices.Delete(s.parked, i, i+1)
	s.mu.Unlock()
	s.trace = append(s.trace, fmt.Sprint(p.call.Worker, p.call.Method, p.call.Token, p.call.Events))
	if calm {
		p.resume <- mergetest.Fault{}
		return
	}
	if s.rng.Float64() < s.crash {
		for _, w := range s.live {
			if w.name == p.call.Worker {
				w.StopAfter(0, s.rng.IntN(2)*(1+s.rng.IntN(20)))
			}
		}
	}
	p.resume <- s.fate(p.call)
}

// fate draws how a call goes wrong, if it does.
func (s *schedule) fate(call mergetest.Call) mergetest.Fault {
	if s.rng.Float64() >= s.faults {
		return mergetest.Fault{}
	}
	write := call.Method != mergetest.FindRecord
	switch kind := s.rng.IntN(8); {
	case kind < 2 && write:
		return mergetest.Fault{Err: mergetest.ErrInjected, Applied: true}
	case kind < 4 && write:
		return mergetest.Fault{Err: mergetest.ErrInjected, Late: 1 + s.rng.IntN(30)}
	case kind == 4:
		return mergetest.Fault{Err: mergetest.ErrThrottle}
	case kind == 5 && call.Method == mergetest.Commit:
		return mergetest.Fault{Err: &merge.ConflictError{Record: true, Adds: []int{0}}}
	case kind == 6 && call.Method == mergetest.Commit: // a counter's row is broken for now
		key := fmt.Sprintf("k%d", s.rng.IntN(len(s.events)))
		if f := mergetest.RefuseOn(call, func(add merge.SlottedAdd) bool { return add.Cell.Key == key }); f.Err != nil {
			return f
		}
		return mergetest.Fault{Err: mergetest.ErrInjected}
	default:
		return mergetest.Fault{Err: mergetest.ErrInjected}
	}
}

// drain ends what is still under way, so that every goroutine returns.
func (s *schedule) drain() {
	for {
		synctest.Wait()
		s.mu.Lock()
		waiting, under := s.parked, s.under
		s.parked = nil
		s.mu.Unlock()
		if len(waiting) == 0 && under == 0 {
			break
		}
		for _, p := range waiting {
			p.resume <- mergetest.Fault{}
		}
		if len(waiting) == 0 {
			time.Sleep(time.Second)
		}
	}
	s.store.Land()
}
