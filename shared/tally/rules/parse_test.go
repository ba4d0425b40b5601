package rules

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/tally"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestParse_ReportsEveryFaultAtOnce(t *testing.T) {
	text, err := os.ReadFile("testdata/faults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := Parse("counters.yaml", text)
	if err == nil || set != nil {
		t.Fatal("a file full of faults was accepted")
	}
	checkFaults(t, err)
	golden := filepath.Join("testdata", "faults.golden")
	got := err.Error() + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the faults differ from %s; read them, then run with -update\n%s", golden, got)
	}
}

// checkFaults holds what is true of every error of Parse.
func checkFaults(t interface{ Errorf(string, ...any) }, err error) []*Fault {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Errorf("not a join of faults: %v", err)
		return nil
	}
	var faults []*Fault
	for _, err := range joined.Unwrap() {
		fault, ok := err.(*Fault)
		if !ok {
			t.Errorf("%T is not a *Fault", err)
			continue
		}
		if fault.Line < 1 || fault.Column < 1 || fault.What == "" || fault.Remedy == "" || fault.File == "" {
			t.Errorf("a fault does not say where, what and what to do: %+v", *fault)
		}
		faults = append(faults, fault)
	}
	if !slices.IsSortedFunc(faults, func(a, b *Fault) int { return a.Line - b.Line }) {
		t.Errorf("the faults are not in the order of the file:\n%v", err)
	}
	return faults
}

// rule returns a file with one counter, whose members are given line by line.
func rule(members ...string) string {
	return "counters:\n  - name: c\n    " + strings.Join(members, "\n    ") + "\n"
}

// parse compiles a file that must be good.
func parse(t testing.TB, text string) *Set {
	t.Helper()
	set, err := Parse("counters.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return set
}

// refuse compiles a file that must have exactly one fault, with each of the given parts in its text.
func refuse(t testing.TB, text string, parts ...string) {
	t.Helper()
	_, err := Parse("counters.yaml", []byte(text))
	if err == nil {
		t.Errorf("accepted:\n%s", text)
		return
	}
	if faults := checkFaults(t, err); len(faults) != 1 {
		t.Errorf("want one fault, got\n%v\nin\n%s", err, text)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v\nlacks %q", err, part)
		}
	}
}

func TestParse_EveryMemberTogether(t *testing.T) {
	set := parse(t, `
counters:
  - name: flights
    match: origin != "" && distance > 0     # a comment
    id: flight_id
    time: {path: date, layout: "2006/01/02 15:04", zone: UTC}
    max_ahead: 1d
    keys: ["all", "origin/{origin}", "route/{origin}/{destination}"]
    add: 1
    windows: {all: forever, 1d: 400d, 1h: 14d}
`)
	e, expired, err := try(set, "s", flight) // of the day before
	if err != nil || expired != 0 || len(e) != 1 || len(e[0].Adds) != 9 || e[0].ID != "flights\x1ff00001" {
		t.Errorf("%+v, %d, %v", e, expired, err)
	}
	e, expired, err = try(set, "s", strings.Replace(flight, "2026", "2001", 1))
	if err != nil || expired != 6 || len(e) != 1 || len(e[0].Adds) != 3 {
		t.Errorf("%+v, %d, %v", e, expired, err)
	}
}

func TestParse_FilesThatAreNoRules(t *testing.T) {
	for text, part := range map[string]string{
		"":                          "not one YAML document",
		"# nothing\n":               "not one YAML document",
		"counters: [":               "counters.yaml:2:1: this is not YAML",
		"a: b\n---\ncounters: []\n": "not one YAML document",
		"[]":                        "the file is not a mapping",
		"counters":                  "the file is not a mapping",
		"counters: []":              "the file has no counters",
		"counters: {}":              "counters is not a list",
		"{}":                        "the file has no counters",
		"counters:":                 "is empty",
		"counters: \xff\xfe":        "counters.yaml:1:",
		"counters: [&a [*a]]":       "a counter is not a mapping",
	} {
		_, err := Parse("counters.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v; want %q", text, err, part)
			continue
		}
		checkFaults(t, err)
	}
}

func TestParse_LimitsAndOnePast(t *testing.T) {
	keys := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("k%d", i))
		}
		return "keys: [" + strings.Join(list, ", ") + "]"
	}
	path := func(names int) string { return strings.TrimSuffix(strings.Repeat("a.", names), ".") }
	nodes := func(n int) string { return "match: x" + strings.Repeat(" + x", n) + " > 0" } // 1 + 2n + 2 nodes
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("counters:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {name: c%d, id: x, keys: [all]}\n", i)
		}
		return b.String()
	}
	named := func(n int) string { return "counters: [{name: " + strings.Repeat("n", n) + ", keys: [all]}]" }
	all := func(member string) string { return rule(member, "keys: [all]") }
	for _, c := range []struct{ what, at, past, part string }{
		{"keys", rule(keys(MaxAdds)), rule(keys(MaxAdds + 1)), "100 adds"},
		{"keys × windows", rule(keys(33), "windows: {all: forever, 1d: 1d, 1h: 1d}"),
			rule(keys(34), "windows: {all: forever, 1d: 1d, 1h: 1d}"), "102 adds"},
		{"name", named(maxName), named(maxName + 1), "65 bytes"},
		{"path names", all("id: " + path(maxDepth)), all("id: " + path(maxDepth+1)), "16 names"},
		{"path bytes", all("id: " + strings.Repeat("a", maxPath)), all("id: " + strings.Repeat("a", maxPath+1)), "256 bytes"},
		{"key", rule("keys: [" + strings.Repeat("k", MaxKey) + "]"), rule("keys: [" + strings.Repeat("k", MaxKey+1) + "]"),
			"1024 bytes"},
		{"scale", all("add: {path: p, scale: 18}"), all("add: {path: p, scale: 19}"), "0 to 18"},
		{"negative scale", all("add: {path: p, scale: 0}"), all("add: {path: p, scale: -1}"), "0 to 18"},
		{"constant", all("add: 9223372036854775807"), all("add: 9223372036854775808"), "64 bits"},
		{"negative constant", all("add: -9223372036854775808"), all("add: -9223372036854775809"), "64 bits"},
		{"expression's nodes", all(nodes(126)), all(nodes(127)), "exceeds maximum allowed nodes"},
		{"counters", many(maxCounters), many(maxCounters + 1), "1000 counters"},
		{"retention", rule("keys: [all]", "windows: {1d: 36500d}"), rule("keys: [all]", "windows: {1d: 36501d}"), "36500d"},
		{"window", rule("keys: [all]", "windows: {3650d: 1d}"), rule("keys: [all]", "windows: {3651d: 1d}"), "3650d"},
		{"file", all("match: x") + strings.Repeat("#", maxFile-len(all("match: x"))),
			all("match: x") + strings.Repeat("#", maxFile+1-len(all("match: x"))), "262144 bytes"},
	} {
		t.Run(c.what, func(t *testing.T) {
			parse(t, c.at)
			refuse(t, c.past, c.part)
		})
	}
}

func TestParse_RefusesWhatItMightMisread(t *testing.T) {
	all := func(member string) string { return rule(member, "keys: [all]") }
	for _, c := range []struct{ text, part string }{
		{all("add: 0x10"), "plain digits"}, {all("add: 1_000"), "plain digits"}, {all("add: 010"), "plain digits"},
		{all("add: 1e3"), "plain digits"}, {all("add: true"), "plain digits"}, {all("add: [1]"), "plain digits"},
		{all(`add: "1"`), "drop the quotes"}, {all("add: .5"), "plain digits"}, {all("add: 0"), "counts nothing"},
		{all("id: 7"), "in quotes"}, {all("match: true"), "in quotes"}, {rule("keys: [2001-01-01]"), "in quotes"},
		{rule("keys: [all, null]"), "in quotes"}, {rule("keys: ['{}']"), "none of them is empty"},
		{rule("keys: ['{ a }']"), "drop the blanks"}, {rule("keys: ['a}']"), "write }}"}, {rule("keys: ['{a']"), "write {{"},
		{rule("keys: ['{a{b}}']"), `\{`}, {rule("keys: ['{a.}']"), "none of them is empty"}, {rule(`keys: ['{a\}']`),
			"write {{"},
		{all("id: tags[]"), "lists belong in keys"}, {all("add: tags[]"), "lists belong in keys"},
		{all(`id: 'a\'`), "backslash"}, {all("scope: s"), "without id"}, {all("max_ahead: 1h"), "without time"},
		{rule("id: x", "scope: 'a b'", "keys: [all]"), "not a name"},
		{rule("keys: [all]", "windows: {all: 30d}"), "all: forever"}, {rule("keys: [all]", "windows: {24h: 30d}"),
			"write 1d"},
		{rule("keys: [all]", "windows: {1d: 0d}"), "such as 14d"}, {rule("keys: [all]", "windows: {1d: 7}"), "14d"},
		{rule("keys: [all]", "windows: {1d: always}"), "forever"}, {rule("keys: [all]", "windows: [1d]"), "not a mapping"},
		{all("time: {path: t, unit: ns}"), "unit: ms"}, {all("time: {path: t, zone: UTC}"), "add layout"},
		{all("time: {path: t, unit: s, layout: '2006-01-02'}"), "keep layout"},
		{all("time: {path: t, layout: '2006-01-02 03:04'}"), "half of the day"},
		{all("time: {path: t, layout: '02 15:04'}"), "year"},
		{all("time: {path: t, layout: '2006-01'}"), "day"}, {all("time: {path: t, layout: 'YYYY-MM-DD'}"), "reference time"},
		{all("time: {path: t, layout: '2006-01-02 15:04 MST'}"), "abbreviation"},
		{all("time: {path: t, layout: '2006-01-02', zone: Local}"), "Europe/Berlin"},
		{all("time: {path: t, layout: '2006-01-02', zone: Mars/Olympus}"), "Europe/Berlin"},
		{all("<<: {add: 1}"), "not text"}, {all("Match: x"), `no member "Match"`},
	} {
		refuse(t, c.text, c.part, "counters.yaml:", `counter "c": `)
	}
	refuse(t, "counters: [{name: 'a|b', keys: [all]}]", "other characters")
	refuse(t, "counters: [{name: 1, keys: [all]}]", "in quotes")
	refuse(t, "counters: [{name: a, keys: [all]}, {name: a, keys: [all]}]", "taken in line 1")
}

func TestParse_RefusesCountersThatTogetherMakeEveryRecordBad(t *testing.T) {
	keys := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("k%d", i))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	file := func(first, second string, n int) string {
		return fmt.Sprintf("counters:\n  - {name: a, %skeys: %s}\n  - {name: b, %skeys: %s}\n", first, keys(50), second,
			keys(n))
	}
	parse(t, file("", "", 49))
	refuse(t, file("", "", 50), "share one event", "counters.yaml:3:")
	parse(t, file("id: x, ", "", 50))
	parse(t, file("id: x, ", "id: x, ", 50))
	refuse(t, file("id: x, ", "id: x, scope: a, ", 50), "share one event")
	parse(t, file("", "match: x > 0, ", 50)) // only some records
}

func TestParse_AliasesAndDefaults(t *testing.T) {
	set := parse(t, `
counters:
  - name: a
    keys: [all]
    windows: &kept {all: forever, 1d: 400d}
  - {name: b, keys: [all, "{x}"], windows: *kept}
  - {name: c, keys: [all]}
`)
	var got []string
	for _, c := range set.Counters() {
		got = append(got, fmt.Sprint(c.Line, " ", c.Name, c.Keys))
		for _, w := range c.Windows {
			got = append(got, fmt.Sprint(w.Window, "/", w.Retention))
		}
	}
	want := []string{"3 a[all]", "all/0s", "1d/9600h0m0s", "6 b[all {x}]", "all/0s", "1d/9600h0m0s", "7 c[all]", "all/0s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestLoad_DigestTellsFilesApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	write := func(text string) *Set {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	one, two := write(rule("keys: [all]")), write(rule("keys: [all]", "add: 2"))
	if len(one.Digest()) != 12 || one.Digest() == two.Digest() || one.Digest() != parse(t, rule("keys: [all]")).Digest() {
		t.Errorf("digests %q, %q", one.Digest(), two.Digest())
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var fault *Fault
	if _, err := Load(path); !errors.As(err, &fault) {
		t.Errorf("a file past the limit: %v", err)
	}
}

func TestLoad_ShippedRulesCountFlights(t *testing.T) {
	set, err := Load("../../../functions/counters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	flights := []string{
		`{"flight_id":"f00001","date":"2001/01/01 00:47","delay":66,"distance":1750,"origin":"DTW","destination":"LAS"}`,
		`{"flight_id":"f00003","date":"2001/01/01 01:24","delay":-5,"distance":407,"origin":"LAS","destination":"OAK"}`,
		`{"flight_id":"f00004","date":"2001/01/02 01:39","delay":4,"distance":256,"origin":"LAS","destination":"PHX"}`,
	}
	got := map[string]int64{}
	for i, flight := range flights {
		events, expired, err := set.Events(nil, Document{Source: fmt.Sprint("s/", i), JSON: []byte(flight)}, time.Now())
		if err != nil || expired != 0 {
			t.Fatal(err, expired)
		}
		for _, e := range events {
			for _, a := range e.Adds {
				if a.Expires != 0 {
					t.Errorf("%v is forgotten at %d", a.Cell, a.Expires)
				}
				got[fmt.Sprint(a.Cell.Counter, "|", a.Cell.Key, "|", a.Cell.Window, "|", a.Cell.Bucket)] += a.Delta
			}
		}
	}
	for cell, want := range map[string]int64{
		"flights|all|all|0": 3, "flights|origin/LAS|all|0": 2, "flights|route/LAS/PHX|1d|978393600": 1,
		"flights|all|1d|978307200": 2, "delay_minutes|all|all|0": 65, "delay_minutes|origin/LAS|all|0": -1,
		"long_flights|all|all|0": 1,
	} {
		if got[cell] != want {
			t.Errorf("%s = %d, want %d", cell, got[cell], want)
		}
	}
	if len(set.Counters()) != 3 || set.Counters()[0].Windows[1].String() != "1d" || tally.All != "all" {
		t.Errorf("counters %+v", set.Counters())
	}
}
