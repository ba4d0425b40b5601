package mergetest

import (
	"maps"
	"slices"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// Snapshot is everything that a store holds at one moment.
type Snapshot struct {
	Now     time.Time
	Claims  map[string]merge.Claim // by event
	Records map[merge.Token]merge.Record
	Rows    map[Row]Count
}

// Snapshot returns what the store holds now.
func (s *Store) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := Snapshot{
		Now: s.Now(), Claims: maps.Clone(s.claims), Records: map[merge.Token]merge.Record{}, Rows: maps.Clone(s.rows),
	}
	for token := range s.records {
		snap.Records[token] = s.find(token)
	}
	return snap
}

// Totals returns every counter, its slots summed.
func (s Snapshot) Totals() map[tally.Cell]tally.Sum {
	totals := map[tally.Cell]tally.Sum{}
	for row, count := range s.Rows {
		totals[row.Cell] = totals[row.Cell].Plus(count.N)
	}
	return totals
}

// Counted reports whether the rows prove that event was counted: its claim names an attempt whose commit record says
// so.
func (s Snapshot) Counted(event string) bool {
	claim, ok := s.Claims[event]
	return ok && s.Records[claim.Token].Counted(event)
}

// Held reports whether event's claim keeps others from counting it now: its attempt is undecided and its lease alive.
func (s Snapshot) Held(event string) bool {
	claim, ok := s.Claims[event]
	return ok && s.Records[claim.Token].State == merge.Undecided && s.Now.Before(claim.Lease)
}

// Audit recounts from the input: each identity of events must have been counted exactly once, by the counters and by
// the claims and commit records, and nothing else may have been.
func Audit(t TB, s Snapshot, events []tally.Event) {
	t.Helper()
	AuditSoFar(t, s, events)
	lost := 0
	for event := range byIdentity(t, events) {
		if !s.Counted(event) {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("audit: %d of %d identities have no claim whose commit record counts them", lost,
			len(byIdentity(t, events)))
	}
}

// AuditSoFar checks what must hold at any moment, between any two calls, within the life of the claims: the counters
// are exactly the sum of those events whose claims and commit records say that they were counted.
func AuditSoFar(t TB, s Snapshot, events []tally.Event) {
	t.Helper()
	known := byIdentity(t, events)
	want := map[tally.Cell]tally.Sum{}
	for event := range s.Claims {
		if _, ok := known[event]; !ok {
			t.Errorf("audit: a claim on %q, which is not an input event", event)
		}
		if !s.Counted(event) {
			continue
		}
		for _, add := range known[event].Adds {
			want[add.Cell] = want[add.Cell].Plus(tally.SumOf(add.Delta))
		}
	}
	compare(t, s.Totals(), want)
}

// AuditReleased checks that no event is held: none need wait for a lease to end before it can be counted.
func AuditReleased(t TB, s Snapshot, events []tally.Event) {
	t.Helper()
	for event := range byIdentity(t, events) {
		if s.Held(event) {
			t.Errorf("audit: event %q is held for %v more by an attempt that is undecided", event,
				s.Claims[event].Lease.Sub(s.Now))
		}
	}
}

func compare(t TB, got, want map[tally.Cell]tally.Sum) {
	t.Helper()
	const shown = 5
	wrong := 0
	for cell := range merged(got, want) {
		if got[cell] == want[cell] {
			continue
		}
		if wrong++; wrong <= shown {
			t.Errorf("audit: %s of %q in %s@%d is %s, recounted %s", cell.Counter, cell.Key, cell.Window, cell.Bucket,
				got[cell], want[cell])
		}
	}
	if wrong > shown {
		t.Errorf("audit: %d counters are wrong in all", wrong)
	}
}

func merged(a, b map[tally.Cell]tally.Sum) map[tally.Cell]tally.Sum {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func byIdentity(t TB, events []tally.Event) map[string]tally.Event {
	t.Helper()
	known := map[string]tally.Event{}
	for _, event := range events {
		if first, repeated := known[event.ID]; repeated && !slices.Equal(first.Adds, event.Adds) {
			t.Fatalf("audit: event %q comes with two sets of adds; the truth is not defined", event.ID)
		}
		known[event.ID] = event
	}
	return known
}
