package mergetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

func putsWhereNoRow(s *suite) {
	token := s.token()
	if standing := s.put(s.event(1), token); standing.Token != token {
		s.Errorf("the put of a free event answers %+v", standing)
	}
	s.wantStanding(s.event(1), token)
}

func answersInOrder(s *suite) {
	first, second := s.token(), s.token()
	var odd, all []merge.Claim
	for i := range 60 {
		if i%2 == 1 {
			odd = append(odd, s.claim(s.event(i), first))
		}
		all = append(all, s.claim(s.event(i), second))
	}
	s.Store.PutClaims(s.ctx, odd)
	for i, reply := range s.Store.PutClaims(s.ctx, all) {
		want := []merge.Token{second, first}[i%2]
		if reply.Err != nil || reply.Standing.Token != want || reply.Standing.Event != all[i].Event {
			s.Fatalf("reply %d: %+v, want event %s with token %s", i, reply, all[i].Event, want)
		}
	}
}

func ownRowIsSuccess(s *suite) {
	token := s.token()
	s.put(s.event(1), token)
	if again := s.put(s.event(1), token); again.Token != token {
		s.Errorf("a second put with the same token answers %+v", again)
	}
}

func standingRowIsWhole(s *suite) {
	for i, serial := range []string{"", "stream/shardId-000000000001"} {
		claim := s.claim(s.event(i), s.token())
		claim.Serial = serial
		claim.Lease = claim.Lease.Add(time.Duration(i) * time.Second)
		s.Store.PutClaims(s.ctx, []merge.Claim{claim})
		got := s.put(s.event(i), s.token())
		same := got.Event == claim.Event && got.Token == claim.Token && got.Serial == claim.Serial &&
			got.Lease.Equal(claim.Lease) && got.Expires.Equal(claim.Expires)
		if !same {
			s.Errorf("standing %+v, want %+v", got, claim)
		}
	}
}

// expired puts a claim that is long past its expiry.
func (s *suite) expired(event string, token merge.Token) merge.Claim {
	old := s.claim(event, token)
	old.Lease, old.Expires = old.Lease.Add(-2*claimFor), old.Expires.Add(-2*claimFor)
	if reply := s.Store.PutClaims(s.ctx, []merge.Claim{old})[0]; reply.Err != nil || reply.Standing.Token != token {
		s.Fatalf("PutClaims: %+v", reply)
	}
	return old
}

// expiredRowStands: the attempt of such a row may be at work by a clock that is behind. If its row were put over, it
// could still commit.
func expiredRowStands(s *suite) {
	old := s.expired(s.event(1), s.token())
	for range 2 {
		got := s.put(s.event(1), s.token())
		if got.Token != old.Token || !got.Expires.Equal(old.Expires) || !got.Lease.Equal(old.Lease) {
			s.Errorf("the put over a row past its expiry answers %+v, want %+v", got, old)
		}
	}
	if again := s.Store.PutClaims(s.ctx, []merge.Claim{old})[0]; again.Err != nil || again.Standing.Token != old.Token {
		s.Errorf("a second put with the row's own token answers %+v", again)
	}
}

func expiredRowIsTaken(s *suite) {
	holder, from, token := s.token(), s.token(), s.token()
	s.expired(s.event(1), holder)
	s.abort(from)
	if standing := s.take(s.event(1), token, from); standing.Token != holder {
		s.Errorf("take from an attempt that does not hold the event answers %+v, want %q", standing, holder)
	}
	s.abort(holder)
	if standing := s.take(s.event(1), token, holder); standing.Token != token {
		s.Errorf("take answers %+v", standing)
	}
	s.wantStanding(s.event(1), token)
}

func anyNumberOfClaims(s *suite) {
	at := 0
	for _, n := range []int{0, 1, 24, 25, 26, 99, 101, 130} {
		token := s.token()
		claims := make([]merge.Claim, n)
		for i := range claims {
			claims[i] = s.claim(s.event(at+i), token)
		}
		at += n
		for round := range 2 {
			replies := s.Store.PutClaims(s.ctx, claims)
			if len(replies) != n {
				s.Fatalf("%d replies for %d claims", len(replies), n)
			}
			for i, reply := range replies {
				if reply.Err != nil || reply.Standing.Token != token || reply.Standing.Event != claims[i].Event {
					s.Fatalf("round %d, claim %d of %d: %+v", round, i, n, reply)
				}
			}
		}
	}
}

func anyIdentity(s *suite) {
	token := s.token()
	ids := []string{"'", `"`, "''", `\`, "?", "a|b", "a\nb", "ключ/鍵", " ", "claim", "\xff", "\xfe"}
	var claims []merge.Claim
	for _, id := range ids {
		claims = append(claims, s.claim(id+s.prefix, token))
	}
	claims = append(claims, s.claim(s.prefix+strings.Repeat("x", tally.MaxID-len(s.prefix)), token))
	for round := range 2 {
		for i, reply := range s.Store.PutClaims(s.ctx, claims) {
			if reply.Err != nil || reply.Standing.Token != token || reply.Standing.Event != claims[i].Event {
				s.Errorf("round %d, identity %q: %+v", round, claims[i].Event, reply)
			}
		}
	}
}

func oneWinnerPuts(s *suite) {
	const workers, events = 8, 30
	tokens := make([]merge.Token, workers)
	replies := make([][]merge.ClaimReply, workers)
	for i := range tokens {
		tokens[i] = s.token()
	}
	together(workers, func(w int) {
		claims := make([]merge.Claim, events)
		for i := range claims {
			claims[i] = s.claim(s.event(i), tokens[w])
		}
		replies[w] = s.Store.PutClaims(s.ctx, claims)
	})
	for i := range events {
		for w := range workers {
			if replies[w][i].Err != nil || replies[w][i].Standing.Token != replies[0][i].Standing.Token {
				s.Fatalf("event %d: worker 0 saw %+v, worker %d %+v", i, replies[0][i], w, replies[w][i])
			}
		}
		s.wantStanding(s.event(i), replies[0][i].Standing.Token)
	}
}

func takeReplaces(s *suite) {
	from, token := s.token(), s.token()
	s.put(s.event(1), from)
	s.abort(from)
	if standing := s.take(s.event(1), token, from); standing.Token != token {
		s.Errorf("take answers %+v", standing)
	}
	s.wantStanding(s.event(1), token)
}

func takeLeavesOthers(s *suite) {
	holder, from := s.token(), s.token()
	s.put(s.event(1), holder)
	s.abort(from)
	if standing := s.take(s.event(1), s.token(), from); standing.Token != holder {
		s.Errorf("take from an attempt that does not hold the event answers %+v, want %q", standing, holder)
	}
	s.wantStanding(s.event(1), holder)
}

func takeOfNothing(s *suite) {
	from, token := s.token(), s.token()
	s.abort(from)
	if standing := s.take(s.event(1), s.token(), from); standing.Token != "" {
		s.Errorf("take where there is no row answers %+v", standing)
	}
	if standing := s.put(s.event(1), token); standing.Token != token {
		s.Errorf("take where there is no row wrote one: %+v", standing)
	}
}

func takeAgain(s *suite) {
	from, token := s.token(), s.token()
	s.put(s.event(1), from)
	s.abort(from)
	s.take(s.event(1), token, from)
	if again := s.take(s.event(1), token, from); again.Token != token {
		s.Errorf("a second take with the same token answers %+v", again)
	}
}

func oneWinnerTakes(s *suite) {
	const workers = 8
	from := s.token()
	s.put(s.event(1), from)
	s.abort(from)
	saw := make([]merge.Token, workers)
	together(workers, func(w int) {
		standing, err := s.Store.TakeClaim(s.ctx, s.claim(s.event(1), merge.Token(fmt.Sprint(s.prefix, w))), from)
		if err != nil {
			s.Errorf("TakeClaim: %v", err)
		}
		saw[w] = standing.Token
	})
	for w := range saw {
		if saw[w] != saw[0] || saw[w] == from {
			s.Fatalf("workers saw %q", saw)
		}
	}
	s.wantStanding(s.event(1), saw[0])
}

func releaseDeletes(s *suite) {
	token, next := s.token(), s.token()
	s.put(s.event(1), token)
	s.abort(token)
	s.release(s.event(1), token)
	if standing := s.put(s.event(1), next); standing.Token != next {
		s.Errorf("after its release the event's row is %+v", standing)
	}
}

func releaseLeavesOthers(s *suite) {
	holder, other := s.token(), s.token()
	s.put(s.event(1), holder)
	s.abort(other)
	s.release(s.event(1), other)
	s.wantStanding(s.event(1), holder)
}

func releaseOfNothing(s *suite) {
	token := s.token()
	s.put(s.event(1), token)
	s.abort(token)
	s.release(s.event(2), token)
	s.release(s.event(1), token)
	s.release(s.event(1), token)
}

func contextDone(s *suite) {
	if strict, ok := s.Store.(*Store); ok {
		strict.DoneContexts = true
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	token := s.token()
	for _, reply := range s.Store.PutClaims(ctx, []merge.Claim{s.claim(s.event(1), token), s.claim(s.event(2), token)}) {
		if reply.Err == nil {
			s.Error("PutClaims gives a definite answer")
		}
	}
	_, take := s.Store.TakeClaim(ctx, s.claim(s.event(1), s.token()), s.abortedToken())
	_, find := s.Store.FindRecord(ctx, token)
	_, abort := s.Store.Abort(ctx, token, s.outlives())
	_, commit := s.Store.Commit(ctx, s.attempt(s.token(), s.add("k", 1, 0)))
	release := s.Store.Release(ctx, s.event(1), token)
	for method, err := range map[Method]error{
		TakeClaim: take, FindRecord: find, Abort: abort, Commit: commit, Release: release,
	} {
		if err == nil {
			s.Errorf("%s gives a definite answer", method)
		}
	}
}

func (s *suite) abortedToken() merge.Token {
	token := s.token()
	s.abort(token)
	return token
}
