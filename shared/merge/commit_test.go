package merge_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

func TestB1_10_CommitOfUnknownOutcomeIsRepeatedAndCountsOnce(t *testing.T) {
	for name, faults := range map[string][]mergetest.Fault{
		"lost reply": {after}, "lost twice": {after, after}, "refused, then lost": {before, after},
		"lands between": {{Err: mergetest.ErrInjected, Late: 1}}, "lost each time": times(3, after),
	} {
		s := mergetest.New(t)
		s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.Commit: faults})
		events := []tally.Event{event("e", "a", "b")}
		wantAll(t, newMerger(t, s).MergeMany(t.Context(), events), merge.Counted)
		s.Land()
		mergetest.Audit(t, s.Snapshot(), events)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestP8_FailedMergeGivesTheClaimBack(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.Commit: times(3, before)})
	m := newMerger(t, s, recordTo(h))
	events := []tally.Event{event("e", "a", "b")}
	wantAll(t, m.MergeMany(t.Context(), events), merge.Failed)
	wantCalls(t, s, map[mergetest.Method]int{
		mergetest.PutClaims: 1, mergetest.Commit: 3, mergetest.Abort: 1, mergetest.Release: 1,
	})
	if len(s.Snapshot().Claims) != 0 {
		t.Errorf("claims %v", s.Snapshot().Claims)
	}
	h.want(t, map[string]int{merge.MetricFailed: 1, merge.MetricRetry: 2, merge.MetricRelease: 1})
	wantAll(t, m.MergeMany(t.Context(), events), merge.Counted)
	mergetest.Audit(t, s.Snapshot(), events)
}

func TestP10_B1_8_NoEventIsAppliedInPart(t *testing.T) {
	s := mergetest.New(t)
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		if c.Method == mergetest.Commit {
			return mergetest.ConflictOn(c, func(add merge.SlottedAdd) bool { return add.Cell == cell("b") })
		}
		return mergetest.Fault{}
	}
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), []tally.Event{event("e", "a", "b", "c")}), merge.Failed)
	if total(s, "a") != 0 || total(s, "c") != 0 {
		t.Errorf("a=%d c=%d, though b could not be moved", total(s, "a"), total(s, "c"))
	}
}

func TestB3_ConflictIsRetriedOnAnotherSlotWhichIsRemembered(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	hot := mergetest.Row{Cell: cell("a")}
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		if c.Method == mergetest.Commit {
			return mergetest.ConflictOn(c, func(add merge.SlottedAdd) bool {
				return mergetest.Row{Cell: add.Cell, Slot: add.Slot} == hot
			})
		}
		return mergetest.Fault{}
	}
	m := newMerger(t, s, recordTo(h))
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a", "b")}), merge.Counted)
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("f", "a", "b")}), merge.Counted)
	h.want(t, map[string]int{merge.MetricMerged: 2, merge.MetricConflict: 1, merge.MetricRetry: 1})
	rows := s.Snapshot().Rows
	if _, ok := rows[hot]; ok || rows[mergetest.Row{Cell: cell("b")}].N != tally.SumOf(2) || total(s, "a") != 2 {
		t.Errorf("rows %v; only the contended counter moves away", rows)
	}
}

func TestB3_ThreeConflictsThenSuccess(t *testing.T) {
	s := mergetest.New(t)
	s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.Commit: {
		{Err: &merge.ConflictError{Adds: []int{0}}}, {Err: &merge.ConflictError{Adds: []int{0}, Record: true}},
		{Err: fmt.Errorf("wrapped: %w", &merge.ConflictError{Adds: []int{-1, 7}})},
	}})
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Counted)
	if total(s, "a") != 1 {
		t.Errorf("a=%d", total(s, "a"))
	}
}

func TestB3_ConflictsWithoutEndFailTheChunkAndReleaseIt(t *testing.T) {
	s := mergetest.New(t)
	s.Fault = always(mergetest.Commit, mergetest.Fault{Err: &merge.ConflictError{Adds: []int{0}}})
	wantAll(t, newMerger(t, s, func(c *merge.Config) { c.Slots = 1 }).MergeMany(t.Context(), numbered(1)), merge.Failed)
	if n := s.Calls(mergetest.Commit); n != merge.DefaultContended {
		t.Errorf("%d commits", n)
	}
	mergetest.AuditReleased(t, s.Snapshot(), numbered(1))
}

// refuse is a Fault that refuses every add to the counters of keys.
func refuse(keys ...string) func(mergetest.Call) mergetest.Fault {
	return func(c mergetest.Call) mergetest.Fault {
		if c.Method != mergetest.Commit {
			return mergetest.Fault{}
		}
		return mergetest.RefuseOn(c, func(add merge.SlottedAdd) bool { return slices.Contains(keys, add.Cell.Key) })
	}
}

func TestC4_RefusedAddTakesOnlyItsOwnEventsOut(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	s.Fault = refuse("bad", "worse")
	events := []tally.Event{
		event("e0", "a"), event("e1", "a", "bad"), event("e2", "b"), event("e3", "worse"), event("e4", "bad", "b"),
	}
	m := newMerger(t, s, recordTo(h))
	got := m.MergeMany(t.Context(), events)
	want := []merge.Status{merge.Counted, merge.Refused, merge.Counted, merge.Refused, merge.Refused}
	if !slices.Equal(statuses(got), want) {
		t.Fatalf("%v, want %v", got, want)
	}
	wantIs(t, got[1].Err, mergetest.ErrInjected)
	h.want(t, map[string]int{merge.MetricMerged: 2, merge.MetricDeadLetter: 3, merge.MetricRelease: 3})
	wantCalls(t, s, map[mergetest.Method]int{mergetest.PutClaims: 1, mergetest.Commit: 2, mergetest.Release: 3})

	s.Fault = nil // the row is mended, and the parked records are replayed
	got = m.MergeMany(t.Context(), events)
	want = []merge.Status{merge.Duplicate, merge.Counted, merge.Duplicate, merge.Counted, merge.Counted}
	if !slices.Equal(statuses(got), want) {
		t.Errorf("replay: %v, want %v", got, want)
	}
	mergetest.Audit(t, s.Snapshot(), events)
}

func TestC4_EveryEventRefusedReleasesAllAndCommitsNothing(t *testing.T) {
	s := mergetest.New(t)
	s.Fault = refuse("bad")
	events := []tally.Event{event("e0", "bad"), event("e1", "bad", "a")}
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), events), merge.Refused)
	if snap := s.Snapshot(); len(snap.Claims) != 0 || len(snap.Rows) != 0 {
		t.Errorf("left behind: %v %v", snap.Claims, snap.Rows)
	}
}

func TestC4_RefusalAfterAnUnknownOutcomeAbortsInsteadOfCommittingLess(t *testing.T) {
	// The first commit may land late, with all events, once the bad row is mended. One with fewer events under the same
	// token could then be answered by it.
	for name, first := range map[string]mergetest.Fault{
		"not applied": before, "landing later": {Err: mergetest.ErrInjected, Late: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := mergetest.New(t)
			commits := 0
			s.Fault = func(c mergetest.Call) mergetest.Fault {
				if c.Method != mergetest.Commit {
					return mergetest.Fault{}
				}
				if commits++; commits == 1 {
					return first
				}
				return refuse("bad")(c)
			}
			events := []tally.Event{event("e0", "a"), event("e1", "bad")}
			m := newMerger(t, s)
			got := m.MergeMany(t.Context(), events)
			if !slices.Equal(statuses(got), []merge.Status{merge.Failed, merge.Failed}) || commits != 2 {
				t.Errorf("%v after %d commits", got, commits)
			}
			s.Land()
			mergetest.AuditSoFar(t, s.Snapshot(), events)
			got = m.MergeMany(t.Context(), events)
			if !slices.Equal(statuses(got), []merge.Status{merge.Counted, merge.Refused}) {
				t.Errorf("redelivery: %v", got)
			}
		})
	}
}

func TestC4_RefusedEventOfAnUndecidedAttemptIsOnlyFailed(t *testing.T) {
	s := mergetest.New(t)
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		if c.Method == mergetest.Abort {
			return before
		}
		return refuse("bad")(c)
	}
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), []tally.Event{event("e", "bad")}), merge.Failed)
}

func TestCommit_RefusalThatNamesNoAddFailsTheChunk(t *testing.T) {
	s := mergetest.New(t)
	refusal := &merge.RefusedError{Adds: []int{99, -1}, Cause: errors.New("strange")}
	s.Fault = always(mergetest.Commit, mergetest.Fault{Err: refusal})
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), numbered(2)), merge.Failed)
	if n := s.Calls(mergetest.Commit); n != 1 {
		t.Errorf("%d commits", n)
	}
}

func TestCommit_ExceptionsAtTheLimitAndOnePast(t *testing.T) {
	for _, unknown := range []int{merge.MaxExcept, merge.MaxExcept + 1} {
		s := mergetest.New(t)
		var events []tally.Event
		for i := range unknown + 5 {
			events = append(events, event(fmt.Sprint("e", i), "a"))
		}
		var ids []string
		for _, e := range events[:unknown] {
			ids = append(ids, e.ID)
		}
		faulty := true
		s.Fault = func(c mergetest.Call) mergetest.Fault {
			if faulty && c.Method == mergetest.PutClaims {
				return mergetest.Fault{Err: mergetest.ErrInjected, Late: 1 << 20, Events: ids}
			}
			return mergetest.Fault{}
		}
		m := newMerger(t, s)
		got := m.MergeMany(t.Context(), events)
		wantAll(t, got[:unknown], merge.Failed)
		want := merge.Counted
		if unknown > merge.MaxExcept {
			want = merge.Failed
		}
		wantAll(t, got[unknown:], want)
		s.Land()
		faulty = false
		for _, o := range m.MergeMany(t.Context(), events) {
			if !o.Done() {
				t.Fatalf("redelivery: %v", o)
			}
		}
		mergetest.Audit(t, s.Snapshot(), events)
	}
}

func TestCommit_KnownDuplicatesNeedNoException(t *testing.T) {
	s := mergetest.New(t)
	events := make([]tally.Event, 300)
	for i := range events {
		events[i] = event(fmt.Sprint("e", i), "a")
	}
	m := newMerger(t, s)
	m.MergeMany(t.Context(), events[:299])
	got := m.MergeMany(t.Context(), events)
	wantAll(t, got[:299], merge.Duplicate)
	wantAll(t, got[299:], merge.Counted)
}

func TestCommit_AbortedByAnotherFailsAndReleasesOnlyOurs(t *testing.T) {
	s := mergetest.New(t)
	events := []tally.Event{event("e0", "a"), event("e1", "a")}
	commits := 0
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		if c.Method == mergetest.Commit && c.Worker == "" && commits == 0 {
			commits++ // before our commit arrives, another process takes e0 over
			abortAs(t, s, c.Token)
			claim := merge.Claim{Event: "e0", Token: "thief", Lease: s.Now(), Expires: s.Now()}
			if _, err := s.NewWorker("other").TakeClaim(t.Context(), claim, c.Token); err != nil {
				t.Error(err)
			}
		}
		return mergetest.Fault{}
	}
	silent := mergetest.New(silentTB{}) // the process above need not be as careful as ours
	silent.Fault, s = s.Fault, silent
	got := newMerger(t, s).MergeMany(t.Context(), events)
	wantAll(t, got, merge.Failed)
	wantIs(t, got[0].Err, merge.ErrTakenOver)
	if _, ok := s.Snapshot().Claims["e1"]; ok {
		t.Error("our claim on e1 is left behind")
	}
	if total(s, "a") != 0 {
		t.Errorf("a=%d", total(s, "a"))
	}
}
