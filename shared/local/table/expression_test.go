package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

func parseCondition(text string, values Item) (condition, error) {
	p, err := newPlaceholders(nil, values)
	if err != nil {
		return nil, err
	}
	return parse("ConditionExpression", text, p, (*parser).condition)
}

func TestExpression_LengthLimitAndOnePast(t *testing.T) {
	const text = "attribute_exists(a)"
	if _, err := parseCondition(text+strings.Repeat(" ", maxExpression-len(text)), nil); err != nil {
		t.Errorf("4096 bytes: %v", err)
	}
	_, err := parseCondition(text+strings.Repeat(" ", maxExpression+1-len(text)), nil)
	if err == nil || !strings.Contains(err.Error(), "expression size: 4097") {
		t.Errorf("4097 bytes: %v", err)
	}
}

func TestExpression_OperatorLimitAndOnePast(t *testing.T) {
	// n comparisons and n-1 ANDs are 2n-1 operators.
	chain := func(n int) string { return strings.TrimSuffix(strings.Repeat("a<:v AND ", n), " AND ") }
	values := Item{":v": numberOf(1)}
	if _, err := parseCondition("NOT "+chain(150), values); err != nil {
		t.Errorf("300 operators: %v", err)
	}
	if _, err := parseCondition(chain(151), values); err == nil {
		t.Error("301 operators were accepted")
	}
}

func TestExpression_InLimitAndOnePast(t *testing.T) {
	in := func(n int) string { return "a IN (" + strings.TrimSuffix(strings.Repeat(":v,", n), ",") + ")" }
	values := Item{":v": numberOf(1)}
	if _, err := parseCondition(in(100), values); err != nil {
		t.Errorf("100 operands: %v", err)
	}
	if _, err := parseCondition(in(101), values); err == nil {
		t.Error("101 operands were accepted")
	}
}

func TestExpression_DeepParenthesesDoNotOverflow(t *testing.T) {
	text := strings.Repeat("(", 2000) + "a" + strings.Repeat(")", 2000)
	if _, err := parseCondition(text, nil); err == nil {
		t.Error("redundant parentheses were accepted")
	}
}

func TestExpression_SyntaxErrorShowsTheTokenAndItsNeighbours(t *testing.T) {
	for text, want := range map[string]string{
		"a = :v AND AND b":  `Syntax error; token: "AND", near: "AND AND b"`,
		"a != :v":           `Syntax error; token: "!", near: "a !"`,
		"a = :v )":          `Syntax error; token: ")", near: ":v )"`,
		"a =":               `Syntax error; token: "<EOF>", near: "="`,
		"begins_with(a :v)": `Syntax error; token: ":v", near: "a :v)"`,
	} {
		_, err := parseCondition(text, Item{":v": numberOf(1)})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestValue_NestingLimitAndOnePast(t *testing.T) {
	nested := func(levels int) string {
		return `{"a":` + strings.Repeat(`{"L":[`, levels) + `{"S":"x"}` + strings.Repeat(`]}`, levels) + `}`
	}
	var item Item
	if err := decode([]byte(nested(maxNesting)), &item); err != nil {
		t.Errorf("32 levels: %v", err)
	}
	if err := decode([]byte(nested(maxNesting+1)), &item); err == nil {
		t.Error("33 levels were accepted")
	}
}

// anyValue draws values of every kind.
func anyValue(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		k := kind(rapid.IntRange(int(kindS), int(kindM)).Draw(t, "kind"))
		if depth == 0 && k >= kindL {
			k = kindS
		}
		v := Value{kind: k}
		switch k {
		case kindS, kindB:
			v.text = rapid.String().Draw(t, "text")
		case kindN:
			n, _ := parseNumber(anyNumber(t, "n"))
			v.text = string(n)
		case kindBool:
			v.flag = rapid.Bool().Draw(t, "flag")
		case kindSS, kindBS:
			v.members = rapid.SliceOfNDistinct(rapid.String(), 1, 4, rapid.ID).Draw(t, "members")
		case kindNS:
			for _, n := range rapid.SliceOfNDistinct(rapid.Int32(), 1, 4, rapid.ID).Draw(t, "numbers") {
				v.members = append(v.members, fmt.Sprint(n))
			}
		case kindL:
			v.list = rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "list")
		case kindM:
			v.attrs = rapid.MapOfN(rapid.StringN(1, 5, -1), anyValue(depth-1), 0, 3).Draw(t, "attrs")
		}
		if k.set() {
			if err := v.tidySet(); err != nil {
				t.Fatal(err)
			}
		}
		return v
	})
}

func TestValue_SurvivesTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue(3).Draw(t, "v")
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back Value
		if err := decode(text, &back); err != nil || !back.equal(v) {
			t.Fatalf("%s came back as %v, %v", text, back, err)
		}
	})
}

// An order of keys is the order of their values, and no key's place is inside another's range.
func TestKey_PlacesKeepTheOrderOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}), 0, 5).Draw(t, "bytes"))
		})
		a, b := textValue(text.Draw(t, "a")), textValue(text.Draw(t, "b"))
		if got, want := strings.Compare(a.order(), b.order()), strings.Compare(a.text, b.text); got != want {
			t.Fatalf("%q and %q: %d, want %d", a.text, b.text, got, want)
		}
		if a.text != b.text && strings.HasPrefix(a.order(), b.order()) {
			t.Fatalf("the order of %q begins with that of %q", a.text, b.text)
		}
		prefix := escape(b.text)
		inside := a.order() >= prefix && (after(prefix) == "" || a.order() < after(prefix))
		if inside != strings.HasPrefix(a.text, b.text) {
			t.Fatalf("%q begins with %q: %t", a.text, b.text, inside)
		}
	})
}

// FuzzExpression: no text panics, and what is accepted leaves an item that is one.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"a = :v", "a BETWEEN :v AND :w OR NOT (b IN (:v, c))", "attribute_exists(m.k[0].j) AND size(s) > :v",
		"((a))", "contains(s, :s)",
		"SET a = :v, m.k = if_not_exists(m.k, :v) + :w REMOVE l[0], x ADD n :v DELETE ss :ss", "SET l = list_append(l, :l)",
		"SET l[9] = :v, l[3] = :w REMOVE l[1]", "a, m.k, l[0]", "#n.x", "a = ", "(", "SET", "m.k[", "begins_with(a, :s",
	} {
		f.Add(seed)
	}
	var item, values Item
	if err := decode([]byte(`{"a":{"N":"1"},"b":{"S":"x"},"m":{"M":{"k":{"L":[{"M":{"j":{"N":"2"}}}]}}},
		"l":{"L":[{"N":"1"},{"S":"y"}]},"s":{"S":"text"},"n":{"N":"5"},"ss":{"SS":["a","b"]}}`), &item); err != nil {
		f.Fatal(err)
	}
	if err := decode([]byte(`{":v":{"N":"1"},":w":{"N":"2"},":s":{"S":"te"},":ss":{"SS":["a"]},
		":l":{"L":[{"N":"3"}]}}`), &values); err != nil {
		f.Fatal(err)
	}
	before, _ := json.Marshal(item)
	f.Fuzz(func(t *testing.T, text string) {
		given, err := newPlaceholders(map[string]string{"#n": "m"}, values)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := parse("ConditionExpression", text, given, (*parser).condition); err == nil {
			c.holds(item)
			c.holds(nil)
		}
		if s, err := parse("ProjectionExpression", text, given, (*parser).projection); err == nil {
			s.of(item)
		}
		if u, err := parse("UpdateExpression", text, given, (*parser).update); err == nil {
			if next, err := u.apply(item); err == nil {
				wire, _ := json.Marshal(next)
				var back Item
				if err := decode(wire, &back); err != nil || !back.equal(next) {
					t.Fatalf("%s makes %s: %v", text, wire, err)
				}
			}
		}
		if after, _ := json.Marshal(item); string(after) != string(before) {
			t.Fatalf("%s changed the old item to %s", text, after)
		}
	})
}

func FuzzInsert(f *testing.F) {
	for _, seed := range []string{
		`INSERT INTO "T" VALUE {'pk':?, 'n':1.5}`, `insert into T value {'a':[1,<<'x'>>,{'b':NULL}], 'c':TRUE}`,
		`INSERT INTO "T" VALUE {'pk':'it''s'}`, `INSERT INTO "T`, `INSERT INTO "T" VALUE {'pk':`, `{`,
		`INSERT INTO "T" VALUE {'a':<<1,'x'>>}`, `INSERT INTO "T" VALUE {'a':?,'b':?}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, item, err := parseInsert(text, []Value{textValue("p")})
		if err != nil {
			return
		}
		if table == "" && !strings.Contains(text, `""`) || item == nil {
			t.Fatalf("%q inserts %v into %q", text, item, table)
		}
	})
}
