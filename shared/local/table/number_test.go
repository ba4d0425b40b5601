package table

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyNumber draws a number within DynamoDB's range, and how it may be written.
func anyNumber(t *rapid.T, label string) string {
	digits := rapid.StringMatching(`[0-9]{1,38}`).Draw(t, label+" digits")
	sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, label+" sign")
	exponent := rapid.IntRange(-130, 125-len(digits)+1).Draw(t, label+" exponent")
	return fmt.Sprintf("%s%se%d", sign, digits, exponent)
}

func rational(t *rapid.T, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

func TestNumber_CanonicalTextHasTheSameValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyNumber(t, "n")
		n, err := parseNumber(text)
		if err != nil {
			t.Fatalf("parse %s: %v", text, err)
		}
		if rational(t, text).Cmp(rational(t, string(n))) != 0 {
			t.Fatalf("%s became %s", text, n)
		}
		if again, err := parseNumber(string(n)); err != nil || again != n {
			t.Fatalf("%s is not canonical: %s, %v", n, again, err)
		}
		if strings.ContainsAny(string(n), "eE+") || n == "-0" {
			t.Fatalf("%s is not plain", n)
		}
	})
}

func TestNumber_EqualValuesHaveEqualTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.StringMatching(`-?[1-9][0-9]{0,17}`).Draw(t, "whole")
		zeros := rapid.IntRange(0, 20).Draw(t, "zeros")
		want, _ := parseNumber(whole)
		for _, spelling := range []string{
			whole + "." + strings.Repeat("0", zeros), whole + "e0",
			whole + strings.Repeat("0", zeros) + fmt.Sprintf("E-%d", zeros), strings.Replace(whole, "-", "-000", 1),
		} {
			if got, err := parseNumber(spelling); err != nil || got != want {
				t.Fatalf("%s: %s, %v; want %s", spelling, got, err, want)
			}
		}
	})
}

func TestNumber_SumsAreExactOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := parseNumber(anyNumber(t, "a"))
		b, _ := parseNumber(anyNumber(t, "b"))
		for name, op := range map[string]func(number, number) (number, error){"+": number.plus, "-": number.minus} {
			want := new(big.Rat).Add(rational(t, string(a)), rational(t, string(b)))
			if name == "-" {
				want = new(big.Rat).Sub(rational(t, string(a)), rational(t, string(b)))
			}
			got, err := op(a, b)
			if err == nil && rational(t, string(got)).Cmp(want) != 0 {
				t.Fatalf("%s %s %s = %s", a, name, b, got)
			}
			if exactText := want.FloatString(130); err != nil {
				if _, fits := parseNumber(exactText); fits == nil {
					t.Fatalf("%s %s %s was refused: %v", a, name, b, err)
				}
			}
		}
	})
}

func TestNumber_OrderIsNumeric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := parseNumber(anyNumber(t, "a"))
		b, _ := parseNumber(anyNumber(t, "b"))
		if got, want := a.compare(b), rational(t, string(a)).Cmp(rational(t, string(b))); got != want {
			t.Fatalf("%s compared with %s: %d, want %d", a, b, got, want)
		}
		if a != b && strings.HasPrefix(a.order(), b.order()) {
			t.Fatalf("the order of %s begins with that of %s", a, b)
		}
	})
}

func TestNumber_LimitsAndOnePast(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for text, fits := range map[string]bool{
		nines: true, nines + "9": false, "0." + nines: true, nines[:37] + ".99": false, nines + "0": true,
		"9.9e125": true, "1e126": false, "-1e126": false, "1e-130": true, "1e-131": false, "-1e-131": false,
		"0e999999999999999999999": true, "1e999999999999999999999": false, "1e-999999999999999999999": false,
	} {
		if _, err := parseNumber(text); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The figures were measured at AWS to the byte, by items of exactly 400 KB.
func TestNumber_Sizes(t *testing.T) {
	for text, want := range map[string]int{
		"0": 1, "-0": 1, "1": 2, "12": 2, "123": 3, "1234": 3, "12345678901234567890123456789012345678": 20, "0042": 2,
		"100": 2, "1010": 3, "0.0000001": 2, "1E125": 2, "1E-100": 2, "1.5": 3, "15": 2, "1.200": 3, "1.234": 4,
		"3.14159": 5, "123456": 4, "100.5": 4, "0.15": 2, "-42": 3,
	} {
		n, err := parseNumber(text)
		if err != nil || n.size() != want {
			t.Errorf("%s weighs %d, want %d (%v)", text, n.size(), want, err)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "-1", "1.0", "1e3", ".5", "5.", "e", "1e", "--1", "+1", "1E+126", "00", "",
		"9e-130", "1e9999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseNumber(text)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q was read as %s", text, n)
		}
		if got, ok := new(big.Rat).SetString(string(n)); !ok || got.Cmp(want) != 0 {
			t.Fatalf("%q was read as %s", text, n)
		}
		if _, err := n.plus("1"); err != nil && len(text) < 30 && !strings.ContainsAny(text, "eE") {
			t.Fatalf("%s + 1: %v", n, err)
		}
	})
}
