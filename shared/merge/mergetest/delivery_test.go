package mergetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

func flights(n int) []tally.Event {
	events := make([]tally.Event, n)
	for i := range events {
		total, own := hour, hour
		own.Key = fmt.Sprint("own", i%7)
		events[i] = tally.Event{ID: fmt.Sprint("e", i), Adds: []tally.Add{{Cell: total, Delta: 1}, {Cell: own, Delta: 2}}}
	}
	return events
}

// flaw leaves one rule out of the protocol below.
type flaw int

const (
	sound flaw = iota
	knownIsDone
	noAbort
	noExceptions
	oneByOne
)

// protocol is the smallest process that counts exactly, to show what the harness accepts and what it catches.
func (f flaw) protocol(store merge.Store, now func() time.Time, batch []tally.Event) []merge.Outcome {
	ctx := context.Background()
	token, until := merge.Token(rand.Text()), now().Add(48*time.Hour)
	outcomes := make([]merge.Outcome, len(batch))
	claims := make([]merge.Claim, len(batch))
	for i, event := range batch {
		claims[i] = merge.Claim{
			Event: event.ID, Token: token, Lease: now().Add(time.Minute), Expires: now().Add(24 * time.Hour),
		}
	}
	a := merge.Attempt{Token: token, Expires: until}
	var mine []int
	totals := map[tally.Cell]tally.Sum{}
	for i, reply := range store.PutClaims(ctx, claims) {
		outcomes[i] = f.claim(ctx, store, now, claims[i], reply)
		switch {
		case outcomes[i].Status == merge.Counted:
			mine = append(mine, i)
			for _, add := range batch[i].Adds {
				totals[add.Cell] = totals[add.Cell].Plus(tally.SumOf(add.Delta))
			}
		case outcomes[i].Status != merge.Duplicate && f != noExceptions:
			a.Except = append(a.Except, claims[i].Event)
		}
	}
	for cell, delta := range totals {
		a.Adds = append(a.Adds, merge.SlottedAdd{Cell: cell, Delta: delta})
	}
	if f == oneByOne { // what most handlers do: one write per counter, none of them fenced
		for _, add := range a.Adds {
			alone := merge.Attempt{Token: merge.Token(rand.Text()), Adds: []merge.SlottedAdd{add}, Expires: until}
			_, _ = store.Commit(ctx, alone)
		}
		a.Adds = nil
	}
	if record, err := store.Commit(ctx, a); err != nil || record.State != merge.Committed {
		for _, i := range mine {
			outcomes[i] = merge.Outcome{Status: merge.Failed, Err: err}
		}
	}
	return outcomes
}

func (f flaw) claim(
	ctx context.Context, store merge.Store, now func() time.Time, claim merge.Claim, reply merge.ClaimReply,
) merge.Outcome {
	standing, err := reply.Standing, reply.Err
	for range 3 {
		if err != nil || standing.Token == "" {
			return merge.Outcome{Status: merge.Failed, Err: err}
		}
		if standing.Token == claim.Token {
			return merge.Outcome{Status: merge.Counted}
		}
		record, err2 := store.FindRecord(ctx, standing.Token)
		if err2 != nil {
			return merge.Outcome{Status: merge.Failed, Err: err2}
		}
		if record.State == merge.Undecided {
			if f == knownIsDone {
				return merge.Outcome{Status: merge.Duplicate}
			}
			if now().Before(standing.Lease) {
				return merge.Outcome{Status: merge.InFlight}
			}
			if f != noAbort {
				if record, err2 = store.Abort(ctx, standing.Token, now().Add(48*time.Hour)); err2 != nil {
					return merge.Outcome{Status: merge.Failed, Err: err2}
				}
			}
		}
		if record.Counted(claim.Event) {
			return merge.Outcome{Status: merge.Duplicate}
		}
		standing, err = store.TakeClaim(ctx, claim, standing.Token)
	}
	return merge.Outcome{Status: merge.InFlight}
}

func TestCrashMatrix_AcceptsASoundProtocol(t *testing.T) {
	for _, d := range []Delivery{{Batch: 8}, {Batch: 8, Shard: true}, {Batch: 8, Shard: true, Bisect: true}} {
		t.Run(fmt.Sprintf("shard=%t,bisect=%t", d.Shard, d.Bisect), func(t *testing.T) {
			CrashMatrix(t, flights(20), d, sound.protocol)
		})
	}
}

// Each rule left out must show at some point of the matrix: as a misuse, or as a wrong number.
func TestCrashMatrix_CatchesEachFlaw(t *testing.T) {
	for f, want := range map[flaw]string{knownIsDone: "audit:", noAbort: "abort it first", oneByOne: "audit:"} {
		j := &journal{}
		for k := 0; len(j.lines) == 0; k++ {
			if !crashOnce(j, flights(20), Delivery{Batch: 8}, f.protocol, k, 0) {
				break
			}
		}
		if !strings.Contains(strings.Join(j.lines, "\n"), want) {
			t.Errorf("flaw %d: reported %q, want %q", f, j.lines, want)
		}
	}
}

func TestStore_CatchesAMissingException(t *testing.T) {
	j := &journal{}
	s := New(j)
	s.Fault = func(c Call) Fault {
		if c.N == 1 {
			return Fault{Err: ErrInjected, Late: 2, Events: []string{"e3"}}
		}
		return Fault{}
	}
	events := flights(5)
	noExceptions.protocol(s, s.Now, events)
	s.Land()
	AuditSoFar(j, s.Snapshot(), events)
	j.want(t, "neither holds nor excepts")
	j.want(t, "audit:")
}

func TestDeliver_QueueBringsBackWhatFailedAndNothingElse(t *testing.T) {
	events, seen := flights(25), map[string]int{}
	refused := Deliver(t, events, Delivery{}, func(batch []tally.Event) []merge.Outcome {
		outcomes := make([]merge.Outcome, len(batch))
		for i, event := range batch {
			seen[event.ID]++
			switch {
			case event.ID == "e4":
				outcomes[i].Status = merge.Refused
			case event.ID != "e3" || seen["e3"] == 3:
				outcomes[i].Status = merge.Counted
			}
		}
		return outcomes
	})
	if len(refused) != 1 || refused[0].ID != "e4" || seen["e3"] != 3 || seen["e4"] != 1 || seen["e5"] != 1 {
		t.Errorf("refused %v, seen %v", refused, seen)
	}
}

func TestDeliver_ShardStartsAgainAtTheLowestFailure(t *testing.T) {
	var batches []string
	n := 0
	Deliver(t, flights(6), Delivery{Batch: 4, Shard: true, Bisect: true}, func(batch []tally.Event) []merge.Outcome {
		var ids []string
		outcomes := make([]merge.Outcome, len(batch))
		for i, event := range batch {
			ids = append(ids, event.ID)
			outcomes[i].Status = merge.Counted
		}
		batches = append(batches, strings.Join(ids, " "))
		switch n++; n {
		case 1:
			outcomes[2].Status = merge.Failed
		case 2:
			return nil // timed out
		}
		return outcomes
	})
	want := []string{"e0 e1 e2 e3", "e2 e3 e4 e5", "e2 e3", "e4 e5"}
	if !slices.Equal(batches, want) {
		t.Errorf("batches %q, want %q", batches, want)
	}
}

func TestDeliver_GivesUp(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "3 of 3 events are not done after 5 deliveries") {
			t.Errorf("gave up with %q", text)
		}
	}()
	Deliver(&journal{}, flights(3), Delivery{Rounds: 5}, func([]tally.Event) []merge.Outcome { return nil })
}

func TestAudit_NamesWhatIsWrong(t *testing.T) {
	events := flights(2)
	s := New(t)
	if outcomes := sound.protocol(s, s.Now, events); !outcomes[0].Done() || !outcomes[1].Done() {
		t.Fatalf("%+v", outcomes)
	}
	Audit(t, s.Snapshot(), events)
	tests := map[string]func(*Snapshot){
		"is 3, recounted 2":      func(s *Snapshot) { s.Rows[Row{hour, 0}] = Count{N: tally.SumOf(3)} },
		"is 0, recounted 2":      func(s *Snapshot) { delete(s.Rows, Row{hour, 0}) },
		"1 of 2 identities":      func(s *Snapshot) { delete(s.Claims, "e0") },
		"not an input event":     func(s *Snapshot) { s.Claims["x"] = merge.Claim{} },
		"is held for 1m0s more":  func(s *Snapshot) { clear(s.Records); s.Now = s.Claims["e0"].Lease.Add(-time.Minute) },
		"2 of 2 identities have": func(s *Snapshot) { clear(s.Records) },
	}
	for want, spoil := range tests {
		j, snap := &journal{}, s.Snapshot()
		spoil(&snap)
		Audit(j, snap, events)
		AuditReleased(j, snap, events)
		j.want(t, want)
	}
}
