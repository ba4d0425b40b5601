package mergetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// journal is a TB that keeps what is reported.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Helper() {}

func (j *journal) Errorf(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (j *journal) want(t *testing.T, part string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if part == "" {
		if len(j.lines) > 0 {
			t.Errorf("reported %q, want nothing", j.lines)
		}
		return
	}
	if !slices.ContainsFunc(j.lines, func(line string) bool { return strings.Contains(line, part) }) {
		t.Errorf("reported %q, want one with %q", j.lines, part)
	}
}

var (
	hour = tally.Cell{Counter: "c", Key: "k", Window: "1h"}
	one  = merge.SlottedAdd{Cell: hour, Delta: tally.SumOf(1)}
)

func claimOf(s *Store, event string, token merge.Token) merge.Claim {
	return merge.Claim{Event: event, Token: token, Lease: s.Now().Add(time.Minute), Expires: s.Now().Add(time.Hour)}
}

func attemptOf(s *Store, token merge.Token, adds ...merge.SlottedAdd) merge.Attempt {
	return merge.Attempt{Token: token, Adds: adds, Expires: s.Now().Add(2 * time.Hour)}
}

func TestStore_ReportsEachMisuse(t *testing.T) {
	ctx := context.Background()
	type m = func(s *Store)
	put := func(s *Store, claims ...merge.Claim) { s.PutClaims(ctx, claims) }
	commit := func(s *Store, a merge.Attempt) { _, _ = s.Commit(ctx, a) }
	many := func(n int) (adds []merge.SlottedAdd) {
		for i := range n {
			add := one
			add.Slot = i
			adds = append(adds, add)
		}
		return adds
	}
	tests := []struct {
		name, want string
		do         m
	}{
		{"healthy", "", func(s *Store) {
			put(s, claimOf(s, "e", "t"), claimOf(s, "f", "t"))
			commit(s, attemptOf(s, "t", many(merge.MaxAdds)...))
			commit(s, attemptOf(s, "t", many(merge.MaxAdds)...))
		}},
		{"event twice in one PutClaims", "twice", func(s *Store) { put(s, claimOf(s, "e", "t"), claimOf(s, "e", "u")) }},
		{"empty token", "empty token", func(s *Store) { put(s, claimOf(s, "e", "")) }},
		{"empty token of a record", "empty token", func(s *Store) { _, _ = s.FindRecord(ctx, "") }},
		{"identity past the limit", "257 bytes", func(s *Store) {
			put(s, claimOf(s, strings.Repeat("x", tally.MaxID+1), "t"))
		}},
		{"claim without lease", "without a lease", func(s *Store) {
			claim := claimOf(s, "e", "t")
			claim.Lease = time.Time{}
			put(s, claim)
		}},
		{"claim that expires before its lease", "before its lease", func(s *Store) {
			claim := claimOf(s, "e", "t")
			claim.Expires = claim.Lease.Add(-1)
			put(s, claim)
		}},
		{"too many adds", "100 adds", func(s *Store) { commit(s, attemptOf(s, "t", many(merge.MaxAdds+1)...)) }},
		{"too many exceptions", "101 exceptions", func(s *Store) {
			a := attemptOf(s, "t")
			a.Except = make([]string, merge.MaxExcept+1)
			commit(s, a)
		}},
		{"one slot twice", "slot 0", func(s *Store) { commit(s, attemptOf(s, "t", one, one)) }},
		{"malformed cell", "malformed", func(s *Store) {
			commit(s, attemptOf(s, "t", merge.SlottedAdd{Cell: tally.Cell{Counter: "a|b", Key: "k", Window: "all"}}))
		}},
		{"record that does not outlive its claim", "does not outlive", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			a := attemptOf(s, "t")
			a.Expires = s.claims["e"].Expires
			commit(s, a)
		}},
		{"abort that does not outlive the claim", "does not outlive", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			_, _ = s.Abort(ctx, "t", s.Now())
		}},
		{"other adds under one token", "other adds", func(s *Store) {
			commit(s, attemptOf(s, "t", one))
			commit(s, attemptOf(s, "t", merge.SlottedAdd{Cell: hour, Delta: tally.SumOf(2)}))
		}},
		{"other exceptions under one token", "other exceptions", func(s *Store) {
			commit(s, attemptOf(s, "t"))
			a := attemptOf(s, "t")
			a.Except = []string{"e"}
			commit(s, a)
		}},
		{"the rest after a refusal", "", func(s *Store) {
			refuseOnce(s)
			put(s, claimOf(s, "e", "t"), claimOf(s, "f", "t"))
			commit(s, attemptOf(s, "t", many(3)...))
			a := attemptOf(s, "t", merge.SlottedAdd{Cell: tally.Cell{Counter: "c", Key: "l", Window: "1h"}})
			a.Except = []string{"e"}
			commit(s, a)
		}},
		{"what was refused once more", "was refused", func(s *Store) {
			refuseOnce(s)
			commit(s, attemptOf(s, "t", one))
			a := attemptOf(s, "t", one)
			a.Except = []string{"e"}
			commit(s, a)
		}},
		{"the rest after a refusal, no event left out", "have a part in what was refused", func(s *Store) {
			refuseOnce(s)
			commit(s, attemptOf(s, "t", one))
			commit(s, attemptOf(s, "t"))
		}},
		{"the rest after a refusal, an earlier commit unknown", "other adds", func(s *Store) {
			s.Fault = func(c Call) Fault {
				if c.N == 1 {
					return Fault{Err: ErrInjected, Late: 99}
				}
				return RefuseOn(c, func(merge.SlottedAdd) bool { return true })
			}
			commit(s, attemptOf(s, "t", one))
			commit(s, attemptOf(s, "t", one))
			a := attemptOf(s, "t")
			a.Except = []string{"e"}
			commit(s, a)
		}},
		{"claim after the commit", "after Commit", func(s *Store) {
			commit(s, attemptOf(s, "t"))
			put(s, claimOf(s, "e", "t"))
		}},
		{"take over an undecided attempt", "undecided", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			_, _ = s.TakeClaim(ctx, claimOf(s, "e", "u"), "t")
		}},
		{"take over a counted event", "has counted", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			commit(s, attemptOf(s, "t"))
			_, _ = s.TakeClaim(ctx, claimOf(s, "e", "u"), "t")
		}},
		{"take over a counted event at its expiry", "", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			commit(s, attemptOf(s, "t"))
			s.Clock.Advance(time.Hour)
			_, _ = s.TakeClaim(ctx, claimOf(s, "e", "u"), "t")
		}},
		{"take over a counted event just before its expiry", "has counted", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			commit(s, attemptOf(s, "t"))
			s.Clock.Advance(time.Hour - time.Minute)
			_, _ = s.TakeClaim(ctx, claimOf(s, "e", "u"), "t")
		}},
		{"take over an undecided attempt past its expiry", "undecided", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			s.Clock.Advance(2 * time.Hour)
			_, _ = s.TakeClaim(ctx, claimOf(s, "e", "u"), "t")
		}},
		{"take over an event that was left out", "", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			a := attemptOf(s, "t")
			a.Except = []string{"e"}
			commit(s, a)
			_, _ = s.TakeClaim(ctx, claimOf(s, "e", "u"), "t")
		}},
		{"release a counted event", "counted again", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			commit(s, attemptOf(s, "t"))
			_ = s.Release(ctx, "e", "t")
		}},
		{"release while the commit may land", "may still land", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			s.Fault = func(Call) Fault { return Fault{Err: ErrInjected, Late: 9} }
			commit(s, attemptOf(s, "t"))
			s.Fault = nil
			_ = s.Release(ctx, "e", "t")
		}},
		{"release where no commit can land any more", "", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			s.Fault = func(Call) Fault { return Fault{Err: ErrThrottle} }
			commit(s, attemptOf(s, "t"))
			s.Fault = nil
			_ = s.Release(ctx, "e", "t")
		}},
		{"release where no commit was tried", "", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			_ = s.Release(ctx, "e", "t")
		}},
		{"commit after the release", "neither holds nor excepts", func(s *Store) {
			put(s, claimOf(s, "e", "t"))
			_ = s.Release(ctx, "e", "t")
			commit(s, attemptOf(s, "t"))
		}},
		{"commit over a claim whose reply is unknown", "neither holds nor excepts", func(s *Store) {
			s.Fault = func(Call) Fault { return Fault{Err: ErrInjected, Late: 9} }
			put(s, claimOf(s, "e", "t"))
			s.Fault = nil
			commit(s, attemptOf(s, "t"))
		}},
		{"commit over another's claim", "neither holds nor excepts", func(s *Store) {
			put(s, claimOf(s, "e", "u"))
			put(s, claimOf(s, "e", "t"))
			commit(s, attemptOf(s, "t"))
		}},
		{"commit beside a duplicate", "", func(s *Store) {
			put(s, claimOf(s, "e", "u"))
			commit(s, attemptOf(s, "u"))
			put(s, claimOf(s, "e", "t"))
			commit(s, attemptOf(s, "t"))
		}},
		{"call on a context that is done", "context that is done", func(s *Store) {
			done, cancel := context.WithCancel(ctx)
			cancel()
			_, _ = s.FindRecord(done, "t")
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := &journal{}
			test.do(New(j))
			j.want(t, test.want)
		})
	}
}

// refuseOnce makes the first Commit that has adds fail for its add to hour.
func refuseOnce(s *Store) {
	done := false
	s.Fault = func(c Call) Fault {
		if c.Method != Commit || done {
			return Fault{}
		}
		done = true
		return RefuseOn(c, func(a merge.SlottedAdd) bool { return a.Cell == hour })
	}
}
