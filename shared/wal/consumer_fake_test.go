package wal_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

// source is a strict log in memory: it reports every use that its contract forbids, lends one buffer to all of a scan,
// and can fail or panic at each call.
type source struct {
	t  testing.TB
	on map[string]func() error // by call; returns the error that the call answers, or panics
	// unsupported is a durability that the log lacks, if it has a value.
	unsupported map[wal.Durability]bool

	mu      sync.Mutex
	records []wal.Record
	hidden  map[wal.Position]bool // damaged
	state   wal.State
	mark    wal.Position // of the last Flush
	held    bool
	calls   []string
}

func newSource(t testing.TB, data ...string) *source {
	s := &source{
		t: t, on: map[string]func() error{}, unsupported: map[wal.Durability]bool{}, hidden: map[wal.Position]bool{},
	}
	s.add(data...)
	return s
}

// add appends one record for each; the id of the record at position p is "id-p".
func (s *source) add(data ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range data {
		s.state.Written++
		s.records = append(s.records, wal.Record{
			Position: s.state.Written, ID: fmt.Sprintf("id-%d", s.state.Written), Data: []byte(d),
		})
	}
}

// damage loses the record at p.
func (s *source) damage(p wal.Position) {
	s.hidden[p] = true
	s.state.Lost++
}

func (s *source) enter(call, detail string) error {
	s.mu.Lock()
	s.calls = append(s.calls, call+detail)
	if !s.held && call != "consume" && call != "supports" {
		s.t.Errorf("%s%s without having the log", call, detail)
	}
	f := s.on[call]
	s.mu.Unlock()
	if f != nil {
		return f()
	}
	return nil
}

func (s *source) Supports(d wal.Durability) bool {
	return s.enter("supports", "") == nil && !s.unsupported[d]
}

func (s *source) Flush(ctx context.Context, d wal.Durability) (wal.Position, error) {
	if ctx.Err() != nil {
		s.t.Error("flush under a context that has ended")
	}
	s.mu.Lock()
	mark := s.state.Written
	s.mu.Unlock()
	if err := s.enter("flush", fmt.Sprintf(" %d", d)); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = mark
	return mark, nil
}

func (s *source) State() wal.State {
	_ = s.enter("state", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *source) Scan(from, through wal.Position) iter.Seq2[wal.Record, error] {
	failure := s.enter("scan", fmt.Sprintf(" %d-%d", from, through))
	if through > s.mark || from > through {
		s.t.Errorf("scan %d-%d where %d is flushed", from, through, s.mark)
	}
	s.mu.Lock()
	first := max(from, s.state.Truncated+1)
	records := slices.Clone(s.records[min(first-1, s.state.Written):min(through, s.state.Written)])
	s.mu.Unlock()
	return func(yield func(wal.Record, error) bool) {
		if failure != nil {
			yield(wal.Record{}, failure)
			return
		}
		var lent []byte
		defer func() { scribble(lent) }()
		for _, r := range records {
			if s.hidden[r.Position] {
				continue
			}
			scribble(lent)
			lent = append(append(lent[:0], r.Data...), "the neighbour's"...)
			r.Data = lent[:len(r.Data)]
			if !yield(r, nil) {
				return
			}
		}
	}
}

func scribble(lent []byte) {
	for i := range lent {
		lent[i] = '#'
	}
}

func (s *source) Truncate(ctx context.Context, through wal.Position, d wal.Durability) error {
	if ctx.Err() != nil {
		s.t.Error("truncate under a context that has ended")
	}
	if err := s.enter("truncate", fmt.Sprintf(" %d %d", through, d)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if through > s.state.Written || through <= s.state.Truncated {
		s.t.Errorf("truncate through %d: %+v", through, s.state)
	}
	s.state.Truncated = max(s.state.Truncated, through)
	return nil
}

func (s *source) Consume() (func(), bool) {
	_ = s.enter("consume", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		return nil, false
	}
	s.held = true
	return func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.held = false
		}()
		_ = s.enter("release", "")
	}, true
}

// free reports whether nobody has the log.
func (s *source) free() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.held
}

// did returns the calls since the last did.
func (s *source) did() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// downstream is a Sender that notes what it is offered. It gives one answer after the other, then takes everything.
type downstream struct {
	answers []wal.SenderFunc
	offered []string // each batch as "1=a 2=b"
}

func (d *downstream) Send(ctx context.Context, records []wal.Record) (wal.Result, error) {
	text := ""
	for _, r := range records {
		text += fmt.Sprintf(" %d=%s", r.Position, r.Data)
		if r.ID == "" {
			panic("a record without an id")
		}
	}
	d.offered = append(d.offered, text[1:])
	if len(d.answers) == 0 {
		return wal.Result{Through: records[len(records)-1].Position}, nil
	}
	answer := d.answers[0]
	d.answers = d.answers[1:]
	return answer(ctx, records)
}

// through accepts the prefix up to p.
func through(p wal.Position) wal.SenderFunc {
	return func(context.Context, []wal.Record) (wal.Result, error) { return wal.Result{Through: p}, nil }
}

// refusing accepts the prefix up to p and rejects the record at q.
func refusing(p, q wal.Position) wal.SenderFunc {
	return func(context.Context, []wal.Record) (wal.Result, error) {
		return wal.Result{Through: p, Rejected: &wal.Rejection{Position: q, Reason: errReason}}, nil
	}
}

func failingWith(err error) wal.SenderFunc {
	return func(context.Context, []wal.Record) (wal.Result, error) { return wal.Result{}, err }
}

var (
	errReason = errors.New("the reason, with a secret")
	errBroken = errors.New("broken, with a secret")
)

// rig is a consumer, its log and its downstream.
type rig struct {
	*wal.Consumer
	src   wal.Source
	add   func(data ...string)
	down  *downstream
	fake  *source // nil over a real log
	where func() wal.Position
}

// newRig makes a consumer of a strict source that holds data, with answers of the downstream.
func newRig(t *testing.T, data []string, cfg wal.ConsumerConfig, answers ...wal.SenderFunc) *rig {
	t.Helper()
	fake := newSource(t, data...)
	r := &rig{src: fake, fake: fake, add: fake.add}
	r.start(t, cfg, answers)
	return r
}

// newLogRig is newRig over a real log.
func newLogRig(t *testing.T, data []string, cfg wal.ConsumerConfig, answers ...wal.SenderFunc) *rig {
	t.Helper()
	l := mustOpen(t, small(waltest.New()))
	r := &rig{src: l, add: func(data ...string) {
		for _, d := range data {
			id := fmt.Sprintf("id-%d", l.State().Written+1)
			if _, err := l.Append(t.Context(), []wal.Entry{{ID: id, Data: []byte(d)}}, wal.Volatile); err != nil {
				t.Error(err)
			}
		}
	}}
	r.add(data...)
	r.start(t, cfg, answers)
	return r
}

func (r *rig) start(t *testing.T, cfg wal.ConsumerConfig, answers []wal.SenderFunc) {
	t.Helper()
	r.down = &downstream{answers: answers}
	if cfg.Source = r.src; cfg.Sender == nil {
		cfg.Sender = r.down
	}
	if cfg.Logf == nil {
		cfg.Logf = t.Logf
	}
	if cfg.Sleep == nil && cfg.IdleDelay == 0 {
		cfg.Sleep = sleepless
	}
	r.where = func() wal.Position {
		if r.fake != nil {
			r.fake.mu.Lock()
			defer r.fake.mu.Unlock()
			return r.fake.state.Truncated
		}
		return r.src.State().Truncated
	}
	r.Consumer = mustConsume(t, cfg)
}

// sleepless is the Sleep of a Run that should have ended.
func sleepless(context.Context, time.Duration) error { panic("nobody expects a sleep") }

func mustConsume(t testing.TB, cfg wal.ConsumerConfig) *wal.Consumer {
	t.Helper()
	c, err := wal.NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// onBoth runs a test over the strict source and over a real log on a disk in memory.
func onBoth(t *testing.T, test func(t *testing.T, rigged rigger)) {
	t.Run("source", func(t *testing.T) { test(t, newRig) })
	t.Run("log", func(t *testing.T) { test(t, newLogRig) })
}

type rigger func(*testing.T, []string, wal.ConsumerConfig, ...wal.SenderFunc) *rig

// wantNext calls Next and checks the count and the error.
func (r *rig) wantNext(t *testing.T, n int, want error) error {
	t.Helper()
	got, err := r.Next(t.Context())
	if got != n || !errors.Is(err, want) || (want == nil) != (err == nil) {
		t.Fatalf("next: %d, %v; want %d, %v", got, err, n, want)
	}
	return err
}

// wantOffered checks what the downstream was offered so far.
func (r *rig) wantOffered(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.down.offered, want) {
		t.Fatalf("offered %q, want %q", r.down.offered, want)
	}
}

// wantAt checks up to where the log is truncated.
func (r *rig) wantAt(t *testing.T, want wal.Position) {
	t.Helper()
	if got := r.where(); got != want {
		t.Fatalf("truncated through %d, want %d", got, want)
	}
}

func abc() []string { return []string{"a", "b", "c"} }
