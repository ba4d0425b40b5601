package merge

import (
	"errors"
	"fmt"

	"abacus/shared/tally"
)

// Reasons for Refused that lie in the event itself.
var (
	ErrNoID        = errors.New("the event has no identity; give it one that every delivery repeats")
	ErrTooManyAdds = fmt.Errorf("the event moves more than %d counters, which no transaction can; split it, or give its "+
		"rule fewer keys and windows", MaxAdds)
	ErrRepeatedCell = errors.New("the event moves one counter twice; name each key once")
)

// plan is what a merge intends: which events stand for which, what each moves, and which go together.
type plan struct {
	events []tally.Event
	ids    []string // bounded identities
	first  []int32  // the first event with the same identity, itself included; none for one that is settled already
	cells  []tally.Cell
	refs   []int32 // cells, by index, of all adds, event after event
	from   []int32 // event i's adds are refs[from[i]:from[i+1]]
	shared []bool  // cells, by index, that more than one chunk moves
	chunks []chunk
}

const none int32 = -1

// chunk is what one attempt takes on.
type chunk struct {
	events []int32
	cells  []int32 // sorted
}

// newPlan settles in outcomes the events that need no attempt, and divides the others into chunks.
func newPlan(events []tally.Event, outcomes []Outcome, limits limits) *plan {
	adds := 0
	for _, event := range events {
		if len(event.Adds) <= MaxAdds {
			adds += len(event.Adds)
		}
	}
	p := &plan{
		events: events, ids: make([]string, len(events)), first: make([]int32, len(events)),
		refs: make([]int32, 0, adds), from: make([]int32, 1, len(events)+1),
	}
	few := min(adds, 256) // most batches move no more cells
	p.cells = make([]tally.Cell, 0, few)
	interned := make(map[tally.Cell]int32, few)
	lastUser := make([]int32, 0, few) // by cell: the last event that named it
	byID := make(map[string]int32, len(events))
	work := make([]int32, 0, len(events))
	for i, event := range events {
		err := p.intern(int32(i), event, interned, &lastUser)
		p.from = append(p.from, int32(len(p.refs)))
		switch {
		case err != nil:
			outcomes[i], p.first[i] = Outcome{Status: Refused, Err: err}, none
			continue
		case len(event.Adds) == 0: // it moves nothing, so nothing need be remembered
			outcomes[i], p.first[i] = Outcome{Status: Counted}, none
			continue
		}
		p.ids[i] = tally.BoundID(event.ID)
		leader, repeated := byID[p.ids[i]]
		if !repeated {
			leader = int32(i)
			byID[p.ids[i]] = leader
			work = append(work, leader)
		}
		p.first[i] = leader
	}
	p.pack(work, limits)
	return p
}

// intern notes the cells of event, or says why it is refused.
func (p *plan) intern(i int32, event tally.Event, interned map[tally.Cell]int32, lastUser *[]int32) error {
	if event.ID == "" {
		return ErrNoID
	}
	if len(event.Adds) > MaxAdds {
		return ErrTooManyAdds
	}
	start := len(p.refs)
	before := 0 // where the event before has its cells; nearly always some of them are the same
	if i > 0 {
		before = int(p.from[i-1])
	}
	for j, add := range event.Adds {
		var cell int32
		known := before+j < start && p.cells[p.refs[before+j]] == add.Cell
		if known {
			cell = p.refs[before+j]
		} else {
			cell, known = interned[add.Cell]
		}
		if !known {
			cell = int32(len(p.cells))
			interned[add.Cell] = cell
			p.cells = append(p.cells, add.Cell)
			*lastUser = append(*lastUser, none)
		}
		if (*lastUser)[cell] == i {
			p.refs = p.refs[:start]
			return ErrRepeatedCell
		}
		(*lastUser)[cell] = i
		p.refs = append(p.refs, cell)
	}
	return nil
}

// refsOf returns the cells of event i, in the order of its adds.
func (p *plan) refsOf(i int32) []int32 { return p.refs[p.from[i]:p.from[i+1]] }

// contended reports whether two chunks move one cell.
func (p *plan) contended() bool {
	for _, shared := range p.shared {
		if shared {
			return true
		}
	}
	return false
}
