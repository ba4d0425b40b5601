package mergetest

import (
	"errors"
	"fmt"
	"slices"

	"abacus/shared/merge"
	"abacus/shared/tally"

	"pgregory.net/rapid"
)

// mute takes misuse reports of a model that is driven at random.
type mute struct{}

func (mute) Helper()                   {}
func (mute) Errorf(string, ...any)     {}
func (mute) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// answersAsModel makes random calls on few events, tokens and counters, and compares every answer and every total with
// those of the Store in memory.
func answersAsModel(s *suite) {
	if strict, ok := s.Store.(*Store); ok {
		strict.t = mute{}
	}
	check := 0
	rapid.Check(s.T, func(t *rapid.T) {
		check++
		model := New(mute{})
		model.Clock.Advance(s.Now().Sub(model.Clock.Now()))
		d := &duel{suite: s, t: t, model: model, name: fmt.Sprintf("%s-%d", s.prefix, check)}
		d.attempts = map[merge.Token]merge.Attempt{}
		for range rapid.IntRange(1, 25).Draw(t, "calls") {
			d.step()
		}
		for i := range 3 {
			cell := d.cell(i)
			if got, want := s.Total(cell), model.Total(cell); got != want {
				t.Fatalf("counter %d is %s, want %s", i, got, want)
			}
		}
	})
}

type duel struct {
	*suite
	t        *rapid.T
	model    *Store
	name     string
	attempts map[merge.Token]merge.Attempt
}

func (d *duel) cell(i int) tally.Cell { return d.suite.cell(fmt.Sprint(d.name, i)) }

func (d *duel) draw(label string, n int) int { return rapid.IntRange(0, n-1).Draw(d.t, label) }

func (d *duel) someToken(label string) merge.Token {
	return merge.Token(fmt.Sprintf("%s-t%d", d.name, d.draw(label, 4)))
}

func (d *duel) someClaim() merge.Claim {
	claim := d.claim(fmt.Sprintf("%s-e%d", d.name, d.draw("event", 3)), d.someToken("token"))
	if d.draw("expired", 8) == 0 {
		claim.Lease, claim.Expires = claim.Lease.Add(-2*claimFor), claim.Expires.Add(-2*claimFor)
	}
	return claim
}

// someAttempt returns what a token commits: always the same but for its slots, as the contract demands.
func (d *duel) someAttempt() merge.Attempt {
	token := d.someToken("token")
	a, known := d.attempts[token]
	if !known {
		a = d.attempt(token)
		for i := range 3 {
			delta := rapid.Int64().Draw(d.t, "delta")
			a.Adds = append(a.Adds, merge.SlottedAdd{Cell: d.cell(i), Delta: tally.SumOf(delta)})
		}
		for i := range d.draw("exceptions", 3) {
			a.Except = append(a.Except, fmt.Sprintf("%s-e%d", d.name, i))
		}
		d.attempts[token] = a
	}
	a.Adds = slices.Clone(a.Adds)
	for i := range a.Adds {
		a.Adds[i].Slot = d.draw("slot", 3)
	}
	return a
}

func (d *duel) step() {
	store, model := d.Store, d.model
	switch Method([]Method{PutClaims, TakeClaim, FindRecord, Abort, Commit, Release}[d.draw("method", 6)]) {
	case PutClaims:
		claims := []merge.Claim{d.someClaim()}
		got, want := store.PutClaims(d.ctx, claims)[0], model.PutClaims(d.ctx, claims)[0]
		d.sameClaim(PutClaims, got.Standing, want.Standing, got.Err)
	case TakeClaim:
		claim, from := d.someClaim(), d.someToken("from")
		got, err := store.TakeClaim(d.ctx, claim, from)
		want, _ := model.TakeClaim(d.ctx, claim, from)
		d.sameClaim(TakeClaim, got, want, err)
	case FindRecord:
		token := d.someToken("token")
		got, err := store.FindRecord(d.ctx, token)
		want, _ := model.FindRecord(d.ctx, token)
		d.sameRecord(FindRecord, got, want, err, nil)
	case Abort:
		token := d.someToken("token")
		got, err := store.Abort(d.ctx, token, d.outlives())
		want, _ := model.Abort(d.ctx, token, d.outlives())
		d.sameRecord(Abort, got, want, err, nil)
	case Commit:
		a := d.someAttempt()
		got, err := store.Commit(d.ctx, a)
		want, wantErr := model.Commit(d.ctx, a)
		d.sameRecord(Commit, got, want, err, wantErr)
	case Release:
		claim := d.someClaim()
		if err := store.Release(d.ctx, claim.Event, claim.Token); err != nil {
			d.t.Fatalf("Release: %v", err)
		}
		_ = model.Release(d.ctx, claim.Event, claim.Token)
	}
}

func (d *duel) sameClaim(method Method, got, want merge.Claim, err error) {
	same := got.Token == want.Token
	if want.Token != "" {
		same = same && got.Event == want.Event && got.Serial == want.Serial && got.Lease.Equal(want.Lease) &&
			got.Expires.Equal(want.Expires)
	}
	if err != nil || !same {
		d.t.Fatalf("%s: %+v, %v, want %+v", method, got, err, want)
	}
}

func (d *duel) sameRecord(method Method, got, want merge.Record, err, wantErr error) {
	var refused, wantRefused *merge.RefusedError
	if errors.As(wantErr, &wantRefused) {
		if !errors.As(err, &refused) || !slices.Equal(refused.Adds, wantRefused.Adds) {
			d.t.Fatalf("%s: %v, want %v", method, err, wantErr)
		}
		return
	}
	if err != nil || got.State != want.State || !sameSet(got.Except, want.Except) {
		d.t.Fatalf("%s: %+v, %v, want %+v", method, got, err, want)
	}
}
