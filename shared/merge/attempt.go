package merge

import (
	"errors"
	"time"

	"abacus/shared/tally"
)

// recordMargin is how much longer a commit record lives than the claims that name it, so that no claim is ever found
// alive whose record is gone. Clocks that differ, and claims that land late, must stay below it.
const recordMargin = 24 * time.Hour

// ErrTakenOver reports that another delivery aborted this attempt. The events are that one's to count.
var ErrTakenOver = errors.New("another delivery of the events aborted this attempt; it or the next one counts them")

// hold is what an attempt knows about its claim on one event. Every state but counted is excepted in its commit record,
// save held itself; see DESIGN.md for the drawing.
type hold uint8

const (
	loose     hold = iota // no row of ours stands: never sent, turned away, or another's row was there
	unsure                // a claim was sent that may stand, or may still land
	held                  // the row is ours
	counted               // another attempt has counted the event
	elsewhere             // another attempt holds the event and may yet count it
	refused               // the row is ours, but the store can never apply the event's adds
)

// attempt is one try at one chunk, and all that is known about it.
type attempt struct {
	call    *call
	chunk   chunk
	worker  int
	token   Token
	lease   time.Time
	expires time.Time // of its claims
	holds   []hold    // by position in chunk.events
	why     []error   // by position, or nil as a whole
	order   Attempt   // what Commit was or will be called with
	cells   []int32   // of order.Adds
	record  Record    // as far as it is known
	err     error     // why the attempt did not commit
}

// begin names the attempt and dates its claims.
func (a *attempt) begin() error {
	a.token = a.call.m.cfg.NewToken()
	if a.token == "" {
		return errors.New("Config.NewToken returned an empty token; each must be new and not empty")
	}
	a.lease = a.call.lease()
	a.expires = a.call.m.cfg.Now().Add(a.call.m.cfg.Horizon)
	if a.expires.Before(a.lease) {
		a.expires = a.lease
	}
	a.holds = make([]hold, len(a.chunk.events))
	return nil
}

// recordExpires is when the attempt's own commit record may be forgotten.
func (a *attempt) recordExpires() time.Time { return a.expires.Add(recordMargin) }

func (a *attempt) event(pos int) *tally.Event { return &a.call.plan.events[a.chunk.events[pos]] }

func (a *attempt) id(pos int) string { return a.call.plan.ids[a.chunk.events[pos]] }

func (a *attempt) claimFor(pos int) Claim {
	return Claim{Event: a.id(pos), Token: a.token, Lease: a.lease, Expires: a.expires, Serial: a.event(pos).Serial}
}

// blame notes why the event at pos is not counted.
func (a *attempt) blame(pos int, err error) {
	if a.why == nil {
		a.why = make([]error, len(a.holds))
	}
	a.why[pos] = err
}

// finish ends an attempt whichever way it went: its events get the outcomes known by now, and what it leaves behind is
// noted for release.
func (c *call) finish(a *attempt) {
	a.settle()
	if len(a.leavings()) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leftover = append(c.leftover, a)
	}
}

// leavings returns the positions whose rows may be ours and do not stand for a counted event.
func (a *attempt) leavings() []int {
	var left []int
	for pos, h := range a.holds {
		if (h == unsure || h == refused || h == held) && !a.record.Counted(a.id(pos)) {
			left = append(left, pos)
		}
	}
	return left
}

// settle gives each event the outcome that follows from what is known now.
func (a *attempt) settle() {
	if a.holds == nil { // it failed before it could take anything
		a.call.failChunk(a.chunk, a.err)
		return
	}
	for pos, i := range a.chunk.events {
		a.call.outcomes[i] = a.outcome(pos)
	}
}

// errUnfinished stands where a contained panic left no other reason.
var errUnfinished = errors.New("not counted: the attempt ended early; the source will deliver the event again")

func (a *attempt) outcome(pos int) Outcome {
	h := a.holds[pos]
	switch {
	case h == counted:
		return Outcome{Status: Duplicate}
	case h == elsewhere:
		return Outcome{Status: InFlight, Err: ErrInFlight}
	case (h == held || h == refused) && a.record.Counted(a.id(pos)):
		return Outcome{Status: Counted}
	case h == refused && a.record.State != Undecided:
		return Outcome{Status: Refused, Err: a.why[pos]}
	}
	if a.why != nil && a.why[pos] != nil {
		return Outcome{Status: Failed, Err: a.why[pos]}
	}
	if a.err != nil {
		return Outcome{Status: Failed, Err: a.err}
	}
	return Outcome{Status: Failed, Err: errUnfinished}
}
