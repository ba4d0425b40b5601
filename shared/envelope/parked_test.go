package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestParked_TheDocumentIsPinned(t *testing.T) {
	b, err := Decode(Kinesis, []byte(kinesisJSON()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(Park(&b, 0, "not a number: é\ufffe😀", "sha256:00", noon))
	want := `{"abacus":"parked-record/1","kind":"aws:kinesis","source":"` + stream + `","shard":"shardId-000000000006",` +
		`"sequenceNumber":"` + number1 + `","identity":"` + stream + `|shardId-000000000006|` + number1 + `",` +
		`"reason":"not a number: \u00e9\ufffe\ud83d\ude00","rules":"sha256:00","arrived":"2018-12-17T22:10:50.987Z",` +
		`"firstParked":"2026-01-02T12:00:00Z","lastParked":"2026-01-02T12:00:00Z","round":0,"payload":"eyJhIjoxfQ=="}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

func TestParked_ADocumentReadsBackWhole(t *testing.T) {
	for kind, raw := range map[Kind]string{Kinesis: kinesisJSON(), SQS: sqsJSON()} {
		b, err := Decode(kind, []byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		want := Park(&b, 0, "bad \"é", "sha256:00", noon)
		want.Round, want.Payload = 2, []byte("\x00\xff not JSON")
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
			t.Errorf("not ASCII: %s", text)
		}
		got, err := ParseParked(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", kind, err, diff)
		}
	}
}

func TestParked_SizeAtTheLimitAndOnePast(t *testing.T) {
	b, err := Decode(SQS, []byte(sqsJSON()))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := json.Marshal(Park(&b, 0, "", "", noon))
	if err != nil {
		t.Fatal(err)
	}
	p := Park(&b, 0, strings.Repeat("r", MaxParked-len(bare)), "", noon)
	if text, err := json.Marshal(p); err != nil || len(text) != MaxParked {
		t.Errorf("at the limit: %d bytes, %v", len(text), err)
	}
	p.Reason += "r"
	if _, err := json.Marshal(p); !errors.Is(err, ErrParkedSize) {
		t.Errorf("one past the limit: %v, want ErrParkedSize", err)
	}
}

func TestParked_NoOtherMessageIsTakenForOne(t *testing.T) {
	for _, text := range []string{``, `null`, `[]`, `{}`, `{"a":1}`, `{"abacus":"parked-record/1"}`,
		`{"abacus":"parked-record/2","identity":"i","source":"s"}`, `{"abacus":5,"identity":"i","source":"s"}`,
		`{"identity":"i","source":"s"}`, `{"abacus":"parked-record/1","identity":"i","source":"s","payload":"%"}`,
		`{"requestContext":{"condition":"RetryAttemptsExhausted"},"KinesisBatchInfo":{}}`} {
		if p, err := ParseParked([]byte(text)); !errors.Is(err, ErrNotParked) {
			t.Errorf("%s became %+v, %v", text, p, err)
		}
	}
}
