package rules

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"abacus/shared/tally"
)

// now is the present of every test.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// try gives the events of one JSON document that arrived just now.
func try(set *Set, source, json string) ([]tally.Event, int, error) {
	return set.Events(nil, Document{Source: source, Arrived: now, JSON: []byte(json)}, now)
}

// events gives the events of a document that must be good.
func events(t testing.TB, set *Set, source, json string) []tally.Event {
	t.Helper()
	events, _, err := try(set, source, json)
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return events
}

// bad gives the reason why a document, which must be bad, is. The text must have each of the given parts.
func bad(t testing.TB, set *Set, json string, parts ...string) *BadRecord {
	t.Helper()
	before := []tally.Event{{ID: "kept"}}
	events, expired, err := set.Events(before, Document{Source: "s", Arrived: now, JSON: []byte(json)}, now)
	record, ok := errors.AsType[*BadRecord](err)
	if !ok || !errors.Is(err, ErrBadRecord) {
		t.Errorf("%.200s: %v, %v; want a bad record", json, events, err)
		return &BadRecord{}
	}
	if len(events) != 1 || events[0].ID != "kept" || expired != 0 {
		t.Errorf("%.200s: a bad record left %v, %d behind", json, events[1:], expired)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%.200s: %v\nlacks %q", json, err, part)
		}
	}
	if !strings.Contains(err.Error(), "; ") {
		t.Errorf("%.200s: %v\ndoes not say what to do", json, err)
	}
	return record
}

// totals sums the adds of documents as a store would that counts each identity once.
func totals(t testing.TB, set *Set, documents ...string) map[string]int64 {
	t.Helper()
	sums, seen := map[string]int64{}, map[string]bool{}
	for i, document := range documents {
		for _, e := range events(t, set, fmt.Sprint("source/", i), document) {
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			for _, a := range e.Adds {
				sums[a.Cell.Counter+"|"+a.Cell.Key] += a.Delta
			}
		}
	}
	return sums
}

func TestA5_RecordsWithoutAnIdentityNeverHideEachOther(t *testing.T) {
	set := parse(t, rule("id: id", "keys: [a]", "add: delta"))
	documents := []string{`{"delta":1}`, `{"id":null,"delta":1}`, `{"id":"","delta":1}`, `{"id":" \t","delta":1}`}
	if got := totals(t, set, documents...); got["c|a"] != 4 {
		t.Errorf("four records without an identity count %d", got["c|a"])
	}
	for _, document := range documents {
		first, again := events(t, set, "kinesis/s/1/0", document), events(t, set, "kinesis/s/1/0", document)
		if first[0].ID != "kinesis/s/1/0" || again[0].ID != first[0].ID {
			t.Errorf("%s has identities %q and %q", document, first[0].ID, again[0].ID)
		}
	}
}

func TestA5_AnIdentityIsTheRecordsOwnWhereverItComesFrom(t *testing.T) {
	set := parse(t, rule("id: order.id", "keys: [a]"))
	id := func(value string) string {
		return events(t, set, "s/"+value, `{"order":{"id":`+value+`}}`)[0].ID
	}
	for _, same := range [][]string{{`"e1"`, `"\u00651"`}, {`7`, `7.0`, `70e-1`, `"7"`},
		{`18446744073709551616`, `"18446744073709551616"`}} {
		for _, value := range same[1:] {
			if id(value) != id(same[0]) {
				t.Errorf("%s is %q, %s is %q", same[0], id(same[0]), value, id(value))
			}
		}
	}
	if id(`"e1"`) == id(`" e1"`) || id(`"e1"`) == id(`"E1"`) {
		t.Error("identities that differ were made equal")
	}
	for value, part := range map[string]string{
		`1.5`: "whole number", `true`: "true or false", `{}`: "is an object", `["e1"]`: "is a list",
		`1e2000`: "too many digits",
	} {
		bad(t, set, `{"order":{"id":`+value+`}}`, `member "order.id"`, part, "counters.yaml:3", `counter "c"`)
	}
	bad(t, set, `{"order":"e1"}`, "goes through a value that is not an object")
	if got := events(t, set, "s", `{"order":null}`)[0].ID; got != "s" {
		t.Errorf("an identity under null is %q", got)
	}
}

func TestA5_LongIdentitiesStayDistinct(t *testing.T) {
	set := parse(t, rule("id: id", "keys: [a]"))
	long := strings.Repeat("x", 1000)
	one := events(t, set, "s", `{"id":"`+long+`1"}`)[0].ID
	two := events(t, set, "s", `{"id":"`+long+`2"}`)[0].ID
	if one == two || len(one) > tally.MaxID || len(two) > tally.MaxID {
		t.Errorf("identities %q, %q", one, two)
	}
	if got := events(t, set, long, `{}`)[0].ID; got != tally.BoundID(long) {
		t.Errorf("a long identity of the source became %q", got)
	}
	at := strings.Repeat("x", tally.MaxID-len("c")-1)
	if got := events(t, set, "s", `{"id":"`+at+`"}`)[0].ID; got != "c\x1f"+at {
		t.Errorf("an identity at the limit became %q", got)
	}
}

func TestEvents_EachCounterHasItsOwnClaimsUnlessTheyShareAScope(t *testing.T) {
	set := parse(t, `
counters:
  - {name: orders, id: order_id, keys: [all]}
  - {name: refunds, id: order_id, match: kind == "refund", keys: [all]}
  - {name: revenue, id: order_id, scope: orders, keys: [all], add: price}
  - {name: lines, keys: [all]}
  - {name: bytes, id: upload_id, keys: [all], add: size}
`)
	got := events(t, set, "src", `{"order_id":"7","kind":"refund","price":5,"size":3}`)
	var text []string
	for _, e := range got {
		line := strings.ReplaceAll(e.ID, "\x1f", "#")
		for _, a := range e.Adds {
			line += fmt.Sprintf(" %s=%d", a.Cell.Counter, a.Delta)
		}
		text = append(text, line)
	}
	want := "orders#7 orders=1 revenue=5, refunds#7 refunds=1, src lines=1 bytes=3"
	if strings.Join(text, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(text, ", "), want)
	}
	// The same identity in another role hides nothing: this refund follows its order.
	sums := totals(t, set, `{"order_id":"7","kind":"order","price":5,"size":1}`,
		`{"order_id":"7","kind":"refund","price":5,"size":1}`)
	if sums["orders|all"] != 1 || sums["refunds|all"] != 1 || sums["revenue|all"] != 5 || sums["lines|all"] != 2 {
		t.Errorf("sums %v", sums)
	}
}

func TestEvents_CarryTheSerialSource(t *testing.T) {
	set := parse(t, rule("keys: [a]"))
	got, _, err := set.Events(nil, Document{Source: "s", Serial: "shard-1", Arrived: now, JSON: []byte(`{}`)}, now)
	if err != nil || len(got) != 1 || got[0].Serial != "shard-1" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEvents_RefuseASourceWithoutIdentity(t *testing.T) {
	set := parse(t, rule("id: id", "keys: [a]"))
	for _, source := range []string{"", "c\x1fe1"} { // the second would pass for an identity of counter c
		if got, _, err := try(set, source, `{}`); !errors.Is(err, ErrSource) || errors.Is(err, ErrBadRecord) ||
			len(got) != 0 {
			t.Errorf("source %q: %v, %v", source, got, err)
		}
	}
}

func TestEvents_NoRuleMatches(t *testing.T) {
	set := parse(t, rule(`match: kind == "sale"`, "keys: [a]"))
	if got, expired, err := try(set, "s", `{"kind":"other"}`); len(got) != 0 || expired != 0 || err != nil {
		t.Errorf("%v, %d, %v", got, expired, err)
	}
	bad(t, set, `{"kind":"other","x":}`, "not JSON") // it is JSON all the same, or bad
}

func TestB4_ARepeatedKeyCountsOnce(t *testing.T) {
	set := parse(t, rule("id: id", `keys: ["{keys[]}"]`, "add: delta"))
	got := totals(t, set, `{"id":"e1","keys":["a","a","b"],"delta":2}`)
	if len(got) != 2 || got["c|a"] != 2 || got["c|b"] != 2 {
		t.Errorf("sums %v", got)
	}
	both := parse(t, rule(`keys: ["{from}", "{to}", "x"]`, "windows: {all: forever, 1d: forever}"))
	e := events(t, both, "s", `{"from":"x","to":"x"}`)
	if len(e) != 1 || len(e[0].Adds) != 2 {
		t.Errorf("a key that three templates give has adds %+v", e)
	}
	if got := totals(t, set, `{"keys":["a","A"," a","a "],"delta":1}`); len(got) != 4 {
		t.Errorf("keys that differ were made equal: %v", got)
	}
}

func TestB4_AddsOfAnEventLimitAndOnePast(t *testing.T) {
	list := func(n int) string {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf(`"k%d"`, i)
		}
		return `{"id":"e1","keys":[` + strings.Join(keys, ",") + `]}`
	}
	one := parse(t, rule("id: id", `keys: ["{keys[]}"]`))
	if e := events(t, one, "s", list(99)); len(e) != 1 || len(e[0].Adds) != 99 {
		t.Errorf("99 keys: %d adds", len(e[0].Adds))
	}
	bad(t, one, list(100), "more than 99 keys")
	bad(t, one, list(250), "more than 99 keys")

	windows := parse(t, rule(`keys: ["{keys[]}"]`, "windows: {all: forever, 1d: forever, 1h: forever}"))
	if e := events(t, windows, "s", list(33)); len(e[0].Adds) != 99 {
		t.Errorf("33 keys in 3 windows: %d adds", len(e[0].Adds))
	}
	bad(t, windows, list(34), "more than 99 adds")

	// Counters that share an event share its limit; those with an identity of their own do not.
	shared := `
counters:
  - {name: a, id: id, keys: ["{keys[]}"]}
  - {name: b, id: id, scope: a, keys: [all]}
`
	if e := events(t, parse(t, shared), "s", list(98)); len(e) != 1 || len(e[0].Adds) != 99 {
		t.Errorf("98 and 1 keys: %+v", e)
	}
	bad(t, parse(t, shared), list(99), "more than 99 adds", `counter "b"`)
	if e := events(t, parse(t, strings.Replace(shared, ", scope: a", "", 1)), "s", list(99)); len(e) != 2 {
		t.Errorf("99 and 1 keys apart: %d events", len(e))
	}
}

func TestB4_ListsLimitAndOnePast(t *testing.T) {
	set := parse(t, rule(`keys: ["{keys[]}"]`))
	list := func(n int) string { return `{"keys":["a"` + strings.Repeat(`,"a"`, n-1) + `]}` }
	if e := events(t, set, "s", list(MaxList)); len(e[0].Adds) != 1 {
		t.Errorf("adds %+v", e[0].Adds)
	}
	bad(t, set, list(MaxList+1), "more than 1000 elements")
}

func TestD5_Deltas(t *testing.T) {
	set := parse(t, rule("keys: [a]", "add: delta"))
	for literal, want := range map[string]int64{
		"9007199254740993": 9007199254740993, "-1": -1, "0": 0, "1.0": 1, "1e3": 1000, "-0": 0, "-0.0": 0,
		"9223372036854775807": 9223372036854775807, "-9223372036854775808": -9223372036854775808, "12300e-2": 123,
	} {
		if e := events(t, set, "s", `{"delta":`+literal+`}`); len(e) != 1 || e[0].Adds[0].Delta != want {
			t.Errorf("%s: %+v, want %d", literal, e, want)
		}
	}
	for value, part := range map[string]string{
		"1.5": "has a fraction", `"1"`: "is text", "9223372036854775808": "beyond 64 bits", "1e400": "beyond 64 bits",
		"1e-400": "has a fraction", "null": "is null", "true": "is true or false", "{}": "is an object", "[1]": "is a list",
		"-9223372036854775809": "beyond 64 bits",
	} {
		bad(t, set, `{"delta":`+value+`}`, part, "add: ", `member "delta"`, "counters.yaml:4")
	}
	bad(t, set, `{}`, "is absent")
	// Two of the largest deltas on one key: each event is exact, and their sum leaves int64 without wrapping.
	sum := tally.Sum{}
	for _, id := range []string{"1", "2"} {
		for _, e := range events(t, set, id, `{"delta":9223372036854775807}`) {
			sum = sum.Plus(tally.SumOf(e.Adds[0].Delta))
		}
	}
	if sum.String() != "18446744073709551614" {
		t.Errorf("sum %s", sum)
	}
}

func TestD5_DecimalsAreExact(t *testing.T) {
	set := parse(t, rule("keys: [a]", "add: {path: order.price, scale: 2}"))
	for literal, want := range map[string]int64{
		"19.99": 1999, "-19.9": -1990, "20": 2000, "0.10": 10, "0.010": 1, "1e3": 100000,
		"92233720368547758.07":             9223372036854775807,
		"1.100000000000000000000000000000": 110, "0.29": 29, "1.15": 115,
	} {
		if e := events(t, set, "s", `{"order":{"price":`+literal+`}}`); e[0].Adds[0].Delta != want {
			t.Errorf("%s: %d, want %d", literal, e[0].Adds[0].Delta, want)
		}
	}
	for literal, part := range map[string]string{
		"19.999": "more than 2 decimals", "0.001": "more than 2 decimals", "92233720368547758.08": "beyond 64 bits",
		`"19.99"`: "is text",
	} {
		bad(t, set, `{"order":{"price":`+literal+`}}`, part, `member "order.price"`)
	}
}

func TestD5_ConstantsCount(t *testing.T) {
	for add, want := range map[string]int64{"": 1, "add: 1": 1, "add: -3": -3,
		"add: 9223372036854775807": 9223372036854775807} {
		if e := events(t, parse(t, rule("keys: [a]", add)), "s", `{}`); e[0].Adds[0].Delta != want {
			t.Errorf("%q adds %d", add, e[0].Adds[0].Delta)
		}
	}
}

func TestD6_NamesMatchExactly(t *testing.T) {
	set := parse(t, rule("id: id", `keys: ["{keys[]}"]`, "add: delta"))
	e := events(t, set, "s", `{"id":"e1","keys":["a"],"delta":1,"Delta":5,"DELTA":6}`)
	if e[0].Adds[0].Delta != 1 {
		t.Errorf("delta %d", e[0].Adds[0].Delta)
	}
	if e := events(t, set, "s", `{"id":"e2","ID":"e9","Id":"e8","keys":["a"],"delta":1}`); e[0].ID != "c\x1fe2" {
		t.Errorf("identity %q", e[0].ID)
	}
	bad(t, set, `{"keys":["a"],"Delta":1}`, "is absent")
	if e := events(t, set, "s", `{"\u0064elta":3,"keys":["a"]}`); e[0].Adds[0].Delta != 3 {
		t.Errorf("an escaped name: delta %d", e[0].Adds[0].Delta)
	}
	escaped := parse(t, rule(`keys: ['{a\.b}{c.d}{e\{\}}{f\[]}']`))
	e = events(t, escaped, "s", `{"a.b":"1","a":{"b":"x"},"c":{"d":"2"},"c.d":"y","e{}":"3","f[]":"4"}`)
	if e[0].Adds[0].Cell.Key != "1234" {
		t.Errorf("key %q", e[0].Adds[0].Cell.Key)
	}
}

func TestD6_AbsentNullAndEmpty(t *testing.T) {
	set := parse(t, rule("id: id", `keys: ["{keys[]}"]`, "add: delta"))
	for document, part := range map[string]string{
		`{"id":"e1","keys":["a"]}`:                     `member "delta" is absent`,
		`{"id":"e1","keys":["a"],"delta":null}`:        `member "delta" is null`,
		`{"id":"e1","delta":1}`:                        `member "keys[]" is absent`,
		`{"id":"e1","keys":null,"delta":1}`:            `member "keys[]" is null`,
		`{"id":"e1","keys":[],"delta":1}`:              `member "keys[]" is an empty list`,
		`{"id":"e1","keys":[""],"delta":1}`:            `member "keys[]" is empty`,
		`{"id":"e1","keys":["a",""],"delta":1}`:        `member "keys[]" is empty`,
		`{"id":"e1","keys":["a",null],"delta":1}`:      `member "keys[]" is null`,
		`{"id":"e1","keys":["a",["b"]],"delta":1}`:     `member "keys[]" is a list`,
		`{"id":"e1","keys":["a",{"b":"c"}],"delta":1}`: `member "keys[]" is an object`,
		`{"id":"e1","keys":"a","delta":1}`:             `member "keys[]" is text`,
	} {
		bad(t, set, document, part)
	}
}

func TestD6_OneObjectAndNothingElse(t *testing.T) {
	set := parse(t, rule("id: id", "keys: [a]", "add: n.delta"))
	good := `{"id":"e1","n":{"delta":1},"other":[{"a":1},{"a":2}]}`
	for _, document := range []string{good, good + "\n", " \r\n\t" + good + "\t ", "\xef\xbb\xbf" + good} {
		if e := events(t, set, "s", document); len(e) != 1 || e[0].ID != "c\x1fe1" {
			t.Errorf("%q: %+v", document, e)
		}
	}
	for document, part := range map[string]string{
		good + good:                             "goes on after its JSON object, at byte 54",
		good + "\n" + good:                      "goes on after",
		good + "x":                              "goes on after",
		good + "\x00":                           "goes on after",
		"\xef\xbb\xbf\xef\xbb\xbf{}":            "is not",
		"[" + good + "]":                        "is not a JSON object",
		`"` + "e1" + `"`:                        "is not a JSON object",
		"null":                                  "is not a JSON object",
		"":                                      "ends in the middle",
		"  ":                                    "ends in the middle",
		good[:20]:                               "ends in the middle",
		`{"id":"e1","n":{"delta":1,"delta":1}}`: "one member name twice",
		`{"id":"e1","\u0069d":"e1","n":{"delta":1}}`:     "one member name twice",
		`{"n":{"delta":1},"o":[{"deep":1,"deep":1}]}`:    "one member name twice",
		`{"n":{"delta":1},"id":"` + "\xff" + `"}`:        "is not JSON",
		`{"n":{"delta":1},"other":"` + "\xc3\x28" + `"}`: "is not JSON",
		`{"n":{"delta":1},"other":"\ud800"}`:             "is not JSON",
		`{"n":{"delta":01}}`:                             "is not JSON",
		`{"n":{"delta":1,}}`:                             "is not JSON",
		`{'n':{"delta":1}}`:                              "is not JSON",
		`{"n":{"delta":NaN}}`:                            "is not JSON",
		`{1:2}`:                                          "is not JSON",
		"not json":                                       "is not",
	} {
		record := bad(t, set, document, part)
		if record.Counter != "" || record.Rule != "" || record.Path != "" {
			t.Errorf("%q blames a rule: %+v", document, record)
		}
	}
}

func TestD6_DepthLimitAndOnePast(t *testing.T) {
	set := parse(t, rule("keys: [a]"))
	deep := func(n int) string { // n containers, the document's own among them
		return `{"other":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	events(t, set, "s", deep(10000))
	bad(t, set, deep(10001), "at most 10000 deep")
}

func TestKeys_AreReadAsTheyStand(t *testing.T) {
	for template, want := range map[string]string{
		"all": "all", "origin/{s}": "origin/DTW", "{s}": "DTW", "{{{s}}}": "{DTW}", "{{}}": "{}", "{b}": "true",
		"{f}": "false",
		"{n}": "1", "{d}": "1.5", "{e}": "1000", "{z}": "0", "{big}": "18446744073709551616", "{o.p}": "in",
		"a{s}b{n}c": "aDTWb1c",
		"{odd}":     "a|b\x1f\n\u00e9", "{space}": " ", "|{s}": "|DTW", "{ünï}": "x",
	} {
		set := parse(t, fmt.Sprintf("counters:\n  - name: c\n    keys: [%q]\n", template))
		e := events(t, set, "s", `{"s":"DTW","b":true,"f":false,"n":1.0,"d":1.50,"e":1e3,"z":-0,"big":18446744073709551616,`+
			`"o":{"p":"in"},"odd":"a|b\u001f\n\u00e9","space":" ","ünï":"x"}`)
		if got := e[0].Adds[0].Cell.Key; got != want {
			t.Errorf("%q makes %q, want %q", template, got, want)
		}
	}
	set := parse(t, rule(`keys: ["tag/{tags[]}/{s}"]`))
	e := events(t, set, "s", `{"tags":["x",1.0,true,"x"],"s":"y"}`)
	var keys []string
	for _, a := range e[0].Adds {
		keys = append(keys, a.Cell.Key)
	}
	if got := strings.Join(keys, " "); got != "tag/x/y tag/1/y tag/true/y" {
		t.Errorf("keys %s", got)
	}
}

func TestKeys_LimitAndOnePast(t *testing.T) {
	set := parse(t, rule(`keys: ["p/{s}/q"]`))
	doc := func(n int) string { return `{"s":"` + strings.Repeat("s", n) + `"}` }
	if e := events(t, set, "s", doc(MaxKey-4)); len(e[0].Adds[0].Cell.Key) != MaxKey {
		t.Errorf("key of %d bytes", len(e[0].Adds[0].Cell.Key))
	}
	bad(t, set, doc(MaxKey-3), "more than 1024 bytes")
	bad(t, set, doc(MaxKey+1), "more than 1024 bytes")
	bad(t, set, `{"s":1e1023}`, "more than 1024 bytes")
	bad(t, set, `{"s":1e1024}`, "more than 1024 digits")
	for value, part := range map[string]string{`""`: "is empty", "null": "is null", "[]": "is a list",
		"{}": "is an object"} {
		bad(t, set, `{"s":`+value+`}`, part, `member "s"`, "keys: ")
	}
	bad(t, set, `{}`, `member "s" is absent`)
}

func TestEvents_ReadsMembersUnderMembersThatAreReadWhole(t *testing.T) {
	set := parse(t, `
counters:
  - {name: a, match: 'detail.state == "ok"', keys: ["{detail.id}/{detail.state}"], add: detail.size.bytes}
  - {name: b, match: 'type(detail.tags) == "array"', keys: ["{detail.tags[]}"]}
`)
	got := totals(t, set, `{"x":0, "detail" : {"id":"i","state":"ok","size":{"bytes":9},"tags":["t"]} }`)
	if got["a|i/ok"] != 9 || got["b|t"] != 1 {
		t.Errorf("sums %v", got)
	}
}
