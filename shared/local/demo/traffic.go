package demo

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// record is one thing to publish.
type record struct {
	payload []byte
	bad     bool // one of ours that can never be counted
}

// traffic is what goes through each source, in order.
type traffic struct {
	kinesis, sqs []record
	copies, bad  int
}

// newTraffic deals the events out evenly and sends every tenth of them a second time, as a record of its own through
// either source, at a random place that may be before the first. Bad records are dealt out in turn, Kinesis first, each
// at a random place. Everything random comes from seed.
func newTraffic(events, bad [][]byte, seed uint64) traffic {
	type placed struct {
		record
		place float64
		order int
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var sources [2][]placed
	put := func(source int, r record, place float64) {
		sources[source] = append(sources[source], placed{r, place, len(sources[source])})
	}
	t := traffic{bad: len(bad)}
	for i, event := range events {
		put(i%2, record{payload: event}, float64(i)/float64(len(events)))
		if i%10 == 9 {
			put(rng.IntN(2), record{payload: event}, rng.Float64())
			t.copies++
		}
	}
	for i, payload := range bad {
		put(i%2, record{payload: payload, bad: true}, rng.Float64())
	}
	ordered := func(list []placed) []record {
		slices.SortFunc(list, func(a, b placed) int {
			return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.order, b.order))
		})
		records := make([]record, len(list))
		for i, p := range list {
			records[i] = p.record
		}
		return records
	}
	t.kinesis, t.sqs = ordered(sources[0]), ordered(sources[1])
	return t
}

// badFlights returns five records that can never be counted as flights, each for another reason. The first, third and
// fifth go through Kinesis, which takes any bytes; the others through SQS, which takes text alone.
func badFlights() [][]byte {
	of := func(format string) []byte {
		return fmt.Appendf(nil, `{"flight_id":"x0000%s`, format)
	}
	return [][]byte{
		notJSON(),
		of(`2","date":"2001/02/03 04:05","delay":1,"distance":1200,"origin":"JFK","destination":"LA`),
		of(`3","date":"2001/02/03 04:05","delay":1,"distance":1200,"destination":"LAX"}`),
		of(`4","date":"2001/02/03 04:05","delay":"1","distance":1200,"origin":"JFK","destination":"LAX"}`),
		of(`5","date":"2001-02-30","delay":1,"distance":1200,"origin":"JFK","destination":"LAX"}`),
	}
}

// notJSON returns bytes that are not even text.
func notJSON() []byte { return []byte("\x00\xff\xfe not JSON \x80") }

// badForAnyRules returns five records that are no JSON documents, so that no rules can count them.
func badForAnyRules(event []byte) [][]byte {
	return [][]byte{
		notJSON(),
		bytes.Clone(event[:len(event)-1]),
		[]byte(`{"unquoted: 1}`),
		[]byte(`not JSON at all`),
		fmt.Appendf(nil, "%s}", event),
	}
}
