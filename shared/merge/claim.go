package merge

import (
	"context"
	"errors"
)

// claimRounds bounds how often a claim that keeps changing hands is tried.
const claimRounds = 3

// claim takes as many of the chunk's events as it can.
func (a *attempt) claim(ctx context.Context) {
	free := make([]int, len(a.holds)) // positions that seem to have no row
	for pos := range free {
		free[pos] = pos
	}
	var rivals []rival
	for range claimRounds {
		gone, met := a.put(ctx, free)
		free, rivals = a.contest(ctx, append(rivals, met...))
		if free = append(free, gone...); len(free)+len(rivals) == 0 {
			return
		}
	}
	for _, r := range rivals {
		free = append(free, r.pos)
	}
	for _, pos := range free {
		a.blame(pos, errRestless)
	}
}

// put claims the events at want. It returns those whose row went away meanwhile, and those that others hold.
//
// Crash window: rows may stand from here on that name an attempt without a record. Whoever finds one waits for its
// lease, aborts the attempt and takes the event over.
func (a *attempt) put(ctx context.Context, want []int) (gone []int, met []rival) {
	t := tries{m: a.call.m, call: "claim"}
	for len(want) > 0 {
		claims := make([]Claim, len(want))
		for i, pos := range want {
			claims[i] = a.claimFor(pos)
		}
		var again []int
		var cause error
		for i, reply := range a.call.store.PutClaims(ctx, claims) {
			pos := want[i]
			switch {
			case reply.Err != nil:
				a.missed(pos, reply.Err)
				if retryable(reply.Err) {
					again, cause = append(again, pos), worse(cause, reply.Err)
				} else {
					a.blame(pos, t.stopped(reply.Err))
				}
			case reply.Standing.Token == a.token:
				a.holds[pos] = held
			case reply.Standing.Token == "":
				gone = append(gone, pos)
			default:
				met = append(met, rival{pos, reply.Standing})
			}
		}
		if len(again) == 0 {
			break
		}
		if err := t.next(ctx, cause); err != nil {
			for _, pos := range again {
				a.blame(pos, err)
			}
			break
		}
		want = again
	}
	return gone, met
}

// missed notes that a claim on pos was not answered.
func (a *attempt) missed(pos int, err error) {
	if !notApplied(err) {
		a.holds[pos] = unsure
	}
}

// worse returns the error that asks for the longer wait.
func worse(a, b error) error {
	if a == nil || errors.Is(b, ErrThrottled) || turnedAway(a) && !errors.Is(a, ErrThrottled) {
		return b
	}
	return a
}
