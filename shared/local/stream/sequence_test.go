package stream

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestSequence_ReadsNumbersOfRealStreams(t *testing.T) {
	// From AWS's own examples (https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html and
	// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html).
	for number, shard := range map[string]uint32{"49590338271490256608559692538361571095921575989136588898": 6,
		"49601189658422359378836298521827638475320189012309704722": 1} {
		q, err := parseSequence(number)
		if err != nil {
			t.Errorf("%s: %v", number, err)
			continue
		}
		if q.shard != shard {
			t.Errorf("%s encodes shard %d, want %d", number, q.shard, shard)
		}
	}
}

func TestSequence_RoundTripsAndKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) sequence {
			return sequence{created: rapid.Int64Range(1, 1<<34).Draw(t, label+" created"),
				index: rapid.Uint64Range(0, lastIndex).Draw(t, label+" index"),
				at:    rapid.Int64Range(1, 1<<34).Draw(t, label+" at"),
				shard: rapid.Uint32Range(0, 1<<31).Draw(t, label+" shard")}
		}
		a, b := draw("a"), draw("b")
		back, err := parseSequence(a.String())
		if err != nil || back != a || len(a.String()) != 56 {
			t.Fatalf("%v as %s reads back as %v, %v", a, a, back, err)
		}
		b.created, b.shard = a.created, a.shard
		x, _ := new(big.Int).SetString(a.String(), 10)
		y, _ := new(big.Int).SetString(b.String(), 10)
		if a.index != b.index && (x.Cmp(y) < 0) != (a.index < b.index) {
			t.Fatalf("numbers %v, %v do not order by index %d, %d", x, y, a.index, b.index)
		}
	})
}

func FuzzParseSequence(f *testing.F) {
	for _, seed := range []string{"", "0", "49590338271490256608559692538361571095921575989136588898", "-1", "1e9",
		"٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := parseSequence(text); err == nil && q.String() != text {
			t.Errorf("%q reads as %v, which is %s", text, q, q)
		}
	})
}

func FuzzParseIterator(f *testing.F) {
	f.Add("")
	f.Add("AAAAAAAAAAA=")
	f.Add(iterator{Stream: "s", Shard: "shardId-000000000000", Next: 3, Issued: 5}.text())
	f.Fuzz(func(t *testing.T, text string) {
		if i, err := parseIterator(text); err == nil && i.text() != text {
			if again, err := parseIterator(i.text()); err != nil || again != i {
				t.Errorf("%q reads as %v, then as %v, %v", text, i, again, err)
			}
		}
	})
}
