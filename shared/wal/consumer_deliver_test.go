package wal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

func TestW8_OneAtATime(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		inside, proceed := make(chan struct{}), make(chan struct{})
		var entered atomic.Bool
		r := rigged(t, abc(), wal.ConsumerConfig{Sender: wal.SenderFunc(
			func(context.Context, []wal.Record) (wal.Result, error) {
				if entered.Swap(true) {
					return wal.Result{}, errBroken
				}
				close(inside)
				<-proceed
				return wal.Result{Through: 3}, nil
			})})
		other := mustConsume(t, wal.ConsumerConfig{Source: r.src, Sender: r.down, Sleep: sleepless})
		done := make(chan error)
		go func() { done <- second(r.Next(t.Context())) }()
		<-inside
		if r.fake != nil {
			r.fake.did()
		}
		for _, c := range []*wal.Consumer{r.Consumer, other} { // the lock is the log's
			wantRunning(t, c)
		}
		if r.fake != nil {
			for _, call := range r.fake.did() {
				if call != "consume" {
					t.Errorf("called %s", call)
				}
			}
		}
		close(proceed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.add("d")
		if n, err := other.Next(t.Context()); n != 1 || err != nil {
			t.Errorf("the log is not free again: %d, %v", n, err)
		}
	})
}

func second(_ int, err error) error { return err }

func wantRunning(t *testing.T, c *wal.Consumer) {
	t.Helper()
	for _, err := range []error{second(c.Next(t.Context())), second(c.Drain(t.Context())), c.Run(t.Context())} {
		if !errors.Is(err, wal.ErrRunning) {
			t.Errorf("%v, want ErrRunning", err)
		}
	}
}

func TestW8_ReentrantCallFromACallback(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		var r *rig
		handler := func(context.Context, wal.Record, error) error { wantRunning(t, r.Consumer); return nil }
		r = rigged(t, abc(), wal.ConsumerConfig{Policy: wal.DeadLetterRejected, DeadLetter: handler},
			func(context.Context, []wal.Record) (wal.Result, error) {
				wantRunning(t, r.Consumer)
				return refusing(2, 3)(nil, nil)
			})
		r.wantNext(t, 3, nil)
	})
}

func TestW8_FreeAgainAfterReturnErrorAndPanic(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{}, failingWith(errBroken),
		func(context.Context, []wal.Record) (wal.Result, error) { panic("boom") })
	for _, want := range []error{wal.ErrSend, wal.ErrPanic} {
		r.wantNext(t, 0, want)
		if !r.fake.free() {
			t.Fatalf("the log is held after %v", want)
		}
	}
	r.wantNext(t, 3, nil)
	if !r.fake.free() {
		t.Fatal("the log is held after a return")
	}
}

func TestW9_EndedContextTouchesNothing(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.fake.did()
	for _, err := range []error{second(r.Next(ctx)), second(r.Drain(ctx)), r.Run(ctx)} {
		if err != context.Canceled {
			t.Errorf("%v, want ctx.Err()", err)
		}
	}
	if did := r.fake.did(); len(did) > 0 {
		t.Errorf("called %q", did)
	}
}

func TestW10_WatermarkFirstAndNeverPassed(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{})
	r.fake.on["flush"] = func() error { r.fake.add("late"); return nil } // behind the mark that Flush took
	r.wantNext(t, 3, nil)
	r.wantOffered(t, "1=a 2=b 3=c")
	did := r.fake.did()
	flush, scan := slices.Index(did, "flush 1"), slices.Index(did, "scan 1-3")
	if flush < 0 || scan < flush {
		t.Errorf("called %q", did)
	}
}

func TestW11_NothingLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		r := rigged(t, nil, wal.ConsumerConfig{})
		r.wantNext(t, 0, nil)
		r.add("a")
		r.wantNext(t, 1, nil)
		r.wantNext(t, 0, nil)
		r.wantOffered(t, "1=a")
	})
}

func TestW12_InOrderAndBoundedByCount(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		r := rigged(t, make([]string, 300), wal.ConsumerConfig{})
		for _, n := range []int{128, 128, 44, 0} {
			r.wantNext(t, n, nil)
		}
		position := 0
		for _, batch := range r.down.offered {
			for record := range strings.FieldsSeq(batch) {
				if position++; record != fmt.Sprintf("%d=", position) {
					t.Fatalf("record %d is %s", position, record)
				}
			}
		}
	})
}

func TestW13_BoundedByBytesOfData(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		r := rigged(t, []string{"aa", "", "bb", "", "c", "dddd", ""}, wal.ConsumerConfig{MaxBytes: 4})
		for _, n := range []int{4, 1, 2, 0} {
			r.wantNext(t, n, nil)
		}
		r.wantOffered(t, "1=aa 2= 3=bb 4=", "5=c", "6=dddd 7=")
	})
}

func TestW14_FirstRecordOverTheBound(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		r := rigged(t, []string{"12345", "b"}, wal.ConsumerConfig{MaxBytes: 4})
		for range 2 {
			r.wantNext(t, 0, wal.ErrBatchTooLarge)
		}
		r.wantOffered(t)
		r.wantAt(t, 0)
		if s := r.Stats(); s.Head != 1 || s.HeadAttempts != 2 || s.Failures != 2 || s.PermanentRejections != 1 {
			t.Errorf("%+v", s)
		}
		if err := r.Run(t.Context()); !errors.Is(err, wal.ErrBatchTooLarge) {
			t.Errorf("run: %v", err)
		}
	})
}

func TestW15_GoodRecordsBeforeAnOversizedOneAreDelivered(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		data := []string{"a", "b", "12345", "c"}
		r := rigged(t, data, wal.ConsumerConfig{MaxBytes: 4})
		if n, err := r.Drain(t.Context()); n != 2 || !errors.Is(err, wal.ErrBatchTooLarge) {
			t.Errorf("stop: %d, %v", n, err)
		}
		r.wantAt(t, 2)
		r = rigged(t, data, wal.ConsumerConfig{MaxBytes: 4, Policy: wal.DiscardRejected})
		if n, err := r.Drain(t.Context()); n != 4 || err != nil {
			t.Errorf("discard: %d, %v", n, err)
		}
		r.wantOffered(t, "1=a 2=b", "4=c")
		var kept []string
		r = rigged(t, data, wal.ConsumerConfig{MaxBytes: 4, Policy: wal.DeadLetterRejected,
			DeadLetter: func(_ context.Context, r wal.Record, reason error) error {
				kept = append(kept, fmt.Sprintf("%d=%s %t", r.Position, r.Data, errors.Is(reason, wal.ErrBatchTooLarge)))
				return nil
			}})
		if n, err := r.Drain(t.Context()); n != 4 || err != nil || !slices.Equal(kept, []string{"3=12345 true"}) {
			t.Errorf("dead letter: %d, %v, kept %q", n, err, kept)
		}
	})
}

func TestW16_DataIsLent(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		var kept [][]byte
		keep := func(r wal.Record) {
			if cap(r.Data) != len(r.Data) {
				t.Errorf("record %d: cap %d, len %d", r.Position, cap(r.Data), len(r.Data))
			}
			_ = append(r.Data, "overwritten"...)
			kept = append(kept, r.Data)
		}
		r := rigged(t, []string{"aaaa", "", "bbbb", "cccc"}, wal.ConsumerConfig{Policy: wal.DeadLetterRejected,
			DeadLetter: func(_ context.Context, r wal.Record, _ error) error {
				if string(r.Data) != "cccc" || r.ID != "id-4" {
					t.Errorf("the handler got %+v", r)
				}
				keep(r)
				return nil
			}},
			func(_ context.Context, records []wal.Record) (wal.Result, error) {
				for _, r := range records {
					keep(r)
				}
				for i, want := range []string{"aaaa", "", "bbbb", "cccc"} {
					if string(records[i].Data) != want {
						t.Errorf("record %d is %q", i, records[i].Data)
					}
				}
				clear(records) // the slice is the sender's
				return refusing(3, 4)(nil, nil)
			})
		r.wantNext(t, 4, nil)
		for i, data := range kept {
			if strings.Trim(string(data), "\x00") != "" {
				t.Errorf("slice %d still reads %q", i, data)
			}
		}
	})
}

func TestW16_NothingIsLentAfterAnErrorOrPanic(t *testing.T) {
	var kept [][]byte
	keep := func(err error) wal.SenderFunc {
		return func(_ context.Context, records []wal.Record) (wal.Result, error) {
			kept = append(kept, records[0].Data)
			if err == nil {
				panic("boom")
			}
			return wal.Result{}, err
		}
	}
	r := newRig(t, []string{"secret"}, wal.ConsumerConfig{}, keep(errBroken), keep(nil))
	r.wantNext(t, 0, wal.ErrSend)
	r.wantNext(t, 0, wal.ErrPanic)
	if string(kept[0]) != "\x00\x00\x00\x00\x00\x00" || string(kept[1]) != string(kept[0]) {
		t.Errorf("kept %q", kept)
	}
}

func TestW17_ScanFailure(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{})
	r.fake.on["scan"] = func() error { return errBroken }
	err := r.wantNext(t, 0, wal.ErrLog)
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "look at its disk") {
		t.Errorf("%v", err)
	}
	r.wantOffered(t)

	disk := waltest.New() // a real log whose disk refuses to be read
	l := mustOpen(t, small(disk))
	mustAppend(t, l, "a", 10, wal.Synced)
	failing(disk, waltest.Open, 1)
	c := mustConsume(t, wal.ConsumerConfig{Source: l, Sender: &downstream{}})
	if _, err := c.Next(t.Context()); !errors.Is(err, wal.ErrLog) || !errors.Is(err, waltest.ErrInjected) {
		t.Errorf("%v", err)
	}
	if n, err := c.Next(t.Context()); n != 1 || err != nil {
		t.Errorf("after healing: %d, %v", n, err)
	}
}

// hide makes all records unreadable without a word.
func (r *rig) hide() {
	for p := wal.Position(1); p <= r.fake.state.Written; p++ {
		r.fake.hidden[p] = true
	}
}

func TestW17_NothingReadableBelowTheWatermark(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{})
	r.hide()
	r.wantNext(t, 0, wal.ErrLog)
	r.wantAt(t, 0)

	r = newRig(t, abc(), wal.ConsumerConfig{}) // somebody else truncated meanwhile: looking twice shows it
	r.hide()
	r.fake.on["scan"] = func() error { r.fake.state.Truncated = 3; return nil }
	r.wantNext(t, 0, nil)
	if n, err := r.Drain(t.Context()); n != 0 || err != nil {
		t.Errorf("drain: %d, %v", n, err)
	}
}

// TestW17_DamageIsPassedOverOnce: only damage that was told excuses records that are not there.
func TestW17_DamageIsPassedOverOnce(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{})
	r.fake.damage(2)
	r.fake.damage(3)
	r.wantNext(t, 1, nil)
	r.wantNext(t, 0, nil) // what is damaged at the end goes with it
	r.wantAt(t, 3)
	r.add("d")
	r.hide()
	r.wantNext(t, 0, wal.ErrLog) // and is no excuse for others
	r.wantAt(t, 3)
}

func TestW17_DamageInARealLog(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	for _, id := range []string{"a", "b", "c", "d"} {
		mustAppend(t, l, id, 100, wal.Synced)
	}
	data := disk.Bytes(segment(1))
	const frame = 24 + 3 + 1 + 99
	for _, lost := range []int{1, 3} {
		data[1024+lost*frame+60] ^= 1
	}
	disk.Put(segment(1), data) // under the running log
	r := &rig{src: l}
	r.start(t, wal.ConsumerConfig{}, nil)
	if n, err := r.Drain(t.Context()); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	r.wantAt(t, 4)
	if s := l.State(); s.Lost != 2 {
		t.Errorf("%+v", s)
	}
}

func TestW18_SameRecordsAfterAFailedSend(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		var seen []string
		note := func(err error) wal.SenderFunc {
			return func(_ context.Context, records []wal.Record) (wal.Result, error) {
				seen = append(seen, fmt.Sprintf("%+v", records))
				return wal.Result{Through: 3}, err
			}
		}
		r := rigged(t, abc(), wal.ConsumerConfig{}, note(errBroken), note(errBroken), note(nil))
		r.wantNext(t, 0, wal.ErrSend)
		r.add("d") // grows the batch behind the same records
		r.down.answers[0] = note(errBroken)
		r.wantNext(t, 0, wal.ErrSend)
		r.wantAt(t, 0)
		r.wantNext(t, 3, nil)
		first := strings.TrimSuffix(seen[0], "]")
		if !strings.HasPrefix(seen[1], first) || seen[1] != seen[2] {
			t.Errorf("offered %q", seen)
		}
	})
}
