package mergetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// Subject is a store under test, and what the contract leaves to others: the store's clock and a view of its counters.
type Subject struct {
	Store merge.Store
	Now   func() time.Time
	Total func(tally.Cell) tally.Sum // the sum of a cell's slots, read consistently
}

// Subject returns s for Run.
func (s *Store) Subject() Subject { return Subject{Store: s, Now: s.Now, Total: s.Total} }

// Run checks every sentence of merge.Store's contract on the stores that open returns. They may share tables: each test
// names its own events and counters. It keeps to the protocol, so that a strict store can take it, but for one test
// that calls on contexts that are done.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	tests := []struct {
		name string
		run  func(*suite)
	}{
		{"PutClaims_PutsEachClaimWhoseEventHasNoRow", putsWhereNoRow},
		{"PutClaims_AnswersEachInOrderWithTheRowThatStands", answersInOrder},
		{"PutClaims_OwnRowOfAnEarlierCallIsASuccess", ownRowIsSuccess},
		{"PutClaims_StandingRowComesBackWhole", standingRowIsWhole},
		{"PutClaims_RowPastItsExpiryStandsLikeAnyOther", expiredRowStands},
		{"PutClaims_AnyNumberOfClaims", anyNumberOfClaims},
		{"PutClaims_AnyIdentityUpToMaxID", anyIdentity},
		{"PutClaims_OneWinnerAmongMany", oneWinnerPuts},
		{"TakeClaim_ReplacesTheRowOfTheGivenAttempt", takeReplaces},
		{"TakeClaim_LeavesTheRowOfAnyOtherAttempt", takeLeavesOthers},
		{"TakeClaim_RowPastItsExpiryStandsUntilItIsTaken", expiredRowIsTaken},
		{"TakeClaim_NoRowIsAnEmptyTokenAndWritesNothing", takeOfNothing},
		{"TakeClaim_AgainAfterALostReplyIsASuccess", takeAgain},
		{"TakeClaim_OneWinnerAmongMany", oneWinnerTakes},
		{"FindRecord_UndecidedWhereNoneStands", undecided},
		{"Abort_WritesTheRecordOnce", abortOnce},
		{"Abort_ReturnsTheCommitThatStands", abortAfterCommit},
		{"Commit_AppliesEveryAddAndTheRecord", commitApplies},
		{"Commit_CellsThatDifferInOnePartAreDifferentNumbers", cellsDiffer},
		{"Commit_SlotsAreSummed", slotsAreSummed},
		{"Commit_SumsAreExactBeyondInt64", sumsAreExact},
		{"Commit_AtTheLimitsOfAddsAndExceptions", commitLimits},
		{"Commit_WithoutAdds", commitWithoutAdds},
		{"Commit_AgainAppliesNothing", commitAgain},
		{"Commit_AgainOnOtherSlotsAppliesNothing", commitAgainOnOtherSlots},
		{"Commit_AfterAbortAppliesNothing", commitAfterAbort},
		{"Commit_RefusedAddsAreNamedAndNothingIsApplied", commitRefused},
		{"Commit_OneTokenByManyAppliesOnce", commitByMany},
		{"Commit_ManyTokensOnOneCellAreExact", manyTokensOneCell},
		{"Commit_AgainstAbortHasOneOutcome", commitAgainstAbort},
		{"Release_DeletesTheRowOfItsToken", releaseDeletes},
		{"Release_LeavesTheRowOfAnyOtherAttempt", releaseLeavesOthers},
		{"Release_OfNothingIsASuccess", releaseOfNothing},
		{"Context_DoneIsAnErrorOfEveryMethod", contextDone},
		{"Model_AnswersAsTheStoreInMemory", answersAsModel},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			test.run(&suite{T: t, Subject: open(t), ctx: ctx, prefix: rand.Text()[:8]})
		})
	}
}

type suite struct {
	*testing.T
	Subject
	ctx    context.Context
	prefix string
}

// The life of the suite's rows. Whole seconds, since a store may keep no finer time.
const (
	leaseFor = time.Minute
	claimFor = 24 * time.Hour
)

func (s *suite) event(n int) string { return fmt.Sprintf("%s-e%d", s.prefix, n) }

func (s *suite) token() merge.Token { return merge.Token(rand.Text()) }

func (s *suite) claim(event string, token merge.Token) merge.Claim {
	now := s.Now().Truncate(time.Second).UTC()
	return merge.Claim{Event: event, Token: token, Lease: now.Add(leaseFor), Expires: now.Add(claimFor), Serial: "s1"}
}

func (s *suite) outlives() time.Time { return s.Now().Truncate(time.Second).Add(2 * claimFor) }

func (s *suite) cell(key string) tally.Cell {
	return tally.Cell{Counter: "c" + s.prefix, Key: key, Window: "1h", Bucket: 1767323045 / 3600 * 3600}
}

func (s *suite) attempt(token merge.Token, adds ...merge.SlottedAdd) merge.Attempt {
	return merge.Attempt{Token: token, Adds: adds, Expires: s.outlives()}
}

func (s *suite) add(key string, delta int64, slot int) merge.SlottedAdd {
	return merge.SlottedAdd{Cell: s.cell(key), Delta: tally.SumOf(delta), Slot: slot}
}

// put claims one event for token and returns the row that stands.
func (s *suite) put(event string, token merge.Token) merge.Claim {
	s.Helper()
	replies := s.Store.PutClaims(s.ctx, []merge.Claim{s.claim(event, token)})
	if len(replies) != 1 || replies[0].Err != nil {
		s.Fatalf("PutClaims of one: %+v", replies)
	}
	return replies[0].Standing
}

func (s *suite) take(event string, token, from merge.Token) merge.Claim {
	s.Helper()
	standing, err := s.Store.TakeClaim(s.ctx, s.claim(event, token), from)
	if err != nil {
		s.Fatalf("TakeClaim: %v", err)
	}
	return standing
}

func (s *suite) abort(token merge.Token) merge.Record {
	s.Helper()
	record, err := s.Store.Abort(s.ctx, token, s.outlives())
	if err != nil {
		s.Fatalf("Abort: %v", err)
	}
	return record
}

func (s *suite) commit(a merge.Attempt) merge.Record {
	s.Helper()
	record, err := s.Store.Commit(s.ctx, a)
	if err != nil {
		s.Fatalf("Commit: %v", err)
	}
	return record
}

func (s *suite) release(event string, token merge.Token) {
	s.Helper()
	if err := s.Store.Release(s.ctx, event, token); err != nil {
		s.Fatalf("Release: %v", err)
	}
}

func (s *suite) wantState(token merge.Token, want merge.State) merge.Record {
	s.Helper()
	record, err := s.Store.FindRecord(s.ctx, token)
	if err != nil || record.State != want {
		s.Fatalf("FindRecord: %+v, %v; want state %d", record, err, want)
	}
	return record
}

// wantStanding checks which attempt's row stands on event, by a call that changes nothing: a put where a row stands.
func (s *suite) wantStanding(event string, want merge.Token) {
	s.Helper()
	if got := s.put(event, s.token()).Token; got != want {
		s.Errorf("the row on the event names attempt %q, want %q", got, want)
	}
}

func (s *suite) wantTotal(cell tally.Cell, want string) {
	s.Helper()
	if got := s.Total(cell).String(); got != want {
		s.Errorf("total of %+v is %s, want %s", cell, got, want)
	}
}

// together runs f in n goroutines at once.
func together(n int, f func(i int)) {
	var ready sync.WaitGroup
	var all sync.WaitGroup
	ready.Add(n)
	for i := range n {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	all.Wait()
}
