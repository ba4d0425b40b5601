package mergetest

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// Row names one row of a counter.
type Row struct {
	Cell tally.Cell
	Slot int
}

// Count is what a Row holds.
type Count struct {
	N       tally.Sum
	Expires int64 // Unix seconds; 0: never
}

// Store is a strict merge.Store in memory. Its own methods are those of a worker without a name that never stops.
// Set its fields before the first call.
type Store struct {
	*Worker
	Clock *Clock
	// Fault decides the fate of each call; nil means all are healthy. It is called by many goroutines, with no lock
	// held, so it may call the store as another worker would.
	Fault func(Call) Fault
	// DoneContexts allows calls on a context that is already done. They are a misuse otherwise; a test in which another
	// goroutine cancels cannot always tell.
	DoneContexts bool

	t        TB
	mu       sync.Mutex
	n        int
	calls    map[Method]int
	claims   map[string]merge.Claim
	records  map[merge.Token]record
	rows     map[Row]Count
	attempts map[merge.Token]*attempt
	late     []lateCall
}

type record struct {
	merge.Record
	expires time.Time
}

// New returns an empty Store that reports misuse to t.
func New(t TB) *Store {
	s := &Store{
		t: t, Clock: new(Clock), calls: map[Method]int{}, claims: map[string]merge.Claim{},
		records: map[merge.Token]record{}, rows: map[Row]Count{}, attempts: map[merge.Token]*attempt{},
	}
	s.Worker = s.NewWorker("")
	return s
}

// Now returns the time of the store's clock.
func (s *Store) Now() time.Time { return s.Clock.Now() }

// Calls returns how often method was called, by live workers.
func (s *Store) Calls(method Method) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Total returns the sum of cell over its slots.
func (s *Store) Total(cell tally.Cell) tally.Sum {
	return s.Snapshot().Totals()[cell]
}

// Sweep deletes every row past its expiry, as DynamoDB does at a time of its own choice.
func (s *Store) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	maps.DeleteFunc(s.claims, func(_ string, c merge.Claim) bool { return c.Expires.Before(now) })
	maps.DeleteFunc(s.records, func(_ merge.Token, r record) bool { return r.expires.Before(now) })
	maps.DeleteFunc(s.rows, func(_ Row, c Count) bool { return c.Expires != 0 && c.Expires < now.Unix() })
}

// The methods below are the contract, one atomic step each, under s.mu.

func (s *Store) putClaim(claim merge.Claim) merge.Claim {
	if standing, ok := s.claims[claim.Event]; ok {
		return standing
	}
	s.claims[claim.Event] = claim
	return claim
}

func (s *Store) takeClaim(claim merge.Claim, from merge.Token) merge.Claim {
	standing, ok := s.claims[claim.Event]
	if ok && standing.Token == from {
		s.claims[claim.Event] = claim
		return claim
	}
	return standing
}

func (s *Store) abort(token merge.Token, expires time.Time) merge.Record {
	if _, ok := s.records[token]; !ok {
		s.records[token] = record{merge.Record{State: merge.Aborted}, expires}
	}
	return s.find(token)
}

func (s *Store) find(token merge.Token) merge.Record {
	r := s.records[token].Record
	r.Except = slices.Clone(r.Except)
	return r
}

func (s *Store) commit(a merge.Attempt) (merge.Record, error) {
	if _, ok := s.records[a.Token]; ok {
		return s.find(a.Token), nil
	}
	if err := s.refuse(a.Adds); err != nil {
		return merge.Record{}, err
	}
	for _, add := range a.Adds {
		row := Row{add.Cell, add.Slot}
		s.rows[row] = Count{N: s.rows[row].N.Plus(add.Delta), Expires: add.Expires}
	}
	s.records[a.Token] = record{merge.Record{State: merge.Committed, Except: slices.Clone(a.Except)}, a.Expires}
	return s.find(a.Token), nil
}

// fits reports whether DynamoDB can keep n: it has 38 digits, not counting zeros at the end.
func fits(n *big.Int) bool {
	return len(strings.Trim(n.String(), "-0")) <= 38
}

func (s *Store) refuse(adds []merge.SlottedAdd) error {
	beyond := func(add merge.SlottedAdd) bool {
		sum := new(big.Int).Add(s.rows[Row{add.Cell, add.Slot}].N.Big(), add.Delta.Big())
		return !fits(sum) || !fits(add.Delta.Big()) || sum.BitLen() > 127
	}
	if refused := pick(adds, beyond); len(refused) > 0 {
		return &merge.RefusedError{Adds: refused, Cause: fmt.Errorf("in memory: %w", tally.ErrRange)}
	}
	return nil
}

func (s *Store) release(event string, token merge.Token) {
	if s.claims[event].Token == token {
		delete(s.claims, event)
	}
}
