package merge_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
)

// hold lets another process claim events and stay at work, for as long as its lease of a minute lasts.
func hold(t *testing.T, s *mergetest.Store, ids ...string) merge.Token {
	t.Helper()
	return holdAs(t, s, merge.Token("other of "+ids[0]), "", ids...)
}

func holdAs(t *testing.T, s *mergetest.Store, token merge.Token, serial string, ids ...string) merge.Token {
	t.Helper()
	var claims []merge.Claim
	for _, id := range ids {
		claims = append(claims, merge.Claim{
			Event: id, Token: token, Serial: serial, Lease: s.Now().Add(time.Minute), Expires: s.Now().Add(40 * time.Hour),
		})
	}
	for _, reply := range s.NewWorker("other").PutClaims(t.Context(), claims) {
		if reply.Err != nil || reply.Standing.Token != token {
			t.Fatalf("other process: %v", reply)
		}
	}
	return token
}

// commitAs lets the other process commit "a" for all that it holds but except.
func commitAs(t *testing.T, s *mergetest.Store, token merge.Token, n int64, except ...string) merge.Record {
	t.Helper()
	record, err := s.NewWorker("other").Commit(t.Context(), merge.Attempt{
		Token: token, Adds: []merge.SlottedAdd{{Cell: cell("a"), Delta: tally.SumOf(n)}}, Except: except,
		Expires: s.Now().Add(80 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func abortAs(t *testing.T, s *mergetest.Store, token merge.Token) {
	t.Helper()
	if _, err := s.NewWorker("other").Abort(t.Context(), token, s.Now().Add(80*time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func TestB1_6_B1_7_LostReplyOfAClaimIsRecognisedAsOurs(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	s.Fault = script(map[mergetest.Method][]mergetest.Fault{mergetest.PutClaims: {after, after}})
	wantAll(t, newMerger(t, s, recordTo(h)).MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Counted)
	if total(s, "a") != 1 || s.Calls(mergetest.TakeClaim) != 0 {
		t.Errorf("a=%d, %d takeovers", total(s, "a"), s.Calls(mergetest.TakeClaim))
	}
	h.want(t, map[string]int{merge.MetricMerged: 1, merge.MetricRetry: 2})
}

func TestP6_ClaimOfUnknownFateFailsClosed(t *testing.T) {
	for name, fault := range map[string]mergetest.Fault{"not applied": before, "applied": after, "landing later": late} {
		t.Run(name, func(t *testing.T) {
			s := mergetest.New(t)
			faulty := true
			s.Fault = func(c mergetest.Call) mergetest.Fault {
				if f := fault; faulty && c.Method == mergetest.PutClaims {
					f.Events = []string{"e1"}
					return f
				}
				return mergetest.Fault{}
			}
			events := []tally.Event{event("e0", "a"), event("e1", "a"), event("e2", "a")}
			m := newMerger(t, s)
			got := m.MergeMany(t.Context(), events)
			if want := []merge.Status{merge.Counted, merge.Failed, merge.Counted}; !slices.Equal(statuses(got), want) {
				t.Fatalf("%v, want %v", statuses(got), want)
			}
			s.Land() // the row of e1 now names an attempt that committed without it
			faulty = false
			if got := m.MergeMany(t.Context(), events); !slices.Equal(statuses(got),
				[]merge.Status{merge.Duplicate, merge.Counted, merge.Duplicate}) {
				t.Errorf("redelivery: %v", got)
			}
			mergetest.Audit(t, s.Snapshot(), events)
		})
	}
}

func TestP7_ClaimOfAnotherIsNeverReleased(t *testing.T) {
	s := mergetest.New(t)
	token := hold(t, s, "e0")
	s.Fault = always(mergetest.Commit, before)
	newMerger(t, s).MergeMany(t.Context(), []tally.Event{event("e0", "a"), event("e1", "a")})
	if claim := s.Snapshot().Claims["e0"]; claim.Token != token {
		t.Errorf("the other's claim is now %v", claim)
	}
	if n := s.Calls(mergetest.Release); n != 1 {
		t.Errorf("%d releases; only e1 was ours", n)
	}
}

func TestA4_EventHeldByALiveAttemptIsInFlightAndNeverADuplicate(t *testing.T) {
	s, h := mergetest.New(t), new(heard)
	token := hold(t, s, "e")
	m := newMerger(t, s, recordTo(h))
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.InFlight)
	h.want(t, map[string]int{merge.MetricInFlight: 1})
	wantCalls(t, s, map[mergetest.Method]int{mergetest.PutClaims: 2, mergetest.FindRecord: 1})

	abortAs(t, s, token) // its merge fails, and the crash comes before its release
	wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Counted)
	if total(s, "a") != 1 {
		t.Errorf("a=%d", total(s, "a"))
	}
}

func TestA2_EventOfADeadAttemptIsTakenOverOnceItsLeaseEnds(t *testing.T) {
	for name, slow := range map[string]bool{"crashed": false, "only slow": true} {
		t.Run(name, func(t *testing.T) {
			s, h := mergetest.New(t), new(heard)
			token := hold(t, s, "e")
			m := newMerger(t, s, recordTo(h))
			s.Clock.Advance(time.Minute - time.Second)
			wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.InFlight)
			s.Clock.Advance(time.Second)
			wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Counted)
			if slow {
				if record := commitAs(t, s, token, 1); record.State != merge.Aborted {
					t.Errorf("the slow attempt committed: %v", record)
				}
			}
			if total(s, "a") != 1 || h.counts[merge.MetricTakeover] != 1 {
				t.Errorf("a=%d, recorded %v", total(s, "a"), h.counts)
			}
		})
	}
}

func TestClaim_AbortThatFindsACommitMakesADuplicate(t *testing.T) {
	s := mergetest.New(t)
	token := hold(t, s, "counted", "excepted")
	s.Clock.Advance(2 * time.Minute)
	s.Fault = func(c mergetest.Call) mergetest.Fault {
		if c.Method == mergetest.Abort && c.Worker == "" && s.Calls(mergetest.Abort) == 1 {
			commitAs(t, s, token, 1, "excepted") // the slow attempt commits between our look and our abort
		}
		return mergetest.Fault{}
	}
	got := newMerger(t, s).MergeMany(t.Context(), []tally.Event{event("counted", "a"), event("excepted", "a")})
	if want := []merge.Status{merge.Duplicate, merge.Counted}; !slices.Equal(statuses(got), want) {
		t.Errorf("%v, want %v", statuses(got), want)
	}
	if total(s, "a") != 2 {
		t.Errorf("a=%d", total(s, "a"))
	}
}

func TestClaim_SameSerialSourceDoesNotWaitForTheLease(t *testing.T) {
	for _, tt := range []struct {
		held, ours string
		want       merge.Status
	}{
		{"shard-1", "shard-1", merge.Counted}, {"shard-1", "shard-2", merge.InFlight}, {"", "", merge.InFlight},
		{"", "shard-1", merge.InFlight}, {"shard-1", "", merge.InFlight},
	} {
		s := mergetest.New(t)
		token := holdAs(t, s, "other", tt.held, "e")
		e := event("e", "a")
		e.Serial = tt.ours
		if got := newMerger(t, s).MergeOne(t.Context(), e); got.Status != tt.want {
			t.Errorf("held by %q, delivered by %q: %v, want status %d", tt.held, tt.ours, got, tt.want)
		}
		if late := commitAs(t, s, token, 1); total(s, "a") != 1 {
			t.Errorf("a=%d after the first attempt's late commit, %v", total(s, "a"), late)
		}
	}
}

func TestA2_LeaseAtItsEndAndOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mergetest.New(t)
		hold(t, s, "e")
		s.Clock.Advance(time.Minute - 1)
		wantAll(t, []merge.Outcome{newMerger(t, s).MergeOne(t.Context(), event("e", "a"))}, merge.InFlight)
		s.Clock.Advance(1)
		wantAll(t, []merge.Outcome{newMerger(t, s).MergeOne(t.Context(), event("e", "a"))}, merge.Counted)
	})
}

func TestP7_TakeoverThatWasNeverSentIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mergetest.New(t)
		events := onOneKey(5)
		abortAs(t, s, hold(t, s, "e0", "e1", "e2", "e3", "e4"))
		s.Fault = always(mergetest.TakeClaim, mergetest.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantAll(t, newMerger(t, s, func(c *merge.Config) { c.Workers = 1 }).MergeMany(ctx, events), merge.Failed)
		wantCalls(t, s, map[mergetest.Method]int{ // the other process's two calls are among them
			mergetest.PutClaims: 2, mergetest.Abort: 2, mergetest.FindRecord: 1, mergetest.TakeClaim: 1, mergetest.Release: 1,
		})
	})
}

func TestA2_LeaseOfAWrongClockIsNotWaitedFor(t *testing.T) {
	for skew, want := range map[time.Duration]merge.Status{
		30 * time.Second: merge.InFlight, 24 * time.Hour: merge.Counted, -24 * time.Hour: merge.Counted,
	} {
		s := mergetest.New(t)
		claims := []merge.Claim{{
			Event: "e", Token: "other", Lease: s.Now().Add(15*time.Minute + skew), Expires: s.Now().Add(900 * time.Hour),
		}}
		s.NewWorker("other").PutClaims(t.Context(), claims)
		if got := newMerger(t, s).MergeOne(t.Context(), event("e", "a")); got.Status != want {
			t.Errorf("written by a clock that is %v ahead: %v, want status %d", skew, got, want)
		}
	}
}

func TestClaim_OneReadOfARecordServesAllEventsOfItsAttempt(t *testing.T) {
	s := mergetest.New(t)
	events := numbered(400, "a")
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	token := hold(t, s, ids...)
	s.Clock.Advance(time.Hour)
	wantAll(t, newMerger(t, s).MergeMany(t.Context(), events), merge.Counted)
	chunks := s.Calls(mergetest.Commit)
	if reads, aborts := s.Calls(mergetest.FindRecord), s.Calls(mergetest.Abort); reads > chunks || aborts > chunks {
		t.Errorf("%d reads and %d aborts of one record for %d chunks", reads, aborts, chunks)
	}
	if record := commitAs(t, s, token, 400); record.State != merge.Aborted {
		t.Errorf("the first attempt is %v", record)
	}
	mergetest.Audit(t, s.Snapshot(), events)
}

// Rows past their expiry stand until DynamoDB deletes them, days late. Whatever became of their attempt, the event is
// counted by the one call that meets them: the attempt is aborted first if it is undecided, and the row changes hands.
func TestA7_ClaimPastItsExpiryCountsAsAbsentButItsAttemptIsAbortedFirst(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(*testing.T, *mergetest.Store, merge.Token)
		state  merge.State
		aborts int
	}{
		"undecided, or its record is deleted": {func(*testing.T, *mergetest.Store, merge.Token) {}, merge.Aborted, 1},
		"aborted":                             {abortAs, merge.Aborted, 1}, // by the other process itself
		"counted": {func(t *testing.T, s *mergetest.Store, token merge.Token) {
			commitAs(t, s, token, 1)
		}, merge.Committed, 0},
		"excepted": {func(t *testing.T, s *mergetest.Store, token merge.Token) {
			commitAs(t, s, token, 1, "e")
		}, merge.Committed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := mergetest.New(t)
			token := hold(t, s, "e")
			test.end(t, s, token)
			s.Clock.Advance(40 * time.Hour) // to the expiry
			count := total(s, "a")
			m := newMerger(t, s)
			wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Counted)
			if record, _ := s.FindRecord(t.Context(), token); record.State != test.state {
				t.Errorf("the attempt of the expired claim is %v, want state %d", record, test.state)
			}
			if n := s.Calls(mergetest.Abort); n != test.aborts || s.Calls(mergetest.TakeClaim) != 1 {
				t.Errorf("%d aborts and %d takeovers, want %d and 1", n, s.Calls(mergetest.TakeClaim), test.aborts)
			}
			wantAll(t, m.MergeMany(t.Context(), []tally.Event{event("e", "a")}), merge.Duplicate)
			if got := total(s, "a"); got != count+1 {
				t.Errorf("a=%d, want %d", got, count+1)
			}
		})
	}
}

// A clock that is ahead by more than the horizon takes every claim for expired, also that of an attempt which stands
// right before its commit. Whichever way the two meet, one of them counts the event.
func TestA7_ClockAheadByMoreThanTheHorizonDoesNotCountAnAttemptUnderWayTwice(t *testing.T) {
	const horizon, ahead = time.Hour, 2 * time.Hour
	for name, offsets := range map[string][2]time.Duration{
		"the second is ahead": {0, ahead}, "the first is behind": {-ahead, 0}, "the first is ahead": {ahead, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := mergetest.New(t)
			first, second := s.NewWorker("first"), s.NewWorker("second")
			on := func(w *mergetest.Worker, offset time.Duration) *merge.Merger {
				return newMerger(t, w, func(c *merge.Config) {
					c.Horizon, c.Now = horizon, func() time.Time { return s.Now().Add(offset) }
				})
			}
			events := []tally.Event{event("e", "a"), event("f", "a", "b")}
			var met []merge.Outcome
			s.Fault = func(c mergetest.Call) mergetest.Fault {
				if c.Worker == "first" && c.Method == mergetest.Commit && met == nil {
					met = on(second, offsets[1]).MergeMany(t.Context(), events)
				}
				return mergetest.Fault{}
			}
			got := on(first, offsets[0]).MergeMany(t.Context(), events)
			wantAll(t, met, merge.Counted)
			wantAll(t, got, merge.Failed)
			for _, o := range got {
				wantIs(t, o.Err, merge.ErrTakenOver)
			}
			mergetest.Audit(t, s.Snapshot(), events)
			if n := s.Calls(mergetest.TakeClaim); n != len(events) {
				t.Errorf("%d claims taken over, want %d", n, len(events))
			}
		})
	}
}

func TestA7_HorizonRemembersAndThenForgets(t *testing.T) {
	for name, after := range map[string]func(*mergetest.Store){
		"the row is deleted": (*mergetest.Store).Sweep, "the row still stands": func(*mergetest.Store) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := mergetest.New(t)
			m := newMerger(t, s)
			e := event("e", "a")
			wantAll(t, []merge.Outcome{m.MergeOne(t.Context(), e)}, merge.Counted)
			s.Clock.Advance(merge.DefaultHorizon - time.Hour)
			s.Sweep()
			wantAll(t, []merge.Outcome{m.MergeOne(t.Context(), e)}, merge.Duplicate)
			s.Clock.Advance(2 * time.Hour)
			after(s)
			wantAll(t, []merge.Outcome{m.MergeOne(t.Context(), e)}, merge.Counted)
			wantAll(t, []merge.Outcome{m.MergeOne(t.Context(), e)}, merge.Duplicate)
		})
	}
}

func TestClaim_RowGoneAgainIsClaimedAnew(t *testing.T) {
	for gone := range 5 {
		s := mergetest.New(t)
		s.Fault = script(map[mergetest.Method][]mergetest.Fault{
			mergetest.PutClaims: times(gone, mergetest.Fault{Gone: true}),
		})
		got := newMerger(t, s).MergeOne(t.Context(), event("e", "a"))
		if want := gone < 3; got.Done() != want {
			t.Errorf("gone %d times: %v", gone, got)
		}
		wantReason(t, got)
	}
}

func TestClaim_TakeoverThatMeetsYetAnotherAttemptAsksAgain(t *testing.T) {
	for hops := range 5 {
		s := mergetest.New(t)
		token := hold(t, s, "e")
		abortAs(t, s, token)
		left := hops
		s.Fault = func(c mergetest.Call) mergetest.Fault {
			if c.Method == mergetest.TakeClaim && c.Worker == "" && left > 0 {
				left-- // yet another process takes it before us, and fails
				next := merge.Token(fmt.Sprint("rival", left))
				claim := merge.Claim{Event: "e", Token: next, Lease: s.Now().Add(time.Minute), Expires: s.Now().Add(40 * time.Hour)}
				if _, err := s.NewWorker("rival").TakeClaim(t.Context(), claim, token); err != nil {
					t.Error(err)
				}
				abortAs(t, s, next)
				token = next
			}
			return mergetest.Fault{}
		}
		got := newMerger(t, s).MergeOne(t.Context(), event("e", "a"))
		if want := hops < 3; got.Done() != want {
			t.Errorf("%d hops: %v", hops, got)
		}
		wantReason(t, got)
	}
}

func TestClaim_TakeoverSurvivesLostReplies(t *testing.T) {
	for lost := range 4 {
		s := mergetest.New(t)
		abortAs(t, s, hold(t, s, "e"))
		s.Fault = script(map[mergetest.Method][]mergetest.Fault{
			mergetest.TakeClaim: times(lost, after), mergetest.FindRecord: {before},
		})
		m := newMerger(t, s)
		got := m.MergeOne(t.Context(), event("e", "a"))
		if want := lost < merge.DefaultAttempts; got.Done() != want {
			t.Errorf("%d lost replies: %v", lost, got)
		}
		if again := m.MergeOne(t.Context(), event("e", "a")); !again.Done() || total(s, "a") != 1 {
			t.Errorf("%d lost replies, redelivery: %v, a=%d", lost, again, total(s, "a"))
		}
	}
}
