package envelope

import (
	"cmp"
	"math/big"
	"strings"
	"testing"

	"abacus/shared/tally"

	"pgregory.net/rapid"
)

func number(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic("not a number: " + text)
	}
	return n
}

func TestSequenceNumber_ComparesAsANumberOfAnyLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`0{0,2}[0-9]{1,130}`)
		a, b := digits.Draw(t, "a"), digits.Draw(t, "b")
		if got, want := SequenceNumber(a).Compare(SequenceNumber(b)), number(a).Cmp(number(b)); got != want {
			t.Fatalf("%s to %s: %d, want %d", a, b, got, want)
		}
	})
	if SequenceNumber("9").Compare("10") >= 0 || SequenceNumber("10").Compare("10") != 0 {
		t.Error("9, 10 are not in order")
	}
	for text, want := range map[SequenceNumber]bool{"0": true, "12": true, "": false, "-1": false, "1.0": false,
		" 1": false, "١": false} {
		if text.Valid() != want {
			t.Errorf("Valid(%q) = %t", text, !want)
		}
	}
}

// Identities are kept for weeks and rebuilt by replays: a change of these texts counts events twice.
func TestIdentity_TextsArePinned(t *testing.T) {
	for got, want := range map[string]string{
		KinesisIdentity(stream, "shardId-000000000006", number1): stream +
			"|shardId-000000000006|" + number1,
		KinesisIdentity(stream+"/consumer/fast:1700000000", "shardId-000000000006", number1): stream +
			"|shardId-000000000006|" + number1,
		SQSIdentity(queue, "m1"):                      queue + "|m1",
		DocumentIdentity("r", 0):                      "r",
		DocumentIdentity("r", 1):                      "r#1",
		DocumentIdentity("r", 65535):                  "r#65535",
		decodeOne(t, SQS, sqsJSON()).Identity:         SQSIdentity(queue, "m1"),
		decodeOne(t, Kinesis, kinesisJSON()).Identity: KinesisIdentity(stream, "shardId-000000000006", number1),
		decodeOne(t, Kinesis, kinesisJSON(`/flights`,
			`/flights/consumer/fast:1700000000`)).Identity: KinesisIdentity(stream, "shardId-000000000006", number1),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestBatch_SaysWhatItsSourcePromises(t *testing.T) {
	k, err := Decode(Kinesis, []byte(kinesisJSON(`/flights`, `/flights.fifo`)))
	if err != nil || k.FIFO() || k.Serial() != stream+".fifo|shardId-000000000006" {
		t.Errorf("Kinesis: %t %q %v", k.FIFO(), k.Serial(), err)
	}
	for name, fifo := range map[string]bool{`:flights"`: false, `:flights.fifo"`: true, `:fifo"`: false} {
		q, err := Decode(SQS, []byte(sqsJSON(`:flights"`, name)))
		if err != nil || q.FIFO() != fifo || q.Serial() != "" {
			t.Errorf("queue %s: %t %q %v", name, q.FIFO(), q.Serial(), err)
		}
	}
}

func TestDecode_TheStateOfATumblingWindowIsCarriedOn(t *testing.T) {
	for tail, want := range map[string]string{
		``: ``, `,"window":null,"state":{"a":1}`: ``, `,"state":{"a":1}`: ``,
		`,"window":{"start":"2023-11-14T22:12:00Z"},"state":{"a":[1,2]}`: `{"a":[1,2]}`,
		`,"window":{},"state":null`:                                      `{}`, `,"window":{}`: `{}`,
	} {
		b, err := Decode(Kinesis, []byte(kinesisJSON(`}]}`, `}]`+tail+`}`)))
		if err != nil || string(b.State) != want {
			t.Errorf("%s: state %s, %v, want %s", tail, b.State, err, want)
		}
	}
}

func TestSequenceNumber_PositionsSortAsNumbers(t *testing.T) {
	numbers := []SequenceNumber{"0", "1", "9", "10", "99", "100",
		"49590338271490256608559692538361571095921575989136588898",
		"149590338271490256608559692538361571095921575989136588898", SequenceNumber(strings.Repeat("9", 129))}
	for i, a := range numbers {
		if !tally.ValidPosition(a.Position()) {
			t.Errorf("the position of %s is %q", a, a.Position())
		}
		for j, b := range numbers {
			if got, want := cmp.Compare(a.Position(), b.Position()), cmp.Compare(i, j); got != want {
				t.Errorf("positions of %s and %s compare as %d, want %d", a, b, got, want)
			}
		}
	}
	if a, b := SequenceNumber("007").Position(), SequenceNumber("7").Position(); a != b {
		t.Errorf("7 has the positions %q and %q", a, b)
	}
}
