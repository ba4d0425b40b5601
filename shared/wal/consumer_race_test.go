package wal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

// TestE5_RunAmongOthers has writers, a reader of Stats and a second consumer around a Run whose downstream fails, takes
// parts and rejects.
func TestE5_RunAmongOthers(t *testing.T) {
	const writers, each = 4, 100
	before := runtime.NumGoroutine()
	l := mustOpen(t, small(waltest.New()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var got []string // of the consumer's goroutine
	var last wal.Position
	rng := rand.New(rand.NewPCG(5, 5))
	take := func(r wal.Record) {
		if r.Position <= last {
			t.Errorf("%d comes after %d", r.Position, last)
		}
		last = r.Position
		if got = append(got, r.ID); len(got) == writers*each {
			stop()
		}
	}
	send := func(_ context.Context, records []wal.Record) (wal.Result, error) {
		n := rng.IntN(len(records) + 2)
		if n > len(records) {
			return wal.Result{}, errBroken
		}
		var r wal.Result
		for _, record := range records[:n] {
			take(record)
			r.Through = record.Position
		}
		if n == 0 {
			r.Rejected = &wal.Rejection{Position: records[n].Position, Reason: errReason}
		}
		return r, nil
	}
	running := make(chan struct{})
	begin := sync.OnceFunc(func() { close(running) })
	c := mustConsume(t, wal.ConsumerConfig{
		Source: l, Sender: wal.SenderFunc(send), MaxBatch: 7, MaxBytes: 400, Policy: wal.DeadLetterRejected,
		DeadLetter:      func(_ context.Context, r wal.Record, _ error) error { take(r); return nil },
		OnInternalError: func(error) {},
		Sleep: func(ctx context.Context, _ time.Duration) error {
			begin() // at the latest when there is nothing to deliver yet
			runtime.Gosched()
			return ctx.Err()
		},
	})
	other := mustConsume(t, wal.ConsumerConfig{Source: l, Sender: wal.SenderFunc(
		func(context.Context, []wal.Record) (wal.Result, error) {
			t.Error("two consumers at once")
			return wal.Result{}, errBroken
		})})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				<-running
				entry := wal.Entry{ID: fmt.Sprintf("%d-%03d", w, i), Data: make([]byte, i)}
				if _, err := l.Append(t.Context(), []wal.Entry{entry}, wal.Durability(i%2)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		<-running
		for ctx.Err() == nil {
			if s := c.Stats(); s.Delivered+s.DeadLettered > writers*each || s.PermanentRejections < s.DeadLettered {
				t.Errorf("%+v", s)
			}
			if _, err := other.Next(ctx); !errors.Is(err, wal.ErrRunning) && ctx.Err() == nil {
				t.Errorf("next beside run: %v", err)
			}
		}
	})
	if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
	wg.Wait()
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != writers*each {
		t.Errorf("%d of %d records", n, writers*each)
	}
	if s := c.Stats(); s.Delivered+s.DeadLettered != writers*each || l.State().Truncated != l.State().Written {
		t.Errorf("%+v, %+v", s, l.State())
	}
	for range 100_000 { // those that have just ended may still be counted
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}
