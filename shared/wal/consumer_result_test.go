package wal_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/wal"
)

func TestW19_PrefixAcceptance(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		r := rigged(t, abc(), wal.ConsumerConfig{}, through(1), through(3))
		r.wantNext(t, 1, nil)
		r.wantAt(t, 1)
		r.wantNext(t, 2, nil)
		r.wantAt(t, 3)
		r.wantOffered(t, "1=a 2=b 3=c", "2=b 3=c")

		for _, p := range []wal.Position{4, 99, ^wal.Position(0)} {
			r = rigged(t, []string{"a", "b", "c", "d"}, wal.ConsumerConfig{MaxBatch: 3}, through(p))
			r.wantNext(t, 0, wal.ErrInvalidSendResult)
			r.wantAt(t, 0)
		}
	})
}

// TestW19_PrefixIsNamedByPosition: neither a count nor an id would do.
func TestW19_PrefixIsNamedByPosition(t *testing.T) {
	fake := newSource(t, "a", "b", "c", "d")
	for i := range fake.records {
		fake.records[i].ID = "the same"
	}
	fake.damage(1)
	fake.damage(3)
	r := &rig{src: fake, fake: fake}
	r.start(t, wal.ConsumerConfig{}, []wal.SenderFunc{through(1), through(3), through(2)})
	r.wantNext(t, 0, wal.ErrInvalidSendResult) // 1 was not offered
	r.wantNext(t, 0, wal.ErrInvalidSendResult)
	r.wantNext(t, 1, nil)
	r.wantAt(t, 2)
	r.wantNext(t, 1, nil)
	r.wantOffered(t, "2=b 4=d", "2=b 4=d", "2=b 4=d", "4=d")
}

// malformed are results that no offer of the records 1 to 3 allows.
var malformed = map[string]wal.SenderFunc{
	"rejected inside the prefix":      refusing(2, 1),
	"rejected the prefix's last":      refusing(2, 2),
	"skipped one":                     refusing(1, 3),
	"skipped the first":               refusing(0, 2),
	"past the end":                    refusing(3, 4),
	"past the end without prefix":     refusing(0, 4),
	"rejected nothing":                refusing(1, 0),
	"rejected nothing without prefix": refusing(0, 0),
	"unknown prefix":                  refusing(9, 1),
	"no progress":                     through(0),
	"beyond the batch":                through(4),
}

func TestW20_RejectionMustBeTheOneBehindThePrefix(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		for name, answer := range malformed {
			r := rigged(t, append(abc(), "d"), wal.ConsumerConfig{MaxBatch: 3, Policy: wal.DiscardRejected}, answer)
			if n, err := r.Next(t.Context()); n != 0 || !errors.Is(err, wal.ErrInvalidSendResult) {
				t.Errorf("%s: %d, %v", name, n, err)
			}
			r.wantAt(t, 0)
		}
		for _, answer := range []wal.SenderFunc{refusing(0, 1), refusing(1, 2), refusing(2, 3)} {
			r := rigged(t, abc(), wal.ConsumerConfig{Policy: wal.DiscardRejected}, answer)
			if n, err := r.Next(t.Context()); n == 0 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
	})
}

func TestW21_NoProgressWithoutAnErrorIsInvalid(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{}, through(0), through(0))
	r.wantNext(t, 0, wal.ErrInvalidSendResult)
	if err := r.Run(t.Context()); !errors.Is(err, wal.ErrInvalidSendResult) {
		t.Errorf("run: %v, want no silent idling", err)
	}
}

func TestW22_InvalidResultAcknowledgesNothing(t *testing.T) {
	for name, answer := range malformed {
		r := newRig(t, append(abc(), "d"), wal.ConsumerConfig{MaxBatch: 3}, answer)
		if err := r.Run(t.Context()); !errors.Is(err, wal.ErrInvalidSendResult) {
			t.Errorf("%s: run: %v", name, err)
		}
		for _, call := range r.fake.did() {
			if call[:5] == "trunc" {
				t.Errorf("%s: %s", name, call)
			}
		}
		if s := r.Stats(); s.Head != 1 || s.HeadAttempts != 1 || s.Failures != 1 || s.Delivered != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

type key struct{}

// witness is an Acknowledger that looks at its context.
type witness struct {
	cursor
	look func(context.Context)
}

func (w *witness) Acknowledge(ctx context.Context, through wal.Position, d wal.Durability) error {
	w.look(ctx)
	return w.cursor.Acknowledge(ctx, through, d)
}

func TestW23_CancellationEndsAtAcceptance(t *testing.T) {
	for _, answer := range []wal.SenderFunc{through(3), refusing(2, 3), refusing(0, 1)} {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		looks := 0
		look := func(ctx context.Context) {
			if looks++; ctx.Err() != nil || ctx.Value(key{}) != "kept" {
				t.Errorf("err %v, value %v", ctx.Err(), ctx.Value(key{}))
			}
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("no deadline: it could wait for ever")
			}
		}
		r := newRig(t, abc(), wal.ConsumerConfig{
			Acknowledger: &witness{cursor{lacks: 9}, look},
			Policy:       wal.DeadLetterRejected,
			DeadLetter:   func(ctx context.Context, _ wal.Record, _ error) error { look(ctx); return nil },
		}, func(ctx context.Context, records []wal.Record) (wal.Result, error) {
			cancel()
			return answer(ctx, records)
		})
		if n, err := r.Next(ctx); n == 0 || err != nil || looks == 0 {
			t.Errorf("%d, %v after %d looks", n, err, looks)
		}
	}
}

// TestW23_RealLogIsTruncatedAlthoughTheContextEnded: the log itself heeds contexts.
func TestW23_RealLogIsTruncatedAlthoughTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newLogRig(t, abc(), wal.ConsumerConfig{}, func(context.Context, []wal.Record) (wal.Result, error) {
		cancel()
		return wal.Result{Through: 3}, nil
	})
	if n, err := r.Drain(ctx); n != 3 || err != nil { // all there was is delivered: the end of ctx changes nothing
		t.Errorf("%d, %v", n, err)
	}
	r.wantAt(t, 3)
}

// TestW23_SettlingHasATimeLimit: what the end of ctx cannot stop must not wait for ever.
func TestW23_SettlingHasATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ wal.Record, _ error) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		r := newRig(t, abc(), wal.ConsumerConfig{
			Policy: wal.DeadLetterRejected, DeadLetter: hang, SettleTimeout: time.Minute,
		}, refusing(0, 1))
		if err := r.wantNext(t, 0, wal.ErrDeadLetter); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

func TestW24_AcknowledgementFails(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		own := &cursor{lacks: 9, err: errBroken}
		r := rigged(t, abc(), wal.ConsumerConfig{Acknowledger: own}, through(2), through(2), through(2))
		err := r.wantNext(t, 0, wal.ErrAcknowledge)
		if !errors.Is(err, errBroken) || err.Error() != "consume: "+wal.ErrAcknowledge.Error() {
			t.Error(err)
		}
		if err := r.Run(t.Context()); !errors.Is(err, wal.ErrAcknowledge) {
			t.Errorf("run: %v", err)
		}
		if s := r.Stats(); s.Delivered != 0 || s.Failures != 2 || s.Head != 1 {
			t.Errorf("%+v", s)
		}
		own.err = nil
		r.wantNext(t, 2, nil)
		r.wantNext(t, 1, nil)
		r.wantOffered(t, "1=a 2=b 3=c", "1=a 2=b 3=c", "1=a 2=b 3=c", "3=c")
	})
}

// TestW24_FailureAfterCancellationIsNotHidden: Run ends with what must be looked at.
func TestW24_FailureAfterCancellationIsNotHidden(t *testing.T) {
	for want, answer := range map[error]wal.SenderFunc{
		wal.ErrAcknowledge:       through(3),
		wal.ErrInvalidSendResult: through(9),
		wal.ErrPanic:             func(context.Context, []wal.Record) (wal.Result, error) { panic("boom") },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRig(t, abc(), wal.ConsumerConfig{Acknowledger: &cursor{lacks: 9, err: errBroken}},
			func(ctx context.Context, records []wal.Record) (wal.Result, error) {
				cancel()
				return answer(ctx, records)
			})
		if err := r.Run(ctx); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// order is a rig whose callbacks note their order.
func order(t *testing.T, policy wal.Policy, answers ...wal.SenderFunc) (*rig, func() []string) {
	var handled []string
	cfg := wal.ConsumerConfig{Policy: policy}
	var r *rig
	if policy == wal.DeadLetterRejected {
		cfg.DeadLetter = func(_ context.Context, record wal.Record, reason error) error {
			if !errors.Is(reason, errReason) {
				t.Errorf("reason %v", reason)
			}
			return r.fake.enter("handler", " "+record.ID)
		}
	}
	r = newRig(t, abc(), cfg, answers...)
	return r, func() []string {
		for _, call := range r.fake.did() {
			if call[0] == 't' || call[0] == 'h' {
				handled = append(handled, call)
			}
		}
		return handled
	}
}

func TestW25_PolicyStop(t *testing.T) {
	r, did := order(t, wal.StopOnRejection, refusing(2, 3), refusing(0, 3), through(3))
	if err := r.wantNext(t, 2, wal.ErrPermanentRejection); !errors.Is(err, errReason) {
		t.Error(err)
	}
	want := wal.Stats{Delivered: 2, PermanentRejections: 1, Failures: 1, Head: 3, HeadAttempts: 1}
	got := r.Stats()
	if got.HeadSince = (time.Time{}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := r.Run(t.Context()); !errors.Is(err, wal.ErrPermanentRejection) {
		t.Errorf("run: %v", err)
	}
	if got := did(); !slices.Equal(got, []string{"truncate 2 1"}) {
		t.Errorf("called %q", got)
	}
	r.wantNext(t, 1, nil) // the cause is gone
	r.wantOffered(t, "1=a 2=b 3=c", "3=c", "3=c")
	if s := r.Stats(); s.PermanentRejections != 1 || s.Delivered != 3 || s.Head != 0 {
		t.Errorf("%+v", s)
	}
}

func TestW26_PolicyDeadLetterOrder(t *testing.T) {
	r, did := order(t, wal.DeadLetterRejected, refusing(1, 2))
	r.wantNext(t, 2, nil)
	if got := did(); !slices.Equal(got, []string{"truncate 1 1", "handler id-2", "truncate 2 1"}) {
		t.Errorf("called %q", got)
	}
	if s, want := r.Stats(), (wal.Stats{Delivered: 1, DeadLettered: 1, PermanentRejections: 1}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// TestW26_ReasonIsNeverNil: a handler may show it.
func TestW26_ReasonIsNeverNil(t *testing.T) {
	r := newRig(t, abc(), wal.ConsumerConfig{Policy: wal.DeadLetterRejected,
		DeadLetter: func(_ context.Context, _ wal.Record, reason error) error {
			if !errors.Is(reason, wal.ErrPermanentRejection) {
				t.Errorf("reason %v", reason)
			}
			return nil
		}}, func(context.Context, []wal.Record) (wal.Result, error) {
		return wal.Result{Rejected: &wal.Rejection{Position: 1}}, nil
	})
	r.wantNext(t, 1, nil)
}

func TestW27_HandlerFailsAndIsCalledAgain(t *testing.T) {
	r, did := order(t, wal.DeadLetterRejected, refusing(1, 2), refusing(0, 2), refusing(0, 2))
	r.fake.on["handler"] = func() error { return errBroken }
	if err := r.wantNext(t, 1, wal.ErrDeadLetter); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	r.wantNext(t, 0, wal.ErrDeadLetter)
	if s := r.Stats(); s.PermanentRejections != 1 || s.DeadLettered != 0 || s.Head != 2 || s.HeadAttempts != 2 {
		t.Errorf("%+v", s)
	}
	r.fake.on["handler"] = nil
	r.wantNext(t, 1, nil)
	want := []string{"truncate 1 1", "handler id-2", "handler id-2", "handler id-2", "truncate 2 1"}
	if got := did(); !slices.Equal(got, want) {
		t.Errorf("called %q", got)
	}
	if s := r.Stats(); s.PermanentRejections != 1 || s.DeadLettered != 1 || s.Failures != 2 {
		t.Errorf("%+v", s)
	}
}

func TestW28_DispositionSucceedsButTruncationFails(t *testing.T) {
	r, did := order(t, wal.DeadLetterRejected, refusing(1, 2), refusing(0, 2))
	truncations := 0
	r.fake.on["truncate"] = func() error {
		if truncations++; truncations == 2 {
			return errBroken
		}
		return nil
	}
	err := r.wantNext(t, 1, wal.ErrDisposed)
	if !errors.Is(err, errBroken) || err.Error() != "consume: "+wal.ErrDisposed.Error() {
		t.Error(err)
	}
	if s := r.Stats(); s.DeadLettered != 0 || s.Delivered != 1 || s.Head != 2 {
		t.Errorf("%+v", s)
	}
	c := mustConsume(t, wal.ConsumerConfig{Source: r.fake, Sender: r.down, Policy: wal.DeadLetterRejected,
		DeadLetter: func(_ context.Context, record wal.Record, _ error) error {
			return r.fake.enter("handler", " "+record.ID)
		}})
	if n, err := c.Next(t.Context()); n != 1 || err != nil {
		t.Errorf("after a restart: %d, %v", n, err)
	}
	want := []string{"truncate 1 1", "handler id-2", "truncate 2 1", "handler id-2", "truncate 2 1"}
	if got := did(); !slices.Equal(got, want) {
		t.Errorf("called %q", got)
	}
}

func TestW29_PolicyDiscard(t *testing.T) {
	r, did := order(t, wal.DiscardRejected, refusing(1, 2))
	r.wantNext(t, 2, nil)
	if got := did(); !slices.Equal(got, []string{"truncate 1 1", "truncate 2 1"}) {
		t.Errorf("called %q", got)
	}
	if s := r.Stats(); s.Delivered != 1 || s.Discarded != 1 || s.PermanentRejections != 1 || s.DeadLettered != 0 {
		t.Errorf("%+v", s)
	}
	r.wantNext(t, 1, nil)
	r.wantOffered(t, "1=a 2=b 3=c", "3=c")
}
