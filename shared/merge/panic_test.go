package merge_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
)

func TestC7_B1_5_PanicOfTheStoreFailsItsOwnEventsAndReleasesThem(t *testing.T) {
	for _, method := range []mergetest.Method{mergetest.PutClaims, mergetest.Commit, mergetest.FindRecord, mergetest.Abort,
		mergetest.TakeClaim, mergetest.Release} {
		for name, applied := range map[string]bool{"before": false, "after": true} {
			t.Run(string(method)+" "+name, func(t *testing.T) {
				s := mergetest.New(t)
				events := numbered(3)
				abortAs(t, s, hold(t, s, "e1")) // so that e1 must be taken over
				hold(t, s, "e2")
				s.Clock.Advance(time.Hour) // and e2's attempt aborted
				panicked := false
				s.Fault = func(c mergetest.Call) mergetest.Fault {
					commitFails := method == mergetest.Release && c.Method == mergetest.Commit
					if c.Method == method && !panicked {
						panicked = true
						return mergetest.Fault{Panic: "boom", Applied: applied}
					}
					if commitFails {
						return before
					}
					return mergetest.Fault{}
				}
				m := newMerger(t, s)
				got := m.MergeMany(t.Context(), events)
				if !panicked {
					t.Fatal("the call was never made")
				}
				mergetest.AuditSoFar(t, s.Snapshot(), events)
				s.Fault = nil
				s.Clock.Advance(time.Hour)
				for i, o := range m.MergeMany(t.Context(), events) {
					wantReason(t, got[i])
					if !o.Done() || got[i].Done() && o.Status != merge.Duplicate {
						t.Errorf("event %d: %v, then %v", i, got[i], o)
					}
				}
				mergetest.Audit(t, s.Snapshot(), events)
			})
		}
	}
}

func TestC7_PanicInOneChunkLeavesTheOthersAlone(t *testing.T) {
	s := mergetest.New(t)
	events := numbered(250) // three chunks
	s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.Commit: {{Panic: errors.New("boom")}}})
	m := newMerger(t, s)
	failed := 0
	for _, o := range m.MergeMany(t.Context(), events) {
		if !o.Done() {
			failed++
			var panicked *merge.PanicError
			if !errors.As(o.Err, &panicked) || len(panicked.Stack) == 0 {
				t.Fatalf("%v", o)
			}
		}
	}
	if failed == 0 || failed > merge.MaxAdds {
		t.Errorf("%d events failed; one chunk of three should", failed)
	}
	mergetest.AuditReleased(t, s.Snapshot(), events)
	for _, o := range m.MergeMany(t.Context(), events) {
		if !o.Done() {
			t.Fatalf("redelivery: %v", o)
		}
	}
	mergetest.Audit(t, s.Snapshot(), events)
}

// wild panics wherever it is called.
type wild struct{}

func (wild) Count(string, int, error)                       { panic("recorder") }
func (wild) Observe(string, time.Duration)                  { panic("recorder") }
func (wild) Gain(context.Context, []merge.SlottedAdd) error { panic("cache") }
func (wild) Uint64() uint64                                 { panic("rand") }

func TestC7_PanicOfARecorderOrCacheChangesNothing(t *testing.T) {
	s := mergetest.New(t)
	m := newMerger(t, s, func(c *merge.Config) { c.Recorder, c.Cache = wild{}, wild{} })
	wantAll(t, m.MergeMany(t.Context(), numbered(250)), merge.Counted)
	mergetest.Audit(t, s.Snapshot(), numbered(250))
}

func TestC7_PanicOfAClockOrTokenSourceFailsTheChunk(t *testing.T) {
	for name, change := range map[string]func(*merge.Config){
		"now":         func(c *merge.Config) { c.Now = func() time.Time { panic("now") } },
		"token":       func(c *merge.Config) { c.NewToken = func() merge.Token { panic("token") } },
		"empty token": func(c *merge.Config) { c.NewToken = func() merge.Token { return "" } },
	} {
		s := mergetest.New(t)
		got := newMerger(t, s, change).MergeMany(t.Context(), numbered(250))
		wantAll(t, got, merge.Failed)
		var panicked *merge.PanicError
		if errors.As(got[0].Err, &panicked) != (name != "empty token") {
			t.Errorf("%s: %v", name, got[0].Err)
		}
		if s.Calls(mergetest.PutClaims) != 0 {
			t.Errorf("%s: claims were put", name)
		}
	}
	for name, change := range map[string]func(*merge.Config){
		"sleep": func(c *merge.Config) { c.Sleep = func(context.Context, time.Duration) error { panic("sleep") } },
		"rand":  func(c *merge.Config) { c.Rand = wild{} },
	} {
		s := mergetest.New(t)
		s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.Commit: {before}})
		got := newMerger(t, s, change).MergeMany(t.Context(), onOneKey(5))
		wantAll(t, got, merge.Failed)
		if len(s.Snapshot().Claims) != 0 {
			t.Errorf("%s: claims are left behind: %v", name, s.Snapshot().Claims)
		}
	}
}

func TestC7_WorkerThatPanicsEndsNoOther(t *testing.T) {
	for _, n := range []int{1, 100} {
		called := make([]bool, n)
		merge.Wide(n, 8, func(_, i int) {
			called[i] = true
			panic(i)
		})
		if slices.Contains(called, false) {
			t.Errorf("%d calls: %v", n, called)
		}
	}
}

// mute puts claims and answers none.
type mute struct{ *mergetest.Worker }

func (s mute) PutClaims(ctx context.Context, claims []merge.Claim) []merge.ClaimReply {
	s.Worker.PutClaims(ctx, claims)
	return nil
}

// undecided answers Commit and Abort without an error and without a record.
type undecided struct{ *mergetest.Worker }

func (undecided) Commit(context.Context, merge.Attempt) (merge.Record, error) {
	return merge.Record{}, nil
}
func (undecided) Abort(context.Context, merge.Token, time.Time) (merge.Record, error) {
	return merge.Record{State: 7}, nil
}

func TestStore_AnswersThatBreakTheContractCountNothingAsDone(t *testing.T) {
	s := mergetest.New(t)
	wantAll(t, newMerger(t, mute{s.Worker}).MergeMany(t.Context(), numbered(3)), merge.Failed)
	if left := s.Snapshot().Claims; len(left) != 0 {
		t.Errorf("claims that were not answered are left behind: %v", left)
	}
	wantAll(t, newMerger(t, undecided{s.Worker}).MergeMany(t.Context(), numbered(3)), merge.Failed)
	if left := s.Snapshot().Claims; len(left) != 3 {
		t.Errorf("claims of an attempt without a record were given back; left are %v", left)
	}
}
