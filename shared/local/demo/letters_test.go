package demo

import (
	"testing"
	"time"

	"abacus/shared/envelope"
)

func parked(t *testing.T, identity, payload string) []byte {
	t.Helper()
	document, err := envelope.Parked{
		Kind: envelope.Kinesis, Source: "arn:aws:kinesis:us-east-1:000000000000:stream/s", Identity: identity,
		Reason: "no reason", First: time.Unix(1, 0), Last: time.Unix(1, 0), Payload: []byte(payload),
	}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestLetters_ARecordParkedAgainIsOneLetter(t *testing.T) {
	letters, err := readParked([][]byte{parked(t, "a", "x"), parked(t, "b", "x"), parked(t, "a", "x")})
	if err != nil {
		t.Fatal(err)
	}
	if len(letters) != 2 || letters[0].times != 2 || letters[1].times != 1 {
		t.Errorf("letters %+v, want two, the first parked twice", letters)
	}
	if _, err := readParked([][]byte{[]byte(`{"requestContext":{}}`)}); err == nil {
		t.Error("a notice passes for a parked record")
	}
}

func TestMatch_ComparesBytesAndNumbers(t *testing.T) {
	refused := []record{{payload: []byte("a")}, {payload: []byte("a")}, {payload: []byte("b")}, {payload: []byte("c")}}
	letters := []letter{{payload: []byte("b")}, {payload: []byte("a")}, {payload: []byte("b")}, {payload: []byte("C")}}
	missing, strange := match(refused, letters)
	if len(missing) != 2 || string(missing[0].payload) != "a" || string(missing[1].payload) != "c" {
		t.Errorf("missing %+v, want the second a, and c", missing)
	}
	if len(strange) != 2 || string(strange[0].payload) != "b" || string(strange[1].payload) != "C" {
		t.Errorf("strange %+v, want the second b, and C", strange)
	}
}
