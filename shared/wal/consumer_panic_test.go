package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"abacus/shared/wal"
)

func panicking() error { panic("boom, with a secret") }

// TestW30_EveryPanicIsContained makes each callback panic under each way to drive a consumer.
func TestW30_EveryPanicIsContained(t *testing.T) {
	boom := func() { _ = panicking() }
	type setup func(*wal.ConsumerConfig, *source) wal.SenderFunc
	atLog := func(call string) setup {
		return func(_ *wal.ConsumerConfig, s *source) wal.SenderFunc { s.on[call] = panicking; return through(3) }
	}
	rows := map[string]setup{
		"log: consume": atLog("consume"), "log: flush": atLog("flush"), "log: state": atLog("state"),
		"log: scan": atLog("scan"), "log: release": atLog("release"), "acknowledger: truncate": atLog("truncate"),
		"sender: Send": func(*wal.ConsumerConfig, *source) wal.SenderFunc {
			return func(context.Context, []wal.Record) (wal.Result, error) { panic(errBroken) }
		},
		"acknowledger: Acknowledge": func(cfg *wal.ConsumerConfig, _ *source) wal.SenderFunc {
			cfg.Acknowledger = &witness{cursor{lacks: 9}, func(context.Context) { boom() }}
			return through(3)
		},
		"acknowledger: of a disposition": func(cfg *wal.ConsumerConfig, s *source) wal.SenderFunc {
			cfg.Policy, s.on["truncate"] = wal.DiscardRejected, panicking
			return refusing(0, 1)
		},
		"dead-letter handler:": func(cfg *wal.ConsumerConfig, _ *source) wal.SenderFunc {
			cfg.Policy = wal.DeadLetterRejected
			cfg.DeadLetter = func(context.Context, wal.Record, error) error { return panicking() }
			return refusing(0, 1)
		},
		"Now: ": func(cfg *wal.ConsumerConfig, _ *source) wal.SenderFunc {
			cfg.Now = func() time.Time { boom(); return time.Time{} }
			return through(3)
		},
	}
	for name, set := range rows {
		callback, _, _ := strings.Cut(name, ":")
		ctx, cancel := context.WithCancel(t.Context()) // Run ends at the latest when it idles
		defer cancel()
		for drive, call := range map[string]func(*wal.Consumer) error{
			"Next":  func(c *wal.Consumer) error { return second(c.Next(t.Context())) },
			"Drain": func(c *wal.Consumer) error { return second(c.Drain(t.Context())) },
			"Run":   func(c *wal.Consumer) error { return c.Run(ctx) },
		} {
			fake := newSource(t, abc()...)
			cfg := newClock().on(wal.ConsumerConfig{Source: fake})
			cfg.Sleep = func(context.Context, time.Duration) error { cancel(); return nil }
			cfg.Sender = set(&cfg, fake)
			err := call(mustConsume(t, cfg))
			if !errors.Is(err, wal.ErrPanic) || !strings.Contains(err.Error(), " "+callback+": a callback panicked") {
				t.Errorf("%s in %s: %v", name, drive, err)
			}
			if !fake.free() {
				t.Errorf("%s in %s: the log is still held", name, drive)
			}
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("%s in %s: told too much: %v", name, drive, err)
			}
		}
	}
	broken := newSource(t)
	broken.on["supports"] = panicking
	if _, err := wal.NewConsumer(wal.ConsumerConfig{Source: broken, Sender: &downstream{}}); !errors.Is(err, wal.ErrPanic) {
		t.Errorf("supports: %v", err)
	}
}

func TestW30_PanicSaysWhere(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{},
		func(context.Context, []wal.Record) (wal.Result, error) { panic(errBroken) })
	err := r.wantNext(t, 0, errBroken)
	var p *wal.Panic
	if !errors.As(err, &p) || !strings.Contains(p.Error(), "TestW30_PanicSaysWhere") {
		t.Errorf("%v", err)
	}
	// A panic of what was once ErrSend is still a panic.
	r = newRig(t, abc(), newClock().on(wal.ConsumerConfig{}),
		func(context.Context, []wal.Record) (wal.Result, error) { panic(wal.ErrSend) })
	if err := r.Run(t.Context()); !errors.Is(err, wal.ErrPanic) {
		t.Errorf("run: %v", err)
	}
}

// TestW30_NowPanicsLater: at the head behind a prefix, and when a failed head's age is looked at.
func TestW30_NowPanicsLater(t *testing.T) {
	for _, row := range []struct {
		answer wal.SenderFunc
		n      int
		also   error
	}{{refusing(2, 3), 2, wal.ErrPanic}, {failingWith(errBroken), 0, wal.ErrSend}} {
		calls := 0
		r := newRig(t, abc(), wal.ConsumerConfig{Now: func() time.Time {
			if calls++; calls > 1 {
				_ = panicking()
			}
			return time.Time{}
		}}, row.answer)
		err := r.wantNext(t, row.n, wal.ErrPanic)
		if !errors.Is(err, row.also) || !strings.Contains(err.Error(), "Now: a callback panicked") {
			t.Errorf("%v", err)
		}
	}
}

func TestW30_SleepAndRand(t *testing.T) {
	for callback, set := range map[string]func(*wal.ConsumerConfig){
		"Sleep": func(c *wal.ConsumerConfig) {
			c.Sleep = func(context.Context, time.Duration) error { return panicking() }
		},
		"Rand": func(c *wal.ConsumerConfig) { c.Rand = func(int64) int64 { _ = panicking(); return 0 } },
	} {
		cfg := newClock().on(wal.ConsumerConfig{})
		set(&cfg)
		r := newRig(t, abc(), cfg, failingWith(errBroken))
		err := r.Run(t.Context())
		if !errors.Is(err, wal.ErrPanic) || !strings.Contains(err.Error(), callback) || !r.fake.free() {
			t.Errorf("%s: %v", callback, err)
		}
	}
}

// TestW30_ReportsReachSomebody: OnInternalError, else Logf, else log.Printf.
func TestW30_ReportsReachSomebody(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	defer log.SetOutput(os.Stderr)
	logf := func(format string, args ...any) { fmt.Fprintf(&printed, "Logf "+format, args...) }
	deaf := func(string, ...any) { _ = panicking() }
	for _, row := range []struct {
		on   func(error)
		logf func(string, ...any)
		want string
	}{
		{func(err error) { fmt.Fprint(&printed, "told ", err) }, logf, "told consume: the sender failed"},
		{nil, logf, "Logf wal consumer: consume: the sender failed"},
		{func(error) { _ = panicking() }, logf, "Logf wal consumer: consume: the sender failed"},
		{func(error) { _ = panicking() }, deaf, " wal consumer: consume: the sender failed"},
		{nil, deaf, " wal consumer: consume: the sender failed"},
	} {
		printed.Reset()
		ctx, cancel := context.WithCancel(t.Context())
		clock := newClock()
		clock.wakeUp = cancel
		r := newRig(t, abc(), clock.on(wal.ConsumerConfig{OnInternalError: row.on, Logf: row.logf}), failingWith(errBroken))
		if err := r.Run(ctx); err != context.Canceled {
			t.Errorf("run: %v", err)
		}
		if got := printed.String(); !strings.Contains(got, row.want) || strings.Contains(got, "secret") {
			t.Errorf("printed %q, want %q", got, row.want)
		}
	}
}
