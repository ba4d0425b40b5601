package wal_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/wal"
)

// clock is a wall clock that only moves when somebody sleeps, and notes for how long.
type clock struct {
	now    time.Time
	slept  []time.Duration
	wakeUp func() // after each sleep
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)} }

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	if len(c.slept) > 1000 {
		panic("it does not end")
	}
	if c.wakeUp != nil {
		c.wakeUp()
	}
	return ctx.Err()
}

// on returns cfg with this clock, and without chance: each jittered delay is the whole.
func (c *clock) on(cfg wal.ConsumerConfig) wal.ConsumerConfig {
	cfg.Now, cfg.Sleep = func() time.Time { return c.now }, c.sleep
	if cfg.Rand == nil {
		cfg.Rand = func(n int64) int64 { return n - 1 }
	}
	return cfg
}

func TestW31_IdleRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	clock := newClock()
	r := newRig(t, nil, clock.on(wal.ConsumerConfig{}))
	clock.wakeUp = func() {
		switch len(clock.slept) {
		case 2:
			r.add("a", "b")
		case 4:
			cancel()
		}
	}
	if err := r.Run(ctx); err != context.Canceled {
		t.Fatal(err)
	}
	idle := 250 * time.Millisecond
	if !slices.Equal(clock.slept, []time.Duration{idle, idle, idle, idle}) {
		t.Errorf("slept %v", clock.slept)
	}
	r.wantOffered(t, "1=a 2=b")
}

// TestW31_EndOfContextWakesRun is of the sleep that a Consumer has by itself.
func TestW31_EndOfContextWakesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRig(t, nil, wal.ConsumerConfig{IdleDelay: time.Hour})
		began, done := time.Now(), make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(90 * time.Minute)
		cancel()
		if err := <-done; err != context.Canceled || time.Since(began) != 90*time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		scans := slices.DeleteFunc(r.fake.did(), func(call string) bool { return call != "flush 1" })
		if len(scans) != 2 {
			t.Errorf("looked %d times", len(scans))
		}
	})
}

// failTimes are n failed sends.
func failTimes(n int) []wal.SenderFunc {
	return slices.Repeat([]wal.SenderFunc{failingWith(errBroken)}, n)
}

// run runs r until its downstream has no prepared answer left and r has slept once more.
func run(t *testing.T, r *rig, c *clock) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.wakeUp = func() {
		if len(r.down.answers) == 0 {
			cancel()
		}
	}
	return r.Run(ctx)
}

func TestW32_RetryDelays(t *testing.T) {
	const s = time.Second
	for name, row := range map[string]struct {
		cfg  wal.ConsumerConfig
		want []time.Duration
	}{
		"defaults":      {wal.ConsumerConfig{}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}},
		"short maximum": {wal.ConsumerConfig{MaxRetryDelay: s / 2}, []time.Duration{s / 2, s / 2}},
		"long base":     {wal.ConsumerConfig{RetryDelay: 60 * s}, []time.Duration{60 * s, 60 * s}},
		"odd maximum":   {wal.ConsumerConfig{RetryDelay: 1, MaxRetryDelay: 3}, []time.Duration{1, 2, 3, 3}},
		"smallest":      {wal.ConsumerConfig{RetryDelay: 1, MaxRetryDelay: 1}, []time.Duration{1, 1, 1}},
		"largest":       {wal.ConsumerConfig{RetryDelay: math.MaxInt64}, []time.Duration{math.MaxInt64, math.MaxInt64}},
		"half the limit": {wal.ConsumerConfig{RetryDelay: math.MaxInt64/2 + 1, MaxRetryDelay: math.MaxInt64},
			[]time.Duration{math.MaxInt64/2 + 1, math.MaxInt64, math.MaxInt64}},
	} {
		told := 0
		row.cfg.OnInternalError = func(err error) {
			if errors.Is(err, wal.ErrSend) && errors.Is(err, errBroken) {
				told++
			}
		}
		clock := newClock()
		r := newRig(t, abc(), clock.on(row.cfg), failTimes(len(row.want))...)
		if err := run(t, r, clock); err != context.Canceled {
			t.Fatal(err)
		}
		if !slices.Equal(clock.slept, row.want) || told != len(row.want) {
			t.Errorf("%s: slept %v, want %v; told %d times", name, clock.slept, row.want, told)
		}
	}
}

func TestW32_JitterIsBetweenHalfAndWhole(t *testing.T) {
	for _, base := range []time.Duration{1, 2, 3, time.Second, math.MaxInt64} {
		for _, rand := range []func(int64) int64{
			func(int64) int64 { return 0 }, func(n int64) int64 { return n / 2 }, func(n int64) int64 { return n - 1 },
		} {
			clock := newClock()
			r := newRig(t, abc(), clock.on(wal.ConsumerConfig{RetryDelay: base, MaxRetryDelay: base, Rand: func(n int64) int64 {
				if n <= 0 {
					t.Fatalf("asked for chance below %d", n)
				}
				return rand(n)
			}}), failTimes(1)...)
			if err := run(t, r, clock); err != context.Canceled {
				t.Fatal(err)
			}
			if d := clock.slept[0]; d != base/2+time.Duration(rand(int64(base-base/2)+1)) || d < base/2 || d > base {
				t.Errorf("slept %d of %d", d, base)
			}
		}
	}
}

func TestW32_ProgressResetsTheDelay(t *testing.T) {
	clock := newClock()
	answers := append(failTimes(3), through(1))
	answers = append(append(answers, failTimes(2)...), refusing(2, 3)) // the handler fails, but 2 is gone
	answers = append(answers, failTimes(1)...)
	r := newRig(t, abc(), clock.on(wal.ConsumerConfig{Policy: wal.DeadLetterRejected,
		DeadLetter: func(context.Context, wal.Record, error) error { return errBroken }}), answers...)
	if err := run(t, r, clock); err != context.Canceled {
		t.Fatal(err)
	}
	const s = time.Second
	if want := []time.Duration{s, 2 * s, 4 * s, s, 2 * s, s, 2 * s}; !slices.Equal(clock.slept, want) {
		t.Errorf("slept %v, want %v", clock.slept, want)
	}
}

func TestW32_CancellationIsNeitherToldNorCounted(t *testing.T) {
	for name, drive := range map[string]func(*wal.Consumer, context.Context) error{
		"Run":   (*wal.Consumer).Run,
		"Next":  func(c *wal.Consumer, ctx context.Context) error { return second(c.Next(ctx)) },
		"Drain": func(c *wal.Consumer, ctx context.Context) error { return second(c.Drain(ctx)) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRig(t, abc(), wal.ConsumerConfig{OnInternalError: func(err error) { t.Errorf("told %v", err) }},
			func(ctx context.Context, _ []wal.Record) (wal.Result, error) {
				cancel()
				return wal.Result{}, fmt.Errorf("send: %w", ctx.Err())
			})
		if err := drive(r.Consumer, ctx); err != context.Canceled {
			t.Errorf("%s: %v", name, err)
		}
		if s := r.Stats(); s.Failures != 0 || s.HeadAttempts != 0 || s.Head != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		r.wantAt(t, 0)
	}
}

func TestW33_RunStopsOnWhatRetryingDoesNotMend(t *testing.T) {
	for call, want := range map[string]error{"flush": wal.ErrLog, "scan": wal.ErrLog, "truncate": wal.ErrAcknowledge} {
		r := newRig(t, abc(), wal.ConsumerConfig{})
		calls := 0
		// The cause says that it was a failed send, of another consumer; that does not make it one here.
		r.fake.on[call] = func() error { calls++; return &wal.Fault{Kind: wal.ErrSend, Cause: errBroken} }
		if err := r.Run(t.Context()); !errors.Is(err, want) || !errors.Is(err, errBroken) || calls != 1 {
			t.Errorf("%s: %v after %d calls", call, err, calls)
		}
		if !r.fake.free() {
			t.Errorf("%s: the log is still held", call)
		}
	}
}

// TestW34_TextIsPrivate collects the text of every error that a consumer can give, with secrets in all causes.
func TestW34_TextIsPrivate(t *testing.T) {
	deadLetter := func(_ context.Context, r wal.Record, _ error) error { return fmt.Errorf("secret %s", r.Data) }
	seen := map[error]bool{}
	for _, row := range []struct {
		cfg    wal.ConsumerConfig
		call   string
		answer wal.SenderFunc
		want   error
	}{
		{wal.ConsumerConfig{}, "", failingWith(errBroken), wal.ErrSend},
		{wal.ConsumerConfig{}, "", refusing(0, 1), wal.ErrPermanentRejection},
		{wal.ConsumerConfig{}, "", through(77), wal.ErrInvalidSendResult},
		{wal.ConsumerConfig{MaxBytes: 1}, "", nil, wal.ErrBatchTooLarge},
		{wal.ConsumerConfig{}, "truncate", through(1), wal.ErrAcknowledge},
		{wal.ConsumerConfig{Policy: wal.DiscardRejected}, "truncate", refusing(0, 1), wal.ErrDisposed},
		{wal.ConsumerConfig{Policy: wal.DeadLetterRejected, DeadLetter: deadLetter}, "", refusing(0, 1), wal.ErrDeadLetter},
		{wal.ConsumerConfig{}, "flush", nil, wal.ErrLog},
		{wal.ConsumerConfig{}, "scan", nil, wal.ErrLog},
	} {
		r := newRig(t, []string{"secret payload"}, row.cfg, row.answer)
		if row.call != "" {
			r.fake.on[row.call] = func() error { return errBroken }
		}
		err := r.wantNext(t, 0, row.want)
		seen[row.want] = true
		if got := err.Error(); got != "consume: "+row.want.Error() {
			t.Errorf("told %q", got)
		}
	}
	if len(seen) != 8 {
		t.Errorf("only %d kinds of errors were seen", len(seen))
	}
}

func TestW35_DrainUntilEmptyOrFirstError(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		r := rigged(t, make([]string, 10), wal.ConsumerConfig{MaxBatch: 3})
		if n, err := r.Drain(t.Context()); n != 10 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := r.Drain(t.Context()); n != 0 || err != nil {
			t.Errorf("empty: %d, %v", n, err)
		}
		r = rigged(t, make([]string, 10), wal.ConsumerConfig{MaxBatch: 3}, through(3), through(5), failingWith(errBroken))
		if n, err := r.Drain(t.Context()); n != 5 || !errors.Is(err, wal.ErrSend) || len(r.down.offered) != 3 {
			t.Errorf("%d, %v after %d sends", n, err, len(r.down.offered))
		}
	})
}

// TestW35_DrainEndsAlthoughRecordsKeepComing: it is bounded by the watermark at its beginning.
func TestW35_DrainEndsAlthoughRecordsKeepComing(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		var r *rig
		sends := 0
		r = rigged(t, abc(), wal.ConsumerConfig{MaxBatch: 2, Sender: wal.SenderFunc(
			func(_ context.Context, records []wal.Record) (wal.Result, error) {
				if sends++; sends > 10 {
					t.Fatal("it does not end")
				}
				r.add("x", "y")
				return wal.Result{Through: records[len(records)-1].Position}, nil
			})})
		if n, err := r.Drain(t.Context()); n != 3 || err != nil || sends != 2 {
			t.Errorf("%d, %v after %d sends", n, err, sends)
		}
		r.wantAt(t, 3)
	})
}

func TestW35_DrainEndsWithItsContext(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		ctx, cancel := context.WithCancel(t.Context())
		r := rigged(t, abc(), wal.ConsumerConfig{MaxBatch: 1}, through(1),
			func(context.Context, []wal.Record) (wal.Result, error) {
				cancel()
				return wal.Result{Through: 2}, nil
			})
		if n, err := r.Drain(ctx); n != 2 || err != context.Canceled {
			t.Errorf("%d, %v", n, err)
		}
		r.wantAt(t, 2)
	})
}
