package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"abacus/shared/tally"
)

// counts are the numbers of a whole run, by cell.
type counts map[tally.Cell]int64

// flight is one event of the flights file.
type flight struct {
	ID          string `json:"flight_id"`
	Date        string `json:"date"`
	Delay       *int64 `json:"delay"`
	Distance    *int64 `json:"distance"`
	Origin      string `json:"origin"`
	Destination string `json:"destination"`
}

// countFlights says by hand what functions/counters.yaml says as rules, and shares nothing with what reads those
// rules: it is the truth that the suite's counts are held against. It counts each flight_id once. A line that is no
// flight is an error.
func countFlights(events [][]byte) (counts, error) {
	truth, seen := counts{}, map[string]bool{}
	for i, line := range events {
		f, err := parseFlight(line)
		if err != nil {
			return nil, fmt.Errorf("event %d is no flight (%w); give the rule file for these events too", i+1, err)
		}
		if seen[f.ID] {
			continue
		}
		seen[f.ID] = true
		at, err := time.Parse("2006/01/02 15:04", f.Date)
		if err != nil {
			return nil, fmt.Errorf("event %d is no flight (%w); give the rule file for these events too", i+1, err)
		}
		day := at.Unix() / 86400 * 86400
		from, route := "origin/"+f.Origin, "route/"+f.Origin+"/"+f.Destination
		for _, key := range []string{"all", from, route} {
			truth[tally.Cell{Counter: "flights", Key: key, Window: "all"}]++
			truth[tally.Cell{Counter: "flights", Key: key, Window: "1d", Bucket: day}]++
		}
		for _, key := range []string{"all", from} {
			truth[tally.Cell{Counter: "delay_minutes", Key: key, Window: "all"}] += *f.Delay
			if *f.Distance >= 1000 {
				truth[tally.Cell{Counter: "long_flights", Key: key, Window: "all"}]++
			}
		}
	}
	return truth, nil
}

func parseFlight(line []byte) (flight, error) {
	var f flight
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, err
	}
	if f.ID == "" || f.Origin == "" || f.Destination == "" || f.Delay == nil || f.Distance == nil {
		return f, fmt.Errorf("a member is missing")
	}
	return f, nil
}
