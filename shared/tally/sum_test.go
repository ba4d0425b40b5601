package tally

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSum_AgreesWithBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deltas := rapid.SliceOf(rapid.Int64()).Draw(t, "deltas")
		got, want := Sum{}, new(big.Int)
		for _, d := range deltas {
			got, want = got.Plus(SumOf(d)), want.Add(want, big.NewInt(d))
		}
		if got.String() != want.String() || got.Big().Cmp(want) != 0 {
			t.Fatalf("sum %s, want %s", got, want)
		}
		if n, ok := got.Int64(); ok != want.IsInt64() || ok && n != want.Int64() {
			t.Fatalf("Int64 of %s: %d %t", want, n, ok)
		}
		if back, err := ParseSum(got.String()); err != nil || back != got {
			t.Fatalf("ParseSum(%s) = %v, %v", got, back, err)
		}
		if !got.Plus(got.Neg()).IsZero() {
			t.Fatalf("%s + -%s is not 0", got, got)
		}
	})
}

func TestSum_Int64EdgesDoNotWrap(t *testing.T) {
	twice := SumOf(math.MaxInt64).Plus(SumOf(math.MaxInt64))
	if twice.String() != "18446744073709551614" {
		t.Fatalf("2 * MaxInt64 = %s", twice)
	}
	if _, ok := twice.Int64(); ok {
		t.Fatal("2 * MaxInt64 passed for an int64")
	}
}

func TestParseSum_LimitAndOnePast(t *testing.T) {
	limit := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))
	if s, err := ParseSum(limit.String()); err != nil || s.Big().Cmp(limit) != 0 {
		t.Fatalf("2^127-1: %v, %v", s, err)
	}
	for _, text := range []string{limit.Add(limit, big.NewInt(1)).String(), "", "1.0", "1e3", "x", " 1"} {
		if s, err := ParseSum(text); err == nil {
			t.Errorf("ParseSum(%q) = %s, want an error", text, s)
		}
	}
}

func TestBoundID_LimitAndOnePast(t *testing.T) {
	at, past := strings.Repeat("a", MaxID), strings.Repeat("a", MaxID+1)
	if BoundID(at) != at {
		t.Error("an identity of MaxID bytes was changed")
	}
	bound := BoundID(past)
	if len(bound) > MaxID || bound == past || BoundID(bound) != bound {
		t.Errorf("bound %q", bound)
	}
	if BoundID(past+"b") == bound {
		t.Error("two long identities share one bound form")
	}
}
