package rules

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse holds that no text makes the compiler panic, that every error is a list of faults with line and remedy, and
// that a file it accepts can be used.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/faults.yaml", "../../../functions/counters.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(rule(`match: len(tags) > 0 && a.b ?? false`, `keys: ["{tags[]}/{a\.b}", '{{x}}']`,
		"windows: {all: forever, 1h: 14d}"))
	f.Add(rule("id: id", "scope: s", "time: {path: t, layout: '2006-01-02T15:04:05Z07:00', zone: Asia/Kolkata}",
		"keys: [a]", "add: {path: p, scale: 2}"))
	f.Add("counters: [&a {name: a, keys: &k [x]}, {name: b, keys: *k, <<: *a}]")
	f.Add("counters: [{name: a, keys: [a], match: '$env[\"x y\"] == any(z, .q > 1) ? 1 in [1,2] : not true'}]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			t.Skip("long inputs only slow the search down")
		}
		set, err := Parse("f.yaml", []byte(text))
		if err != nil {
			if len(checkFaults(t, err)) == 0 {
				t.Errorf("an error without a fault: %v", err)
			}
			return
		}
		for _, document := range []string{`{}`, `{"a":1,"id":"x","t":1,"tags":["a",2],"p":1.25,"x":{"y":"z"}}`} {
			events, _, err := try(set, "s", document)
			if err != nil && !errors.Is(err, ErrBadRecord) {
				t.Errorf("%v", err)
			}
			for _, e := range events {
				if e.ID == "" || len(e.Adds) == 0 || len(e.Adds) > MaxAdds {
					t.Errorf("event %+v", e)
				}
			}
		}
	})
}

// fuzzed are rule files that differ in what they read.
var fuzzed = [][]plainRule{
	{{name: "c", id: "id", keys: []string{"all", "{a}", "{tags[]}"}, addPath: "n", windows: []plainWindow{{"all", 0, 0}}}},
	{{name: "c", timePath: "t", keys: []string{"{o.p}/{{x}}"}, addPath: "o.q", scale: 2,
		windows: []plainWindow{{"1h", 3600, 14 * 86400}, {"1w", 7 * 86400, 0}}},
		{name: "d", match: `a == "x"`, id: "o.p", scope: "c", keys: []string{"{a}{b}", "all"}, addConstant: 1,
			windows: []plainWindow{{"1d", 86400, 86400}}}},
	{{name: "c", timePath: "t", timeForm: "ms", match: `n > 1`, keys: []string{"t{tags[]}/{a}"}, addConstant: 3,
		windows: []plainWindow{{"all", 0, 0}, {"5d", 5 * 86400, 0}}},
		{name: "d", timePath: "t", timeForm: "s", keys: []string{"x"}, addConstant: 1, windows: []plainWindow{{"1s", 1, 0}}}},
	{{name: "c", timePath: "t", timeForm: "2006/01/02 15:04", id: "n", keys: []string{"{b}"}, addPath: "n", scale: 18,
		windows: []plainWindow{{"1h", 3600, 0}}}},
}

// largeExponent keeps the reference's big integers small; TestD5_HugeExponentsCostNothing has the others.
var largeExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3}`)

// FuzzEvents holds the decoder against the plain reference on any bytes.
func FuzzEvents(f *testing.F) {
	for which := range fuzzed {
		for _, document := range []string{
			`{"id":"e1","a":"x","b":true,"n":2,"tags":["x","y"],"t":"2026-11-30T11:00:00Z","o":{"p":"q","q":1.25}}`,
			`{"id":7,"a":1.0,"b":1.50,"n":12e-1,"tags":[1,true],"t":1796040000123,"o":{"p":-0,"q":-3}}`,
			`{"t":1796040000.5,"n":9223372036854775807,"a":"\ud83d\ude00","b":"é","tags":["\u0000"]}`,
			`{"t":"2026/11/29 23:59","n":0.000000000000000001,"b":"|","a":"x"}`,
			"\xef\xbb\xbf {\"a\":\"x\",\"A\":\"y\",\"\\u0061\":1}\n", `{"a":"\ud800","b":"` + "\xff" + `"}`, `[]`,
			`{"a":1}{"a":2}`,
		} {
			f.Add(byte(which), document)
		}
	}
	var sets []*Set
	for _, rules := range fuzzed {
		sets = append(sets, parse(f, plainFile(rules)))
	}
	f.Fuzz(func(t *testing.T, which byte, document string) {
		if largeExponent.MatchString(document) || len(document) > 2048 {
			t.Skip("the reference is slow there")
		}
		i := int(which) % len(sets)
		compare(t, sets[i], fuzzed[i], document)
		_, _, err := try(sets[i], "s", document)
		if err != nil && (!utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\n\x00")) {
			t.Errorf("the error is not one line of text: %q", err)
		}
	})
}
