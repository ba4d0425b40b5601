package wal_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"abacus/shared/wal"
)

// stalls counts how often a stall is told, and checks that Stats agree.
type stalls struct {
	t    *testing.T
	r    *rig
	told int
}

func (s *stalls) tell(err error) {
	if errors.Is(err, wal.ErrConsumerStalled) {
		s.told++
		if !s.r.Stats().Stalled {
			s.t.Error("told of a stall that Stats do not show")
		}
	}
}

func (s *stalls) want(told int, stalled bool) {
	s.t.Helper()
	if got := s.r.Stats(); s.told != told || got.Stalled != stalled {
		s.t.Fatalf("told %d times, want %d; %+v, want stalled %t", s.told, told, got, stalled)
	}
}

func stalling(t *testing.T, c *clock, cfg wal.ConsumerConfig, answers ...wal.SenderFunc) *stalls {
	s := &stalls{t: t}
	cfg.OnInternalError = s.tell
	s.r = newRig(t, abc(), c.on(cfg), answers...)
	return s
}

// TestW36_StallIsToldOncePerHead drives with Next, so that nothing but the calls themselves can notice.
func TestW36_StallIsToldOncePerHead(t *testing.T) {
	answers := append(failTimes(5), through(1))
	answers = append(answers, failTimes(4)...)
	s := stalling(t, newClock(), wal.ConsumerConfig{StallAttempts: 3}, answers...)
	next := func(n int, want error) { t.Helper(); s.r.wantNext(t, n, want) }
	next(0, wal.ErrSend)
	next(0, wal.ErrSend)
	s.want(0, false)
	next(0, wal.ErrSend)
	s.want(1, true)
	next(0, wal.ErrSend)
	next(0, wal.ErrSend)
	s.want(1, true)
	next(1, nil)
	s.want(1, false)
	for range 4 {
		next(0, wal.ErrSend)
	}
	s.want(2, true)
	next(2, nil)
	s.want(2, false)
}

func TestW36_StallByAge(t *testing.T) {
	c := newClock()
	s := stalling(t, c, wal.ConsumerConfig{StallAfter: time.Minute, StallAttempts: 2}, failTimes(3)...)
	s.r.wantNext(t, 0, wal.ErrSend)
	c.now = c.now.Add(time.Minute - 1)
	s.want(0, false)
	c.now = c.now.Add(1) // both triggers at once
	s.r.wantNext(t, 0, wal.ErrSend)
	s.want(1, true)
	s.r.wantNext(t, 0, wal.ErrSend)
	s.want(1, true)

	c = newClock()
	s = stalling(t, c, wal.ConsumerConfig{}, failTimes(3)...)
	s.r.wantNext(t, 0, wal.ErrSend)
	c.now = c.now.Add(time.Minute - 1)
	s.r.wantNext(t, 0, wal.ErrSend)
	s.want(0, false)
	c.now = c.now.Add(1)
	s.r.wantNext(t, 0, wal.ErrSend)
	s.want(1, true)
}

// TestW36_StallUnderDeadlines: a downstream that outlasts every caller's deadline fails no send, and yet stalls the
// head.
func TestW36_StallUnderDeadlines(t *testing.T) {
	c := newClock()
	s := stalling(t, c, wal.ConsumerConfig{StallAfter: time.Minute})
	for i := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		s.r.down.answers = []wal.SenderFunc{func(context.Context, []wal.Record) (wal.Result, error) {
			cancel()
			c.now = c.now.Add(20 * time.Second)
			return wal.Result{}, ctx.Err()
		}}
		if _, err := s.r.Drain(ctx); err != context.Canceled {
			t.Fatal(err)
		}
		if i == 1 {
			s.want(0, false)
		}
	}
	s.want(1, true)
	if got := s.r.Stats(); got.Failures != 0 || got.HeadAttempts != 0 {
		t.Errorf("%+v", got)
	}
}

func TestW36_StallOfARejectedOrOversizedHeadAndInRun(t *testing.T) {
	for want, cfg := range map[error]wal.ConsumerConfig{
		wal.ErrBatchTooLarge: {MaxBytes: 1}, wal.ErrPermanentRejection: {},
	} {
		s := stalling(t, newClock(), cfg)
		s.r = newRig(t, []string{"aa"}, newClock().on(wal.ConsumerConfig{
			MaxBytes: cfg.MaxBytes, StallAttempts: 2, OnInternalError: s.tell,
		}), refusing(0, 1), refusing(0, 1), refusing(0, 1))
		for range 3 {
			s.r.wantNext(t, 0, want)
		}
		s.want(1, true)
	}
	c := newClock()
	s := stalling(t, c, wal.ConsumerConfig{}, failTimes(12)...)
	if err := run(t, s.r, c); err != context.Canceled {
		t.Fatal(err)
	}
	if s.told != 1 {
		t.Errorf("told %d times", s.told)
	}
}

// TestW36_AgesAreOfTheWallClock: a frozen process has a monotonic clock that stood still.
func TestW36_AgesAreOfTheWallClock(t *testing.T) {
	began := time.Now() // has both readings
	c := newClock()
	cfg := c.on(wal.ConsumerConfig{})
	frozen := time.Duration(0)
	cfg.Now = func() time.Time { return began.Add(frozen) }
	r := newRig(t, abc(), cfg, failTimes(1)...)
	r.wantNext(t, 0, wal.ErrSend)
	if since := r.Stats().HeadSince; since != began.Round(0) {
		t.Errorf("since %v has a monotonic reading", since)
	}
}

func TestW37_HeadFollowsProgress(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		c := newClock()
		began := c.now
		r := rigged(t, abc(), c.on(wal.ConsumerConfig{}), failingWith(errBroken), through(1), failingWith(errBroken))
		if s := r.Stats(); s != (wal.Stats{}) {
			t.Errorf("at first %+v", s)
		}
		r.wantNext(t, 0, wal.ErrSend)
		if s, want := r.Stats(), (wal.Stats{Failures: 1, Head: 1, HeadSince: began, HeadAttempts: 1}); s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
		c.now = c.now.Add(time.Second)
		r.wantNext(t, 1, nil)
		if s, want := r.Stats(), (wal.Stats{Delivered: 1, Failures: 1}); s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
		c.now = c.now.Add(time.Second)
		r.wantNext(t, 0, wal.ErrSend)
		want := wal.Stats{Delivered: 1, Failures: 2, Head: 2, HeadSince: began.Add(2 * time.Second), HeadAttempts: 1}
		if s := r.Stats(); s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
		r.wantNext(t, 2, nil)
		if s, want := r.Stats(), (wal.Stats{Delivered: 3, Failures: 2}); s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
	})
}

// TestW37_OneSnapshot: a picture never shows the head of one moment with the counts of another.
func TestW37_OneSnapshot(t *testing.T) {
	r := newLogRig(t, make([]string, 300), wal.ConsumerConfig{MaxBatch: 1})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := r.Stats()
				if s.Head != 0 && uint64(s.Head) != s.Delivered+1 || (s.Head == 0) != s.HeadSince.IsZero() {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	if n, err := r.Drain(t.Context()); n != 300 || err != nil {
		t.Error(n, err)
	}
	close(stop)
	wg.Wait()
}

func TestW37_StatsFromACallback(t *testing.T) {
	var r *rig
	r = newRig(t, abc(), wal.ConsumerConfig{}, func(context.Context, []wal.Record) (wal.Result, error) {
		if s := r.Stats(); s.Head != 1 || s.HeadSince.IsZero() {
			t.Errorf("%+v", s)
		}
		return wal.Result{Through: 3}, nil
	})
	r.wantNext(t, 3, nil)
}

func TestW38_LogStaysOpen(t *testing.T) {
	c := newClock()
	r := newLogRig(t, abc(), c.on(wal.ConsumerConfig{}), through(3))
	if err := run(t, r, c); err != context.Canceled {
		t.Fatal(err)
	}
	r.add("d")
	if n, err := r.Drain(t.Context()); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := r.src.(*wal.Log).Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := r.Next(t.Context()); !errors.Is(err, wal.ErrLog) || !errors.Is(err, wal.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

// TestW37_HeadThatIsGoneIsNotShown: whoever took it.
func TestW37_HeadThatIsGoneIsNotShown(t *testing.T) {
	r := newRig(t, []string{"a"}, wal.ConsumerConfig{}, failingWith(errBroken))
	r.wantNext(t, 0, wal.ErrSend)
	r.fake.state.Truncated = 1
	r.wantNext(t, 0, nil)
	if s := r.Stats(); s != (wal.Stats{Failures: 1}) {
		t.Errorf("%+v", s)
	}
}
