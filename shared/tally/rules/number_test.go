package rules

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// literals draws JSON numbers, most of them near the edges that matter.
func literals() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"0", "-0", "0.0", "-0e5", "0e99999999999999999999", "1.0", "1e3", "1.5", "1e400", "1e-400",
			"9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
			"922337203685477580.7e1", "9223372036854775807.0", "92233720368547758070e-1", "19.99", "-19.99", "0.001", "100e-2"}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`),
		rapid.StringMatching(`-?(0|[1-9]0{0,20})(\.0{1,20})?([eE][+-]?[0-9]{1,2})?`),
	)
}

func exact(t interface{ Fatalf(string, ...any) }, literal string, scale int) *big.Rat {
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		t.Fatalf("not a number: %q", literal)
	}
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil))
	if scale < 0 {
		power.Inv(power)
	}
	return r.Mul(r, power)
}

func TestD5_NumbersAreExactOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := literals().Filter(func(s string) bool { return len(s) < 60 && !strings.Contains(s, "e9999") }).Draw(t,
			"literal")
		scale := rapid.IntRange(-18, 18).Draw(t, "scale")
		want := exact(t, literal, scale)
		got, flaw := parseNumber([]byte(literal)).scaled(scale)
		switch {
		case !want.IsInt():
			if flaw != fraction {
				t.Fatalf("%s × 10^%d is a fraction; got %d, flaw %d", literal, scale, got, flaw)
			}
		case !want.Num().IsInt64():
			if flaw != tooBig {
				t.Fatalf("%s × 10^%d leaves int64; got %d, flaw %d", literal, scale, got, flaw)
			}
		case flaw != fits || got != want.Num().Int64():
			t.Fatalf("%s × 10^%d = %d, flaw %d; want %s", literal, scale, got, flaw, want)
		}
	})
}

func TestNumber_FloorAgreesWithBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := literals().Filter(func(s string) bool { return len(s) < 60 && !strings.Contains(s, "e9999") }).Draw(t,
			"literal")
		scale := rapid.IntRange(-18, 18).Draw(t, "scale")
		r := exact(t, literal, scale)
		want := new(big.Int).Div(r.Num(), r.Denom()) // rounds down, since the denominator is positive
		got, flaw := parseNumber([]byte(literal)).floor(scale)
		if fit := flaw == fits; fit != want.IsInt64() || fit && got != want.Int64() {
			t.Fatalf("floor of %s × 10^%d = %d, flaw %d; want %s", literal, scale, got, flaw, want)
		}
	})
}

func TestNumber_EqualNumbersHaveOneText(t *testing.T) {
	for literal, want := range map[string]string{
		"1": "1", "1.0": "1", "1e0": "1", "10e-1": "1", "0.1e1": "1", "1.50": "1.5", "1e3": "1000", "-0": "0", "-0.0": "0",
		"0e9": "0", "1e-3": "0.001", "-12.5e-3": "-0.0125", "12.5e3": "12500", "0.10": "0.1", "120.0340": "120.034",
		"18446744073709551616": "18446744073709551616",
	} {
		if got, ok := parseNumber([]byte(literal)).appendTo(nil, 100); !ok || string(got) != want {
			t.Errorf("%s became %q, %t; want %q", literal, got, ok, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		literal := literals().Filter(func(s string) bool { return len(s) < 60 && !strings.Contains(s, "e9999") }).Draw(t,
			"literal")
		text, ok := parseNumber([]byte(literal)).appendTo([]byte("x"), MaxKey)
		if !ok || exact(t, literal, 0).Cmp(exact(t, string(text[1:]), 0)) != 0 {
			t.Fatalf("%s became %q, %t", literal, text, ok)
		}
		again, _ := parseNumber(text[1:]).appendTo([]byte("x"), MaxKey)
		if string(again) != string(text) {
			t.Fatalf("%s became %q, then %q", literal, text, again)
		}
	})
}

func TestNumber_TextLimitAndOnePast(t *testing.T) {
	for _, literal := range []string{"1e9", "-1e8", "1e-8", "-1e-7", "1234567.12", "1234567890"} {
		if text, ok := parseNumber([]byte(literal)).appendTo(nil, 10); !ok || len(text) != 10 {
			t.Errorf("%s at the limit: %q, %t", literal, text, ok)
		}
		if text, ok := parseNumber([]byte(literal)).appendTo(nil, 9); ok || len(text) != 0 {
			t.Errorf("%s past the limit: %q, %t", literal, text, ok)
		}
	}
	for _, literal := range []string{"1e99999999999999999999", "1e-99999999999999999999"} {
		if text, ok := parseNumber([]byte(literal)).appendTo(nil, MaxKey); ok || len(text) != 0 {
			t.Errorf("%s: %d bytes, %t", literal, len(text), ok)
		}
	}
}

func TestD5_HugeExponentsCostNothing(t *testing.T) {
	for literal, want := range map[string]flaw{
		"1e400": tooBig, "-1e99999999999999999999999": tooBig, "1e-99999999999999999999999": fraction,
		"0e99999999999999999999999": fits, "0." + strings.Repeat("0", 1000) + "1e1001": fits,
		"1" + strings.Repeat("0", 1000) + "e-1000": fits,
	} {
		if got, flaw := parseNumber([]byte(literal)).scaled(0); flaw != want {
			t.Errorf("%.30s…: %d, flaw %d, want flaw %d", literal, got, flaw, want)
		}
	}
	if got, flaw := parseNumber([]byte("-9223372036854775808")).scaled(0); got != math.MinInt64 || flaw != fits {
		t.Errorf("smallest int64: %d, flaw %d", got, flaw)
	}
}
