package wal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"abacus/shared/wal"
)

// env is what surrounds a consumer during one operation. Two of one seed answer alike: the n-th call of a name has the
// same fate in both, so that the real consumer and its specification live in the same world.
type env struct {
	seed      uint64
	calls     map[string]int
	cancelled bool
	calm      bool // nothing fails
}

func newEnv(seed uint64) *env { return &env{seed: seed, calls: map[string]int{}, calm: seed%3 == 0} }

func (e *env) rng(name string) *rand.Rand {
	e.calls[name]++
	h := uint64(e.calls[name])
	for i := range len(name) {
		h = h*31 + uint64(name[i])
	}
	return rand.New(rand.NewPCG(e.seed, h))
}

// ending is how one call ends.
type ending struct{ fails, after, panics bool }

// draw decides how a call ends, and whether the caller gives up meanwhile.
func (e *env) draw(name string) ending {
	rng := e.rng(name)
	n, p := rng.IntN(100), rng.IntN(100)
	if name == "sleep" {
		e.cancelled = e.cancelled || n < 15
		return ending{}
	}
	if e.calm {
		return ending{}
	}
	e.cancelled = e.cancelled || n < 6
	switch {
	case p < 5:
		return ending{fails: true}
	case p < 8:
		return ending{fails: true, after: true}
	case p < 10:
		return ending{panics: true}
	}
	return ending{}
}

func (e *env) slowness(name string) time.Duration {
	return time.Duration(e.rng(name+" slowness").IntN(9)) * time.Second
}

// answer is the downstream's, and how long a prefix it accepts; below 0: the answer is malformed.
func (e *env) answer(batch []wal.Position) (r wal.Result, accepted int) {
	rng := e.rng("answer")
	n := len(batch)
	reject := func(p wal.Position) *wal.Rejection { return &wal.Rejection{Position: p, Reason: errReason} }
	accepted = rng.IntN(n + 1)
	if accepted > 0 {
		r.Through = batch[accepted-1]
	}
	kind := rng.IntN(12)
	switch {
	case accepted < n && (kind < 3 || accepted == 0 && kind < 11):
		r.Rejected = reject(batch[accepted])
	case kind < 10 && accepted > 0:
	case kind == 10: // a prefix that was not offered
		r.Through, accepted = batch[n-1]+1+wal.Position(rng.IntN(3)), -1
	case accepted == n: // a rejection behind the batch
		r.Rejected, accepted = reject(batch[n-1]+1), -1
	default: // a rejection inside of the prefix, or of 0, or no progress
		if accepted > 0 {
			r.Rejected = reject(batch[rng.IntN(accepted)])
		}
		accepted = -1
	}
	return r, accepted
}

// world is the real consumer's: a strict source, and callbacks that fare as env says and are noted.
type world struct {
	*source
	env    *env
	cancel context.CancelFunc
	now    time.Time
	did    []string
}

func (w *world) draw(name string) error {
	f := w.env.draw(name)
	if w.env.cancelled {
		w.cancel()
	}
	switch {
	case f.panics:
		panic("boom")
	case f.fails:
		return errBroken
	}
	return nil
}

func (w *world) Truncate(ctx context.Context, through wal.Position, d wal.Durability) error {
	w.did = append(w.did, fmt.Sprint("acknowledged ", through))
	f := w.env.draw("truncate")
	if w.env.cancelled {
		w.cancel()
	}
	switch {
	case f.panics:
		panic("boom")
	case f.after:
		return errors.Join(w.source.Truncate(ctx, through, d), errBroken)
	case f.fails:
		return errBroken
	}
	return w.source.Truncate(ctx, through, d)
}

func (w *world) Send(_ context.Context, records []wal.Record) (wal.Result, error) {
	var batch []wal.Position
	for _, r := range records {
		batch = append(batch, r.Position)
		if strings.Trim(string(r.Data), "x") != "" || r.ID != fmt.Sprint("id-", r.Position) {
			w.t.Errorf("offered %+v", r)
		}
	}
	w.did = append(w.did, fmt.Sprint("offered ", batch))
	w.now = w.now.Add(w.env.slowness("send"))
	if err := w.draw("send"); err != nil {
		return wal.Result{Through: batch[0]}, err
	}
	result, _ := w.env.answer(batch)
	return result, nil
}

func (w *world) handle(_ context.Context, r wal.Record, reason error) error {
	w.did = append(w.did, fmt.Sprint("handled ", r.Position, " ", reason))
	return w.draw("handler")
}

func (w *world) consumer(set settings) *wal.Consumer {
	cfg := wal.ConsumerConfig{
		Source: w, Sender: w, Policy: set.policy, MaxBatch: set.maxBatch, MaxBytes: int64(set.maxBytes),
		IdleDelay: idleDelay, RetryDelay: retryDelay, MaxRetryDelay: maxDelay,
		StallAfter: stallAfter, StallAttempts: stallAttempts,
		OnInternalError: func(err error) {
			w.did = append(w.did, "told "+strings.TrimPrefix(err.Error(), "consume: "))
		},
		Now: func() time.Time { return w.now },
		Sleep: func(_ context.Context, d time.Duration) error {
			w.did = append(w.did, "slept "+d.String())
			w.now = w.now.Add(d)
			return w.draw("sleep")
		},
		Rand: func(n int64) int64 { return n - 1 },
	}
	if set.policy == wal.DeadLetterRejected {
		cfg.DeadLetter = w.handle
	}
	return mustConsume(w.t, cfg)
}

// sentinels are all that an error may be.
var sentinels = []error{
	wal.ErrRunning, wal.ErrBatchTooLarge, wal.ErrInvalidSendResult, wal.ErrPermanentRejection, wal.ErrConsumerStalled,
	wal.ErrPanic, wal.ErrSend, wal.ErrDeadLetter, wal.ErrAcknowledge, wal.ErrDisposed, wal.ErrLog, errBroken, errReason,
	context.Canceled,
}

// number reads an environment variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestE4_ConsumerIsItsSpecification drives both side by side with random operations: appends, damage, restarts under
// other settings, and the three ways to deliver while every call may fail before or after its effect, panic, or see its
// caller give up. ABACUS_SEED repeats a run, ABACUS_OPS sets its length.
func TestE4_ConsumerIsItsSpecification(t *testing.T) {
	t.Parallel()
	seed, ops := number(t, "ABACUS_SEED", rand.Uint64()), number(t, "ABACUS_OPS", 50_000)
	t.Logf("ABACUS_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	for done := uint64(0); done < ops; {
		length := min(ops-done, 200)
		if !duel(t, rng, int(length)) {
			t.Fatalf("repeat it with ABACUS_SEED=%d", seed)
		}
		done += length
	}
}

// duel is one log's life.
func duel(t *testing.T, rng *rand.Rand, ops int) bool {
	w := &world{source: newSource(t), now: newClock().now}
	for _, call := range []string{"flush", "state", "scan"} {
		w.on[call] = func() error { return w.draw(call) }
	}
	s := &spec{now: w.now}
	var c *wal.Consumer
	restart := func() {
		s.settings = settings{wal.Policy(rng.IntN(3)), 1 + rng.IntN(6), 1 + rng.IntN(12)}
		s.stats, s.done, s.counted, s.excused = wal.Stats{}, 0, 0, 0
		c = w.consumer(s.settings)
	}
	restart()
	for range ops {
		switch op := rng.IntN(20); {
		case op < 7:
			for range 1 + rng.IntN(5) {
				size := rng.IntN(6) + rng.IntN(2)*rng.IntN(9)
				w.add(strings.Repeat("x", size))
				s.log = append(s.log, size)
			}
		case op == 7:
			if p := w.state.Truncated + 1 + wal.Position(rng.IntN(3)); p <= w.state.Written && !w.hidden[p] {
				w.damage(p)
				s.log[p-1] = -1
				s.lost++
			}
		case op == 8 && rng.IntN(3) == 0:
			restart()
		case op == 9:
			d := time.Duration(rng.IntN(40)) * time.Second
			w.now, s.now = w.now.Add(d), s.now.Add(d)
		default:
			if !w.compare(c, s, rng.Uint64(), op%3) {
				return false
			}
		}
	}
	return true
}

// compare lets both deliver in the same environment.
func (w *world) compare(c *wal.Consumer, s *spec, seed uint64, way int) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.env, w.cancel, w.did, w.calls = newEnv(seed), cancel, nil, nil
	s.env, s.did = newEnv(seed), nil
	var n, want int
	var err error
	var failure outcome
	switch way {
	case 0:
		n, err = c.Next(ctx)
		want, failure = s.next()
	case 1:
		n, err = c.Drain(ctx)
		want, failure = s.drain()
	case 2:
		err = c.Run(ctx)
		want, failure = s.run()
	}
	same := n == want && (err == nil) == (failure == nil)
	for _, sentinel := range sentinels {
		same = same && errors.Is(err, sentinel) == slices.Contains(failure, sentinel)
	}
	same = same && slices.Equal(w.did, s.did) && c.Stats() == s.stats && w.state.Truncated == s.truncated && w.free()
	if !same {
		w.t.Errorf("way %d: %d, %v; want %d, %q\ndid  %q\nwant %q\nstats %+v\nwant  %+v\ntruncated %d, want %d\ncalls %q",
			way, n, err, want, failure, w.did, s.did, c.Stats(), s.stats, w.state.Truncated, s.truncated, w.calls)
	}
	return same
}
