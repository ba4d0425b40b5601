package envelope

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"abacus/shared/tally"

	"github.com/klauspost/compress/zstd"
)

func gzipped(payload string) string {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write([]byte(payload))
	_ = w.Close()
	return out.String()
}

var zstdWriter = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err)
	}
	return w
})

func zstdded(payload string) string { return string(zstdWriter().EncodeAll([]byte(payload), nil)) }

// streamed is zstd without the size of its content in the header.
func streamed(payload string) string {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<15))
	if err != nil {
		panic(err)
	}
	for half := range slices.Chunk([]byte(payload), max(1, len(payload)/2)) {
		_, _ = w.Write(half)
	}
	_ = w.Close()
	return out.String()
}

func docs(o *Opener, payload string) ([]string, error) {
	var found []string
	_, err := o.Documents([]byte(payload), func(d Document) error {
		found = append(found, string(d.JSON))
		return nil
	})
	return found, err
}

func TestD6_EveryDocumentOfARecordIsFoundInOrder(t *testing.T) {
	one, two := `{"id":"e3","x":"}{[]\"\\"}`, `{"id":"e4","y":[{"z":[]}]}`
	for payload, want := range map[string][]string{
		one:                              {one},
		" \t\r\n" + one + "\r\n\n ":      {one},
		"\uFEFF" + one:                   {one},
		one + "\n" + two:                 {one, two},
		one + "\n" + two + "\n":          {one, two},
		one + "\r\n\r\n" + two + "\r\n":  {one, two},
		one + two:                        {one, two},
		"[" + one + "," + two + "]":      {one, two},
		" [ " + one + " , " + two + " ]": {one, two},
		"[" + one + "]\n" + two + "[]":   {one, two},
		"[" + one + "]":                  {one},
		"[]":                             nil,
		"{}":                             {"{}"},
		"{\n  \"a\": 1\n}":               {"{\n  \"a\": 1\n}"},
	} {
		for name, wrap := range map[string]func(string) string{
			"plain": func(s string) string { return s }, "gzip": gzipped, "zstd": zstdded,
			"zstd in gzip": func(s string) string { return gzipped(zstdded(s)) },
			"two gzips":    func(s string) string { return gzipped(s[:len(s)/2]) + gzipped(s[len(s)/2:]) },
			"two zstds":    func(s string) string { return zstdded(s[:len(s)/2]) + zstdded(s[len(s)/2:]) },
		} {
			got, err := docs(NewOpener(tally.DefaultEnvelopes), wrap(payload))
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s %q: %q, %v, want %q", name, payload, got, err, want)
			}
		}
	}
}

func TestD6_ARecordThatIsNotWhollyDocumentsIsBad(t *testing.T) {
	for _, payload := range []string{"", " \n", "\uFEFF", "not json", "null", "5", `"text"`, "true", `{"a":1`,
		`{"a":1}}`, `{"a":1},{"b":2}`,
		`{"a":1} x`, `[{"a":1},5]`, `[{"a":1},[{}]]`, `[{"a":1}`, `[{"a":1},]`, `[,{"a":1}]`, `{"a":1}` + "\x00", "\x00",
		"{'a':1}", `{"a":01}`,
		`{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":1e}`, `{"a":tru}`, `{"a":"` + "\n" + `"}`, `{"a" 1}`, `{a:1}`, `{"a":1,}`,
		`{"a":"\q"}`, `{"a":NaN}`,
		"{\"a\":1}\n{\"b\":", "\xff\xfe{\x00", `{"a":[1}]`} {
		if found, err := docs(NewOpener(tally.DefaultEnvelopes), payload); !errors.Is(err, ErrPayload) {
			t.Errorf("%q: %d documents, %v, want ErrPayload", payload, len(found), err)
		}
	}
}

func TestD3_GzipIsOpenedByContentAndReadWholeOrNotAtAll(t *testing.T) {
	data := eventBatch(t, "kinesis-cloudwatch-logs.json").Records[0].Payload
	found, err := docs(NewOpener(tally.Gzip), string(data))
	if err != nil || len(found) != 1 || !strings.Contains(found[0], `"messageType":"DATA_MESSAGE"`) {
		t.Fatalf("%q, %v", found, err)
	}
	for n := range data {
		if found, err := docs(NewOpener(tally.DefaultEnvelopes), string(data[:n])); !errors.Is(err, ErrPayload) || len(found) != 0 {
			t.Fatalf("cut at byte %d: %d documents, %v, want ErrPayload", n, len(found), err)
		}
	}
	spoilt := bytes.Clone(data)
	spoilt[len(spoilt)-8] ^= 1 // the checksum
	for name, payload := range map[string]string{"checksum": string(spoilt), "trailing text": string(data) + "{}",
		"magic alone":      "\x1f\x8b",
		"zstd magic alone": "\x28\xb5\x2f\xfd", "zstd cut": zstdded(`{"a":1}`)[:12], "zstd and text": zstdded(`{"a":1}`) +
			"{}"} {
		if found, err := docs(NewOpener(tally.DefaultEnvelopes), payload); !errors.Is(err, ErrPayload) || len(found) != 0 {
			t.Errorf("%s: %q, %v, want ErrPayload", name, found, err)
		}
	}
}

func TestD3_ABombIsABadRecord(t *testing.T) {
	const limit = 1 << 16
	o := newOpener(tally.DefaultEnvelopes, limit, 10)
	at := `{"a":"` + strings.Repeat("x", limit-len(`{"a":""}`)) + `"}`
	for name, wrap := range map[string]func(string) string{"gzip": gzipped, "zstd": zstdded, "zstd stream": streamed} {
		if found, err := docs(o, wrap(at)); err != nil || len(found) != 1 {
			t.Errorf("%s at the limit: %d documents, %v", name, len(found), err)
		}
		for _, size := range []int{1, limit, 8 << 20} {
			if found, err := docs(o, wrap(at+strings.Repeat(" ", size))); !errors.Is(err, ErrPayload) || len(found) != 0 {
				t.Errorf("%s %d past the limit: %d documents, %v, want ErrPayload", name, size, len(found), err)
			}
		}
		if found, err := docs(o, gzipped(wrap(at))); !errors.Is(err, ErrPayload) {
			t.Errorf("two layers that pass the limit together: %d documents, %v, want ErrPayload", len(found), err)
		}
	}
	if found, err := docs(o, at+strings.Repeat(" ", limit)); err != nil || len(found) != 1 {
		t.Errorf("plain text is bounded by its source alone: %d documents, %v", len(found), err)
	}
}

func TestUnwrap_LayersAtTheLimitAndOnePast(t *testing.T) {
	payload := `{"a":1}`
	for range MaxLayers {
		payload = gzipped(payload)
	}
	if found, err := docs(NewOpener(tally.DefaultEnvelopes), payload); err != nil || len(found) != 1 {
		t.Errorf("at the limit: %d documents, %v", len(found), err)
	}
	if found, err := docs(NewOpener(tally.DefaultEnvelopes), gzipped(payload)); !errors.Is(err, ErrPayload) || len(found) != 0 {
		t.Errorf("one past: %d documents, %v, want ErrPayload", len(found), err)
	}
}

func TestUnwrap_DocumentsAtTheLimitAndOnePast(t *testing.T) {
	o := newOpener(tally.DefaultEnvelopes, 1<<20, 10)
	for name, wrap := range map[string]func(n int) string{
		"lines": func(n int) string { return strings.Repeat("{}\n", n) },
		"array": func(n int) string { return "[{}" + strings.Repeat(",{}", n-1) + "]" },
		"mixed": func(n int) string { return "[{}]" + strings.Repeat("{}", n-1) },
		"gzip":  func(n int) string { return gzipped(strings.Repeat("{}\n", n)) },
	} {
		if found, err := docs(o, wrap(10)); err != nil || len(found) != 10 {
			t.Errorf("%s at the limit: %d documents, %v", name, len(found), err)
		}
		if found, err := docs(o, wrap(11)); !errors.Is(err, ErrPayload) || len(found) != 10 {
			t.Errorf("%s one past: %d documents, %v, want ErrPayload", name, len(found), err)
		}
	}
}

func TestUnwrap_TheErrorOfTheVisitorEndsTheWalkAndIsReturned(t *testing.T) {
	stop := errors.New("enough")
	for _, payload := range []string{`{}{}`, `[{},{}]`, gzipped(`{}{}`), zstdded(`[{},{}] x`)} {
		calls := 0
		_, err := NewOpener(tally.DefaultEnvelopes).Documents([]byte(payload), func(Document) error { calls++; return stop })
		if err != stop || calls != 1 {
			t.Errorf("%q: %v after %d calls", payload, err, calls)
		}
	}
}

func TestUnwrap_OneOpenerServesManyGoroutines(t *testing.T) {
	o := NewOpener(tally.DefaultEnvelopes)
	done := make(chan error)
	for i := range 8 {
		go func() {
			for j := range 50 {
				want := fmt.Sprintf(`{"i":%d,"j":%d}`, i, j)
				for _, wrap := range []func(string) string{gzipped, zstdded} {
					if found, err := docs(o, wrap(want)); err != nil || !slices.Equal(found, []string{want}) {
						done <- fmt.Errorf("%q, %v, want %s", found, err, want)
						return
					}
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
