package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"abacus/shared/tally"
)

// Limits of one attempt, set by TransactWriteItems: at most 100 actions, no two on one item, one of them the commit
// record (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html).
const (
	MaxAdds   = 99
	MaxExcept = 100
)

// Token names one attempt at one chunk of events. It is random, never used twice, and fences every later write.
type Token string

// Claim is the row that says which attempt has taken an event.
type Claim struct {
	Event   string    // identity, at most tally.MaxID bytes
	Token   Token     // the attempt that took it; empty only in a Claim that stands for "no row"
	Lease   time.Time // until when the holder may still be at work; decides when to take over, never whether
	Expires time.Time // until when the event is remembered; the row itself stands until it is deleted or taken over
	Serial  string    // tally.Event.Serial of the delivery that took it
}

// State says how an attempt ended.
type State uint8

// The states of an attempt. Only a commit record gives the second and third, and it never changes.
const (
	Undecided State = iota // no commit record stands
	Committed              // its adds are durable, for every event that it claimed and does not except
	Aborted                // none of its adds are, nor ever will be
)

// Record is the commit record of one attempt.
type Record struct {
	State  State
	Except []string // events that the attempt tried to claim and left out of its commit
}

// Counted reports whether the record proves that event was counted by its attempt.
func (r Record) Counted(event string) bool {
	return r.State == Committed && !slices.Contains(r.Except, event)
}

// SlottedAdd is one cell's total in an attempt, and which of the cell's rows takes it.
type SlottedAdd struct {
	Cell    tally.Cell
	Delta   tally.Sum
	Expires int64 // as tally.Add.Expires
	Slot    int
}

// Attempt is what one transaction writes.
type Attempt struct {
	Token   Token
	Adds    []SlottedAdd // 0 to MaxAdds, each (cell, slot) once
	Except  []string     // 0 to MaxExcept
	Expires time.Time    // of the commit record: later than every claim that names Token
}

// ClaimReply answers one claim: the row that now stands, or why that is unknown.
type ClaimReply struct {
	Standing Claim // ours if its Token is the one we put; meaningless if Err is not nil
	Err      error
}

// Store keeps claims, commit records and counters. Every method may be called by many goroutines, obeys its context,
// and gives up only with an error: a nil error means that the answer is definite and what it says is durable.
//
// Errors: one that wraps ErrPermanent was not applied and never will be by retrying. A *ConflictError, a *RefusedError
// and one that wraps ErrThrottled were not applied. After any other error the write may have been applied, may not
// have been, or may still be: the caller finds out by calling again, which every method makes safe, because each write
// is conditional and recognises itself by its token. A Store does not retry on its own account.
type Store interface {
	// PutClaims puts each claim whose event has no row at all, and answers each in order with the row that stands. A row
	// past its Expires stands like any other: its attempt may yet commit, so it must be aborted before the row is taken
	// over, which is the caller's to do. A row of an earlier call with the same token is a success. Claims are
	// independent: any of them may fail alone. len(claims) may be anything; no event appears twice. A Standing with an
	// empty Token means that the row that was in the way is gone again.
	PutClaims(ctx context.Context, claims []Claim) []ClaimReply
	// TakeClaim replaces the event's row by claim if the row that stands carries the token from. It returns the row that
	// stands afterwards, past its Expires or not; one with an empty Token if there is none.
	TakeClaim(ctx context.Context, claim Claim, from Token) (Claim, error)
	// FindRecord returns the commit record of token; Undecided if there is none. The read is strongly consistent.
	FindRecord(ctx context.Context, token Token) (Record, error)
	// Abort writes the record Aborted for token if there is none, and returns the record that stands.
	Abort(ctx context.Context, token Token, expires time.Time) (Record, error)
	// Commit writes the record Committed with its exceptions and every add, all or none, if token has no record. It
	// returns the record that stands: Committed if this or an earlier call with this token was applied. Adds differ
	// between calls only in their slots; except that where every earlier call is known not to have been applied, the one
	// after a *RefusedError may leave out the adds that it names and all events that have a part in them, which Except
	// then names.
	Commit(ctx context.Context, a Attempt) (Record, error)
	// Release deletes the event's row if it carries token; otherwise it does nothing. Either is success.
	Release(ctx context.Context, event string, token Token) error
}

// Sentinels to branch on; see Store.
var (
	// ErrThrottled reports that the store asks for less load: wait longer before the next try.
	ErrThrottled = errors.New("throttled")
	// ErrPermanent reports that the request can never succeed as the deployment stands: no such table, no permission.
	ErrPermanent = errors.New("permanent")
)

// ConflictError reports that another transaction held some of an attempt's rows. Nothing was applied; the same adds on
// other slots may go through.
type ConflictError struct {
	Adds   []int // indices into Attempt.Adds; empty where only the commit record was contended
	Record bool  // the commit record itself was contended: another worker may be aborting this attempt
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%d adds met another transaction; try again", len(e.Adds))
}

// RefusedError reports adds that the store can never apply (the row's count is not a number, the sum leaves 38 digits).
// Nothing was applied; without these adds the attempt may go through.
type RefusedError struct {
	Adds  []int // indices into Attempt.Adds, never empty
	Cause error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d adds can never be applied: %v; mend the counter's row or the event", len(e.Adds), e.Cause)
}

// Unwrap returns the store's own error.
func (e *RefusedError) Unwrap() error { return e.Cause }
