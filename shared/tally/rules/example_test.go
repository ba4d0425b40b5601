package rules_test

import (
	"fmt"
	"strings"
	"time"

	"abacus/shared/tally/rules"
)

func ExampleSet_Events() {
	set, err := rules.Parse("counters.yaml", []byte(`
counters:
  - name: sales
    id: order.id
    time: order.placed
    keys: [all, "shop/{shop}"]
    add: {path: order.price, scale: 2}
    windows: {all: forever, 1d: 400d}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, json := range []string{
		`{"shop":"Ulm","order":{"id":7,"placed":"2026-11-30T09:30:00+01:00","price":19.90}}`,
		`{"shop":"Ulm","order":{"id":8,"placed":"2026-11-30T09:31:00+01:00","price":"19.90"}}`,
	} {
		events, _, err := set.Events(nil, rules.Document{Source: "queue/m1", JSON: []byte(json)}, now)
		if err != nil {
			fmt.Println(err)
		}
		for _, event := range events {
			fmt.Println(strings.ReplaceAll(event.ID, "\x1f", "␟"))
			for _, add := range event.Adds {
				fmt.Println(" ", add.Cell.Key, add.Cell.Window, time.Unix(add.Cell.Bucket, 0).UTC().Format(time.DateOnly), add.Delta)
			}
		}
	}
	// Output:
	// sales␟7
	//   all all 1970-01-01 1990
	//   all 1d 2026-11-30 1990
	//   shop/Ulm all 1970-01-01 1990
	//   shop/Ulm 1d 2026-11-30 1990
	// bad record: counters.yaml:7: counter "sales": add: member "order.price" is text; send a number without quotes
}

func ExampleParse_faults() {
	_, err := rules.Parse("counters.yaml", []byte(`counters:
  - name: sales
    add: 1.5
    windows: {60m: 14d}
`))
	fmt.Println(err)
	// Output:
	// counters.yaml:2:5: counter "sales": it has no keys; list what to count by, or keys: ["all"] for one total
	// counters.yaml:3:10: counter "sales": add is not such a whole number; write one within 64 bits, in plain digits, or the path of a member; {path: price, scale: 2} adds decimals exactly
	// counters.yaml:4:15: counter "sales": window "60m" is the window 1h; write 1h
}
