package mergetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// attempt is what the store has seen of one token.
type attempt struct {
	tried     map[string]bool // events that it tried to claim; true where it was last told that the claim is its own
	latest    time.Time       // the latest expiry of a claim that names it
	committed bool            // Commit was called
	adds      []string        // of that call, slots left out
	except    []string        // of that call
	unsure    int             // calls of Commit that may have been applied or may still be
	refused   []tally.Cell    // what the last call of Commit was refused for
}

func (s *Store) attempt(token merge.Token) *attempt {
	a, ok := s.attempts[token]
	if !ok {
		a = &attempt{tried: map[string]bool{}}
		s.attempts[token] = a
	}
	return a
}

// heard notes what the caller was told about its claim.
func (s *Store) heard(event string, token merge.Token, standing merge.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt(token).tried[event] = standing.Token == token
}

// heardCommit notes what the caller was told about its commit.
func (s *Store) heardCommit(a merge.Attempt, err error) {
	if errors.Is(err, ErrStopped) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.attempt(a.Token)
	seen.refused = nil
	if err == nil || notApplied(err) {
		seen.unsure--
	}
	var refused *merge.RefusedError
	if errors.As(err, &refused) {
		for _, i := range refused.Adds {
			seen.refused = append(seen.refused, a.Adds[i].Cell)
		}
	}
}

// notApplied reports whether err promises that its call was not applied.
func notApplied(err error) bool {
	var conflict *merge.ConflictError
	var refused *merge.RefusedError
	return errors.Is(err, merge.ErrPermanent) || errors.Is(err, merge.ErrThrottled) || errors.As(err, &conflict) ||
		errors.As(err, &refused)
}

func (s *Store) misuse(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("misuse of merge.Store: "+format, args...)
}

func (s *Store) checkToken(method Method, token merge.Token) {
	s.t.Helper()
	if token == "" {
		s.misuse("%s with an empty token", method)
	}
}

func (s *Store) checkPut(claims []merge.Claim) {
	s.t.Helper()
	seen := map[string]bool{}
	for _, claim := range claims {
		if seen[claim.Event] {
			s.misuse("PutClaims names event %q twice", claim.Event)
		}
		seen[claim.Event] = true
		s.checkClaim(PutClaims, claim)
	}
}

func (s *Store) checkClaim(method Method, claim merge.Claim) {
	s.t.Helper()
	s.checkToken(method, claim.Token)
	a := s.attempt(claim.Token)
	record, decided := s.records[claim.Token]
	switch {
	case claim.Event == "" || len(claim.Event) > tally.MaxID:
		s.misuse("%s with an event identity of %d bytes; 1 to %d are allowed", method, len(claim.Event), tally.MaxID)
	case claim.Lease.IsZero() || claim.Expires.IsZero():
		s.misuse("%s of %q without a lease or an expiry", method, claim.Event)
	case claim.Expires.Before(claim.Lease):
		s.misuse("%s of %q: the row expires %v before its lease ends", method, claim.Event,
			claim.Lease.Sub(claim.Expires))
	case a.committed:
		s.misuse("%s of %q after Commit was called: the record cannot tell whether it was counted", method, claim.Event)
	case decided && !record.expires.After(claim.Expires):
		s.misuse("%s of %q: the commit record does not outlive it", method, claim.Event)
	}
	if _, known := a.tried[claim.Event]; !known {
		a.tried[claim.Event] = false
	}
	if claim.Expires.After(a.latest) {
		a.latest = claim.Expires
	}
}

func (s *Store) checkTake(claim merge.Claim, from merge.Token) {
	s.t.Helper()
	s.checkToken(TakeClaim, from)
	s.checkClaim(TakeClaim, claim)
	switch record := s.records[from]; {
	case from == claim.Token:
		s.misuse("TakeClaim of %q from the attempt itself", claim.Event)
	case record.Counted(claim.Event) && s.Now().Before(s.attempt(from).latest):
		s.misuse("TakeClaim of %q, which its attempt has counted", claim.Event)
	case record.State == merge.Undecided:
		s.misuse("TakeClaim of %q from an attempt that is undecided: abort it first", claim.Event)
	}
}

func (s *Store) checkAbort(token merge.Token, expires time.Time) {
	s.t.Helper()
	s.checkToken(Abort, token)
	s.checkOutlives(Abort, token, expires)
}

func (s *Store) checkOutlives(method Method, token merge.Token, expires time.Time) {
	s.t.Helper()
	if latest := s.attempt(token).latest; !expires.After(latest) {
		s.misuse("%s: the commit record does not outlive every claim that names it (%v, a claim %v)", method,
			expires.UTC(), latest.UTC())
	}
}

func (s *Store) checkCommit(a merge.Attempt) {
	s.t.Helper()
	s.checkToken(Commit, a.Token)
	s.checkOutlives(Commit, a.Token, a.Expires)
	if len(a.Adds) > merge.MaxAdds || len(a.Except) > merge.MaxExcept {
		s.misuse("Commit of %d adds and %d exceptions; at most %d and %d are allowed", len(a.Adds), len(a.Except),
			merge.MaxAdds, merge.MaxExcept)
	}
	rows := map[Row]bool{}
	for _, add := range a.Adds {
		if rows[Row{add.Cell, add.Slot}] {
			s.misuse("Commit names slot %d of %+v twice", add.Slot, add.Cell)
		}
		rows[Row{add.Cell, add.Slot}] = true
		s.checkAdd(add)
	}
	s.checkHeld(a)
	s.checkSame(a)
}

func (s *Store) checkAdd(add merge.SlottedAdd) {
	s.t.Helper()
	cell := add.Cell
	switch {
	case cell.Counter == "" || strings.Contains(cell.Counter, "|") || cell.Window == "":
		s.misuse("Commit of a malformed cell %+v", cell)
	case cell.Key == "" || len(cell.Key) > 1024:
		s.misuse("Commit of a key of %d bytes; 1 to 1024 are allowed", len(cell.Key))
	case cell.Window == "all" && cell.Bucket != 0:
		s.misuse("Commit of bucket %d under the window all", cell.Bucket)
	case add.Slot < 0 || add.Expires < 0:
		s.misuse("Commit of slot %d, expiry %d", add.Slot, add.Expires)
	}
}

// checkHeld reports an event that the attempt tried to claim and does not know to hold, and that its record would pass
// for counted: whoever finds the attempt's token on a row of that event takes it for a duplicate, and it is lost.
func (s *Store) checkHeld(a merge.Attempt) {
	s.t.Helper()
	for event, ours := range s.attempt(a.Token).tried {
		duplicate := s.records[s.claims[event].Token].Counted(event)
		if !ours && !duplicate && !slices.Contains(a.Except, event) {
			s.misuse("Commit neither holds nor excepts event %q, which its attempt tried to claim", event)
		}
	}
}

// checkSame reports a second call with the same token that would write something else.
func (s *Store) checkSame(a merge.Attempt) {
	s.t.Helper()
	lines := make([]string, len(a.Adds))
	for i, add := range a.Adds {
		lines[i] = fmt.Sprintf("%+v %s %d", add.Cell, add.Delta, add.Expires)
	}
	slices.Sort(lines)
	except := slices.Sorted(slices.Values(a.Except))
	seen := s.attempt(a.Token)
	switch {
	case !seen.committed:
	case seen.unsure == 0 && len(seen.refused) > 0:
		s.checkRest(a, seen)
	case !slices.Equal(seen.adds, lines):
		s.misuse("Commit again with other adds under the same token: only slots may differ")
	case !slices.Equal(seen.except, except):
		s.misuse("Commit again with other exceptions under the same token")
	}
	seen.committed, seen.adds, seen.except, seen.refused = true, lines, except, nil
	seen.unsure++
}

// checkRest checks a call after one that was refused: it goes without what was refused.
func (s *Store) checkRest(a merge.Attempt, seen *attempt) {
	s.t.Helper()
	for _, add := range a.Adds {
		if slices.Contains(seen.refused, add.Cell) {
			s.misuse("Commit again with the add to %+v, which was refused", add.Cell)
		}
	}
	if len(a.Except) <= len(seen.except) {
		s.misuse("Commit again after a refusal without excepting the events that have a part in what was refused")
	}
	for _, event := range seen.except {
		if !slices.Contains(a.Except, event) {
			s.misuse("Commit again after a refusal no longer excepts event %q", event)
		}
	}
}

func (s *Store) checkRelease(event string, token merge.Token) {
	s.t.Helper()
	s.checkToken(Release, token)
	switch record := s.records[token]; {
	case event == "" || len(event) > tally.MaxID:
		s.misuse("Release of an event identity of %d bytes", len(event))
	case record.Counted(event):
		s.misuse("Release of %q, which its attempt has counted: it would be counted again", event)
	case record.State == merge.Undecided && s.attempt(token).unsure > 0:
		s.misuse("Release of %q while its commit may still land: abort it first", event)
	}
	// From here on the row may be another's, so a Commit that does not except the event is a misuse.
	if a := s.attempt(token); len(a.tried) > 0 {
		a.tried[event] = false
	}
}
