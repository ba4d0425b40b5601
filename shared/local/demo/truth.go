package demo

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

// truth is what a run must end with.
type truth struct {
	method  string // how it was found, for people
	counts  counts
	refused []record // published records that must end in a dead-letter queue
}

// flightTruth counts flights without the suite's own code.
func flightTruth(events [][]byte, t traffic) (truth, error) {
	all, err := countFlights(events)
	if err != nil {
		return truth{}, err
	}
	out := truth{method: "counted from the file by code that shares nothing with the functions", counts: all}
	for _, r := range slices.Concat(t.kinesis, t.sqs) {
		if r.bad {
			out.refused = append(out.refused, r)
		}
	}
	return out, nil
}

// errMoving reports a count that depends on the moment at which a record arrived.
var errMoving = errors.New("a window began or ended while the events were published; run it again")

// ruleTruth counts what was published between from and to by the rule file itself, so it shows that nothing was lost or
// counted twice on the way, and not that the rules say what their author meant.
func ruleTruth(set *rules.Set, t traffic, from, to time.Time) (truth, error) {
	out, err := countByRules(set, t, from)
	if err != nil {
		return truth{}, err
	}
	later, err := countByRules(set, t, to)
	if err != nil {
		return truth{}, err
	}
	if !maps.Equal(out.counts, later.counts) || len(out.refused) != len(later.refused) {
		return truth{}, errMoving
	}
	return out, nil
}

func countByRules(set *rules.Set, t traffic, now time.Time) (truth, error) {
	out := truth{method: "counted from the file by the rules themselves", counts: counts{}}
	opener, seen := envelope.NewOpener(set.Envelopes()), map[string]bool{}
	for i, r := range slices.Concat(t.kinesis, t.sqs) {
		identity := "published/" + strconv.Itoa(i)
		var events []tally.Event
		_, err := opener.Documents(r.payload, func(d envelope.Document) error {
			doc := rules.Document{Source: d.Identity("published", identity), Arrived: now, JSON: d.JSON}
			if !d.Arrived.IsZero() {
				doc.Arrived = d.Arrived
			}
			var err error
			events, _, err = set.Events(events, doc, now)
			return err
		})
		if err != nil {
			out.refused = append(out.refused, r)
			continue
		}
		for _, e := range events {
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			for _, add := range e.Adds {
				sum := new(big.Int).Add(big.NewInt(out.counts[add.Cell]), big.NewInt(add.Delta))
				if !sum.IsInt64() {
					return truth{}, fmt.Errorf("counter %s leaves 64 bits; this comparison does not go that far", add.Cell.Counter)
				}
				out.counts[add.Cell] = sum.Int64()
			}
		}
	}
	return out, nil
}
