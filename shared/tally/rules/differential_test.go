package rules

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"abacus/shared/tally"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawRules draws up to four counters over the members a, b, n, t, o.p, o.q and tags.
func drawRules() *rapid.Generator[[]plainRule] {
	paths := rapid.SampledFrom([]string{"a", "b", "b", "n", "n", "n", "n", "n", "o.p", "o.q", "o.p.r"})
	windows := []plainWindow{
		{"all", 0, 0}, {"1d", 86400, 0}, {"1h", 3600, 14 * 86400}, {"1w", 7 * 86400, 400 * 86400}, {"5d", 5 * 86400, 86400},
	}
	return rapid.Custom(func(t *rapid.T) []plainRule {
		rules := make([]plainRule, rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4}).Draw(t, "counters"))
		for i := range rules {
			r := &rules[i]
			r.name = fmt.Sprintf("c%d", i)
			r.match = rapid.SampledFrom([]string{"", "", `a == "x"`, `n > 1`}).Draw(t, "match")
			if rapid.Bool().Draw(t, "has id") {
				r.id = paths.Draw(t, "id")
				r.scope = rapid.SampledFrom([]string{"", "", "c0", "other"}).Draw(t, "scope")
			}
			if rapid.IntRange(0, 2).Draw(t, "has time") == 0 {
				r.timePath = rapid.SampledFrom([]string{"t", "t", "t", "t", "t", "o.p"}).Draw(t, "time")
				r.timeForm = rapid.SampledFrom([]string{"", "", "", "", "s", "ms", "2006/01/02 15:04"}).Draw(t, "form")
			}
			r.keys = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
				"all", "{a}", "{b}", "a/{a}", "{a}{b}", "{n}", "x", "{{y}}", "{o.p}/{{x}}", "{tags[]}", "t{tags[]}/{a}", "{o.q}",
			}), 1, 3, rapid.ID).Draw(t, "keys")
			if rapid.Bool().Draw(t, "constant") {
				r.addConstant = rapid.Int64Range(1, 5).Draw(t, "add")
			} else {
				r.addPath, r.scale = paths.Draw(t, "add"), rapid.SampledFrom([]int{0, 0, 2, 18}).Draw(t, "scale")
			}
			r.windows = rapid.SliceOfNDistinct(rapid.SampledFrom(windows), 1, 3,
				func(w plainWindow) string { return w.name }).Draw(t, "windows")
		}
		return rules
	})
}

// drawDocument draws JSON text about those members, most of it good.
func drawDocument() *rapid.Generator[string] {
	scalar := rapid.OneOf(
		rapid.SampledFrom([]string{`"x"`, `"x"`, `"y"`, `""`, `" "`, `"\u0078"`, `"e1"`, `"a|b"`, `"\ud83d\ude00"`,
			`"\ud800"`, `true`, `false`,
			`null`, `1`, `2`, `1.0`, `1.5`, `-3`, `-0`, `1e3`, `12.34`, `0.001`, `9223372036854775807`, `9223372036854775808`,
			`1e30`}),
		rapid.StringMatching(`-?[1-9][0-9]{0,5}(\.[0-9]{1,3})?`),
		rapid.StringMatching(`"[a-z]{1,6}"`), rapid.StringMatching(`"[a-z]{1,6}"`), rapid.StringMatching(`"[xy]"`),
	)
	moment := rapid.SampledFrom([]string{
		`"2026-11-30T11:59:59Z"`, `"2026-11-30T11:59:59Z"`, `"2026-11-23T00:00:00Z"`, `"2026-11-22T23:59:59Z"`,
		`"2026-11-16T12:00:00Z"`, `"2026-11-30T13:30:00.5+02:00"`, `"2026-12-01T12:00:00Z"`, `"2026-12-01T12:00:01Z"`,
		`"2001/01/01 00:47"`, `"2026/11/29 23:59"`, `1796040000`, `1796040000.999`, `1796040000123`, `-86400`,
		`"0001-01-01T00:00:00Z"`,
		`null`, `"soon"`, `"1969-12-28T23:00:00Z"`, `"2026-11-30T1:59:59Z"`, `"2026-11-30T11:59:59,5Z"`,
	})
	list := rapid.Custom(func(t *rapid.T) string {
		return "[" + strings.Join(rapid.SliceOfN(scalar, 0, 4).Draw(t, "elements"), ",") + "]"
	})
	object := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf(`{"p":%s,"q":%s}`, rapid.OneOf(scalar, moment, list, rapid.Just(`{"r":1}`)).Draw(t, "p"),
			scalar.Draw(t, "q"))
	})
	value := map[string]*rapid.Generator[string]{
		"a": scalar, "b": scalar, "n": rapid.StringMatching(`[1-9]{1,3}`), "t": moment, "o": rapid.OneOf(object, object,
			scalar), "tags": list,
		"A": scalar, "other": rapid.OneOf(list, object),
	}
	return rapid.Custom(func(t *rapid.T) string {
		names := []string{"a", "b", "n", "t", "o", "tags", "A", "other"}
		names = rapid.Permutation(names).Draw(t, "order")[:rapid.SampledFrom([]int{5, 7, 8, 8, 8, 8}).Draw(t, "members")]
		if rapid.IntRange(0, 30).Draw(t, "repeat") == 0 {
			names = append(names, names[0])
		}
		var members []string
		for _, name := range names {
			of := value[name]
			if rapid.IntRange(0, 15).Draw(t, "odd") == 0 {
				of = rapid.OneOf(scalar, moment, list, object)
			}
			members = append(members, fmt.Sprintf(`"%s" : %s`, name, of.Draw(t, name)))
		}
		text := "{" + strings.Join(members, " ,\n") + "}"
		switch rapid.IntRange(0, 60).Draw(t, "spoil") {
		case 0:
			return text + text
		case 1:
			return text[:len(text)-1]
		case 2:
			return "[" + text + "]"
		case 3:
			return "\xef\xbb\xbf" + text + "\n"
		}
		return text
	})
}

// compare holds one document under one rule file against the reference.
func compare(t interface{ Fatalf(string, ...any) }, set *Set, rules []plainRule, document string) (good bool) {
	doc := Document{Source: "kinesis/s/0/1", Serial: "shard", Arrived: now.Add(-time.Minute), JSON: []byte(document)}
	want, wantExpired, wantErr := plainEvents(rules, doc, now)
	got, expired, err := set.Events(nil, doc, now)
	if string(doc.JSON) != document {
		t.Fatalf("the document was changed")
	}
	if err != nil && !errors.Is(err, ErrBadRecord) {
		t.Fatalf("%v", err)
	}
	if (err != nil) != (wantErr != nil) || expired != wantExpired || !reflect.DeepEqual(append([]tally.Event{}, got...),
		append([]tally.Event{}, want...)) {
		t.Fatalf("%s\n%s\nerror %v, expired %d\nwant  %v, expired %d\n%s", plainFile(rules), document, err, expired,
			wantErr, wantExpired,
			cmp.Diff(want, got))
	}
	return err == nil && len(got) > 0
}

func TestEvents_AgreeWithThePlainReference(t *testing.T) {
	good, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules().Draw(t, "rules")
		set, err := Parse("counters.yaml", []byte(plainFile(rules)))
		if err != nil {
			t.Fatalf("%v\n%s", err, plainFile(rules))
		}
		for range 10 {
			all++
			if compare(t, set, rules, drawDocument().Draw(t, "document")) {
				good++
			}
		}
	})
	if good*20 < all { // else the comparison says little
		t.Errorf("only %d of %d documents were good", good, all)
	}
}

// secrets finds what drawDocument's values could leak into a message.
var secrets = regexp.MustCompile(`s3cr3t|77777`)

func TestBadRecord_HoldsNothingOfTheDocument(t *testing.T) {
	leaky := regexp.MustCompile(`"([a-z]{1,6}|\\u0078)"|-?[0-9]+(\.[0-9]+)?`)
	members := []string{`"a"`, `"b"`, `"n"`, `"t"`, `"o"`, `"p"`, `"q"`, `"r"`, `"tags"`, `"other"`}
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules().Draw(t, "rules")
		set, err := Parse("counters.yaml", []byte(plainFile(rules)))
		if err != nil {
			t.Fatal(err)
		}
		document := leaky.ReplaceAllStringFunc(drawDocument().Draw(t, "document"), func(found string) string {
			switch {
			case slices.Contains(members, found):
				return found
			case found[0] == '"':
				return `"s3cr3t"`
			default:
				return "77777.7"
			}
		})
		if _, _, err := try(set, "s", document); err != nil && secrets.MatchString(err.Error()) {
			t.Fatalf("%v\nquotes\n%s", err, document)
		}
	})
}

func TestSet_IsSafeForConcurrentUse(t *testing.T) {
	rules := []plainRule{
		{name: "a", match: `n > 1`, id: "b", keys: []string{"{a}", "{tags[]}"}, addConstant: 1,
			windows: []plainWindow{{"all", 0, 0}, {"1h", 3600, 86400}}},
		{name: "b", keys: []string{"{o.p}"}, addPath: "n", windows: []plainWindow{{"all", 0, 0}}},
	}
	set := parse(t, plainFile(rules))
	var documents []string
	for i := range 200 {
		documents = append(documents, drawDocument().Example(i),
			fmt.Sprintf(`{"a":"k%[1]d","b":"i%[1]d","n":%[1]d,"tags":["x%[1]d"],"o":{"p":%[1]d}}`, i))
	}
	want := make([]string, len(documents))
	for i, document := range documents {
		e, expired, err := try(set, "s", document)
		want[i] = fmt.Sprint(e, expired, err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i, document := range documents {
				e, expired, err := try(set, "s", document)
				if got := fmt.Sprint(e, expired, err); got != want[i] {
					t.Errorf("%s\ngave %s\nwant %s", document, got, want[i])
				}
			}
		})
	}
	group.Wait()
}

func TestEvents_OutliveTheDocument(t *testing.T) {
	set := parse(t, rule("id: id", `keys: ["{k}"]`))
	json := []byte(`{"id":"e1","k":"key"}`)
	e, _, err := set.Events(nil, Document{Source: "s", Arrived: now, JSON: json}, now)
	if err != nil {
		t.Fatal(err)
	}
	copy(json, strings.Repeat("#", len(json)))
	events(t, set, "s", `{"id":"zz","k":"zzz"}`)
	if e[0].ID != "c\x1fe1" || e[0].Adds[0].Cell.Key != "key" {
		t.Errorf("%+v", e)
	}
	// The adds of one event cannot be appended into those of the next.
	two := parse(t, "counters:\n  - {name: a, id: id, keys: [x]}\n  - {name: b, id: id, keys: [y]}\n")
	e = events(t, two, "s", `{"id":"e1"}`)
	_ = append(e[0].Adds, tally.Add{Delta: 666})
	if e[1].Adds[0].Delta != 1 {
		t.Errorf("%+v", e)
	}
}
