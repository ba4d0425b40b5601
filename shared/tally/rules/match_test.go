package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/expr-lang/expr/builtin"
)

// matching compiles one match, quoted so that YAML reads it as it stands.
func matching(match string) string {
	return rule("match: '"+strings.ReplaceAll(match, "'", "''")+"'", "keys: [a]")
}

func TestMatch_Answers(t *testing.T) {
	document := `{"s":"DTW","i":1750,"big":9007199254740993,"huge":18446744073709551616,"d":1.5,"whole":2.0,` +
		`"yes":true,"no":false,` +
		`"null":null,"list":["a","b",3],"o":{"p":{"q":"r"},"n":[1,2]},"type":"t","len":3,"detail-type":"x","empty":""}`
	for match, want := range map[string]bool{
		`s != "" && i > 0`: true, `s == "LAS"`: false, `s in ["DTW", "LAS"]`: true, `yes`: true, `no`: false, `!no`: true,
		// Absent is nil: it differs from any text, and as an answer it means no.
		`absent != ""`: true, `absent == nil`: true, `null == nil`: true, `(absent ?? "") != ""`: false, `absent`: false,
		`null`:        false,
		`empty != ""`: false, `absent?.x == nil`: true,
		// Integers of 64 bits are exact.
		`big == 9007199254740993`: true, `big == 9007199254740992`: false, `big + 1 == 9007199254740994`: true,
		`type(i) == "int"`: true,
		`huge > big`:       true, `d == 1.5`: true, `whole == 2`: true, `whole % 2 == 0`: true,
		`o.p.q == "r"`: true, `o.p["q"] == "r"`: true, `o?.x?.y == nil`: true, `o.n[1] == 2`: true, `len == 3`: true,
		`type == "t"`:      true,
		`::len(list) == 3`: true, `::type(i) == "int"`: true, `::type(huge) == "float"`: true, `any(list, # == "b")`: true,
		`all(list, # != "c")`: true, `any(o.n, string(#) + "x" == "1x" && # < i && s != "")`: true, `count(o.n, # > 1) == 1`: true, `sum(o.n) == 3`: true, `(list | len()) == 3`: true,
		`s startsWith "D"`: true, `s matches "^[A-Z]{3}$"`: true, `lower(s) == "dtw"`: true,
		`$env["detail-type"] == "x"`:             true,
		`$env["null"] == nil && $env.s == "DTW"`: true, `i > 3 ? yes : no`: true, `i in 1..2000`: true, `not (i < 0)`: true,
		"s == \"DTW\"\n  and i == 1750": true, `S == nil`: true,
	} {
		set := parse(t, matching(match))
		if got := len(events(t, set, "s", document)) == 1; got != want {
			t.Errorf("%s is %t", match, got)
		}
	}
}

func TestMatch_WithoutAnAnswerTheRecordIsBad(t *testing.T) {
	for match, c := range map[string]struct{ document, part string }{
		`distance > 0`:                {`{}`, "> between an absent or null value and a whole number, at 1:10"},
		`distance + 1 > 0`:            {`{"distance":"secret"}`, "+ between text and a whole number"},
		`distance > 1`:                {`{"distance":"secret"}`, "> between text and a whole number"},
		`distance >= 1.5`:             {`{"distance":[1]}`, ">= between a list and a decimal number"},
		`distance < 1`:                {`{"distance":{"secret":1}}`, "< between an object and a whole number"},
		`a.b == 1`:                    {`{}`, "no answer for these values, at 1:3"},
		`a.b == 2`:                    {`{"a":"secret"}`, "no answer for these values"},
		`a`:                           {`{"a":"secret"}`, "no answer"},
		`!a`:                          {`{}`, "no answer"},
		`a ?? 1`:                      {`{"a":null}`, "no answer"},
		`upper(a) == "X"`:             {`{"a":7}`, "no answer"},
		`(b ? split(a, ",") : 1) > 1`: {`{"a":"secret","b":true}`, "no answer for these values"},
		`int(a) > 1`:                  {`{"a":"secret"}`, "no answer"},
		`a matches "b"`:               {`{"a":7}`, "no answer"},
		`len(1..a) > 2`:               {`{"a":1000000}`, "no answer"}, // memory budget
		`a > 1`:                       {`{"a":1e400}`, "beyond float64"},
		`a[7] == 1`:                   {`{"a":[1]}`, "no answer"},
		`any(a, # > 1)`:               {`{"a":["secret"]}`, "> between text and a whole number"},
		`len(a) > 1 && b > 1`:         {`{"a":[1,2],"b":null}`, "between an absent or null value and a whole number, at 1:17"},
	} {
		record := bad(t, parse(t, matching(match)), c.document, c.part, "match: ")
		if strings.Contains(record.Error(), "secret") {
			t.Errorf("%s quotes the document: %v", match, record)
		}
	}
}

func TestMatch_ReadsNothingThatChangesBetweenDeliveries(t *testing.T) {
	for _, match := range []string{
		`now() > x`, `now().Unix() > x`, `date("2001-01-01") < x`, `x < duration("1h")`, `timezone("Local") == x`,
		`keys(x)[0] == "a"`,
		`values(x)[0] == 1`, `toPairs(x)[0] == 1`, `::now() > x`, `x | now()`,
	} {
		refuse(t, matching(match), "not a function that a match may call")
	}
	for _, match := range []string{`1 < 2`, `true`, `len("abc") == 3`, `any([1, 2], # > 1)`} {
		refuse(t, matching(match), "always the same")
	}
}

func TestMatch_IsBounded(t *testing.T) {
	refuse(t, matching(`type == "t" && type(x) == "int"`), "write ::type(...) for the function") // a member hides it
	for match, part := range map[string]string{
		`let y = x + x; y == x`:            "without let",
		`any(x, any(x, # == 1))`:           "inside another",
		`all(x, {count(y, # > 1) > 1})`:    "inside another",
		`reduce(x, #acc + #, "") == ""`:    "not a function",
		`repeat(x, 1000000) == ""`:         "not a function",
		`replace(x, "", x) == x`:           "not a function",
		`len(map(x, #)) > 1`:               "not a function",
		`toJSON(x) == ""`:                  "not a function",
		`x matches y`:                      "cannot come from the document",
		`any(x, y matches "a")`:            "only its elements",
		`any(x, upper(y) + # matches "a")`: "only its elements",
		`any(x, len(split(y, "")) == #)`:   "only its elements",
		`any(x, $env["y"] + "a" == #)`:     "only its elements",
		`x.Method()`:                       "values have no functions",
		`x.y.z(1) == 2`:                    "values have no functions",
		`f(x)`:                             "f is not a function",
		`$env == x`:                        "read one member",
		`"x" in $env`:                      "read one member",
		`$env[x] == 1`:                     "read one member",
		`x + 1`:                            "compare it", `x..3`: "expected bool, but got",
		`1 + 1`:                                  "expected bool, but got int",
		`x ? 1 : 2`:                              "expected bool, but got int",
		`x ==`:                                   "at 1:4 of the expression",
		`x matches "("`:                          "at 1:",
		`x = 1`:                                  "at 1:3",
		`x == ` + strings.Repeat("[", 300) + `]`: "at 1:",
		``:                                       "unexpected token EOF",
	} {
		refuse(t, matching(match), part, `counter "c": match`)
	}
	list := func(n int) string { return `{"x":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}` }
	set := parse(t, matching(`len(x) > 0`))
	events(t, set, "s", list(MaxMatchValues-1)) // the list itself counts
	bad(t, set, list(MaxMatchValues), "more than 4096 values", `member "x"`)
	bad(t, set, `{"x":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`, "more than 4096 values")
	// The limit is one document's, over all that its matches read.
	two := parse(t, "counters:\n  - {name: a, match: len(x) > 0, keys: [a]}\n"+
		"  - {name: b, match: len(x) + y > 0, keys: [a]}\n")
	bad(t, two, list(MaxMatchValues-1), "more than 4096 values", `counter "b"`, `member "y"`)
	events(t, two, "s", list(MaxMatchValues - 2)[:len(list(MaxMatchValues-2))-1]+`,"y":1}`)
	// A match that runs over a list reads less, so that no text is gone through again and again.
	loop, plain := parse(t, matching(`any(x, s contains #)`)), parse(t, matching(`s contains "a"`))
	text := func(n int) string { return `{"x":["a"],"s":"` + strings.Repeat("s", n-len(`["a"]`)-2) + `a"}` }
	events(t, loop, "s", text(MaxMatchBytes-1))
	bad(t, loop, text(MaxMatchBytes), "over 65536 bytes")
	events(t, plain, "s", text(1<<20))
	// So is the memory of a run.
	ranged := parse(t, matching(`len(1..x) > 0`))
	events(t, ranged, "s", fmt.Sprintf(`{"x":%d}`, maxMemory-1))
	bad(t, ranged, fmt.Sprintf(`{"x":%d}`, maxMemory), "no answer")
}

func TestMatch_LengthLimitAndOnePast(t *testing.T) {
	text := func(n int) string { return matching(`x == "` + strings.Repeat("x", n-len(`x == ""`)) + `"`) }
	parse(t, text(maxMatch))
	refuse(t, text(maxMatch+1), "at most 4096 bytes")
}

func TestMatch_FunctionsExistAndTheOthersAreRefused(t *testing.T) {
	known := map[string]bool{}
	for _, name := range builtin.Names {
		known[name] = true
	}
	for _, name := range functions {
		if !known[name] {
			t.Errorf("%s is no function of the language", name)
		}
		delete(known, name)
	}
	for name := range known {
		refused := noFunction(name)
		if refused == nil || !strings.Contains(refused.Error(), "call one of abs, all") {
			t.Errorf("%s: %v", name, refused)
		}
	}
}
