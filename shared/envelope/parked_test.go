package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Random bytes do not shrink, so these payloads find the limit of what fits whole and of what fits gzipped.
func TestParked_APayloadIsGzippedWhereItWouldNotFitOtherwise(t *testing.T) {
	b, err := Decode(Kinesis, []byte(kinesisJSON()))
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, MaxParked)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	for _, c := range []struct {
		payload []byte
		form    string
	}{
		{noise[:780_000], `"round":0,"payload":"`},
		{bytes.Repeat([]byte("0123456789"), 100_000), `"encoding":"gzip"`},
		{noise[:790_000], ""},
	} {
		p := Park(&b, 0, "bad", "", noon)
		p.Payload = c.payload
		text, err := json.Marshal(p)
		if c.form == "" {
			if !errors.Is(err, ErrParkedSize) {
				t.Errorf("%d bytes: %v, want ErrParkedSize", len(c.payload), err)
			}
			continue
		}
		if err != nil || len(text) > MaxParked || !bytes.Contains(text, []byte(c.form)) ||
			bytes.Contains(text, []byte(`"encoding"`)) != strings.Contains(c.form, "gzip") {
			t.Errorf("%d bytes: a document of %d without %s, %v", len(c.payload), len(text), c.form, err)
		}
		got, err := ParseParked(text)
		if err != nil || !bytes.Equal(got.Payload, c.payload) || got.Identity != p.Identity {
			t.Errorf("%d bytes came back as %d, %v", len(c.payload), len(got.Payload), err)
		}
	}
}

func TestParked_ANoticeShowsTheBeginningAndNamesTheWholeAndIsNeverCounted(t *testing.T) {
	b, err := Decode(Kinesis, []byte(kinesisJSON()))
	if err != nil {
		t.Fatal(err)
	}
	p := Park(&b, 0, "bad", "rules", noon)
	p.Payload = bytes.Repeat([]byte("{\"a\":1}\n"), 1<<17)
	text, err := p.Notice()
	if err != nil || len(text) > MaxParked {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	var got struct {
		Abacus, Identity, SHA256 string
		Size                     int
		Payload                  []byte
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(p.Payload))
	if got.Abacus != "oversized-record/1" || got.Identity != p.Identity || got.SHA256 != sum ||
		got.Size != len(p.Payload) || !bytes.Equal(got.Payload, p.Payload[:maxBeginning]) {
		t.Errorf("%.300s", text)
	}
	if _, err := ParseParked(text); !errors.Is(err, ErrNotParked) {
		t.Errorf("it was taken for a parked record: %v", err)
	}
}

func TestParked_ABombInADocumentIsRefused(t *testing.T) {
	for name, encoding := range map[string]string{"bomb": b64(gzipped(strings.Repeat(" ", MaxUnpacked+1))),
		"cut": b64(gzipped("{}")[:15]), "none": b64("{}")} {
		text := `{"abacus":"parked-record/1","identity":"i","source":"s","encoding":"gzip","payload":"` + encoding + `"}`
		if _, err := ParseParked([]byte(text)); !errors.Is(err, ErrNotParked) {
			t.Errorf("%s: %v, want ErrNotParked", name, err)
		}
	}
	text := `{"abacus":"parked-record/1","identity":"i","source":"s","encoding":"br"}`
	if _, err := ParseParked([]byte(text)); !errors.Is(err, ErrNotParked) {
		t.Errorf("an encoding that is not known: %v", err)
	}
}

func FuzzParseParked(f *testing.F) {
	f.Add([]byte(`{"abacus":"parked-record/1","identity":"i","source":"s","payload":"e30="}`))
	f.Add([]byte(`{"abacus":"parked-record/1","identity":"i","source":"s","encoding":"gzip","payload":"` +
		b64(gzipped("{}")) + `"}`))
	f.Add([]byte(`{"abacus":"oversized-record/1","identity":"i","source":"s","size":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseParked(text)
		if err != nil {
			if !errors.Is(err, ErrNotParked) {
				t.Fatal(err)
			}
			return
		}
		again, err := json.Marshal(p)
		if errors.Is(err, ErrParkedSize) {
			return
		}
		if err != nil {
			t.Skip(err) // a time that RFC 3339 cannot say
		}
		back, err := ParseParked(again)
		if err != nil || back.Identity != p.Identity || !bytes.Equal(back.Payload, p.Payload) {
			t.Fatalf("%s came back as %+v, %v", again, back, err)
		}
	})
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
