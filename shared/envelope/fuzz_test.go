package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"abacus/shared/tally"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// The differences between Decode and json.Unmarshal into the types of aws-lambda-go, each deliberate:
//
//   - a name that differs in case is not the member, and a member that Decode does not read may be anything;
//   - a member that is read twice, half a surrogate pair and line breaks in base64 are refused;
//   - text that is not UTF-8 is passed on as it is, not replaced;
//   - an arrival time may be anything;
//   - a record is refused unless it names its source, its ARN and itself, by printable ASCII without the separators of
//     identities, and all records name one source.
//
// reference therefore hands the library only what it should see, and then asks what Decode asks.
func reference(kind Kind, raw []byte) ([]Record, error) {
	var event struct{ Records any }
	seen, err := json.Marshal(map[string]any{"Records": pick(memberOf(raw, "Records"), kind)})
	if err != nil {
		return nil, err
	}
	var records []Record
	add := func(source, arn, eventID, id string, r Record) {
		shard, _ := strings.CutSuffix(eventID, ":"+id)
		if kind == Kinesis && (shard == eventID || shard == "" || !SequenceNumber(id).Valid()) || !isName([]byte(id)) ||
			!isName([]byte(arn)) ||
			kind == Kinesis && !isName([]byte(shard)) || source != string(kind) {
			err = fmt.Errorf("record without its names")
		}
		r.ID, r.Identity = id, SQSIdentity(arn, id)
		if kind == Kinesis {
			r.Identity = KinesisIdentity(arn, shard, SequenceNumber(id))
		}
		records = append(records, r)
		if first, _ := strings.CutSuffix(records[0].Identity, records[0].ID); first+id != r.Identity {
			err = fmt.Errorf("records of two sources")
		}
	}
	if kind == Kinesis {
		var e events.KinesisEvent
		if err := json.Unmarshal(seen, &e); err != nil {
			return nil, err
		}
		event.Records = e.Records
		for _, r := range e.Records {
			at := r.Kinesis.ApproximateArrivalTimestamp.Time
			add(r.EventSource, r.EventSourceArn, r.EventID, r.Kinesis.SequenceNumber, Record{Payload: r.Kinesis.Data,
				Arrived: at})
		}
		if e.Records == nil {
			return nil, errors.New("no records")
		}
		return records, err
	}
	var e events.SQSEvent
	if err := json.Unmarshal(seen, &e); err != nil {
		return nil, err
	}
	for _, m := range e.Records {
		add(m.EventSource, m.EventSourceARN, "", m.MessageId, Record{Payload: []byte(m.Body),
			Group: m.Attributes["MessageGroupId"]})
	}
	if len(e.Records) == 0 {
		return nil, errors.New("no records")
	}
	return records, err
}

// memberOf returns the value of the member of that very name; nil where there is none.
func memberOf(raw []byte, name string) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var all any
	if d.Decode(&all) != nil {
		return nil
	}
	members, ok := all.(map[string]any)
	if !ok {
		return "not an object"
	}
	return members[name]
}

// pick keeps of each record the members that are read, and of an arrival time what the library can read.
func pick(records any, kind Kind) any {
	list, ok := records.([]any)
	if !ok {
		return records
	}
	keep := func(from any, names ...string) any {
		members, ok := from.(map[string]any)
		if !ok {
			return from
		}
		kept := map[string]any{}
		for _, name := range names {
			if value, ok := members[name]; ok {
				kept[name] = value
			}
		}
		return kept
	}
	picked := []any{}
	for _, r := range list {
		r = keep(r, append([]string{"eventSource", "eventSourceARN"}, map[Kind][]string{
			Kinesis: {"eventID", "kinesis"}, SQS: {"messageId", "body", "attributes"}}[kind]...)...)
		if members, ok := r.(map[string]any); ok {
			if inner, ok := members["kinesis"]; ok {
				inner = keep(inner, "sequenceNumber", "data", "approximateArrivalTimestamp")
				if m, ok := inner.(map[string]any); ok {
					if n, ok := m["approximateArrivalTimestamp"].(json.Number); !ok || !finite(n) {
						delete(m, "approximateArrivalTimestamp")
					}
				}
				members["kinesis"] = inner
			}
			if inner, ok := members["attributes"]; ok {
				members["attributes"] = keep(inner, "MessageGroupId")
			}
		}
		picked = append(picked, r)
	}
	return picked
}

func finite(n json.Number) bool { _, err := n.Float64(); return err == nil }

// strict reports whether raw is JSON by the strictest reading: UTF-8, whole surrogate pairs, no name twice.
func strict(raw []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := d.ReadValue(); err != nil {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
}

func seedEvents(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "events", "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var short bytes.Buffer
		if json.Compact(&short, raw) == nil && short.Len() < 4096 {
			f.Add(strings.HasPrefix(filepath.Base(file), "sqs"), short.Bytes())
		}
	}
	for _, kinesis := range []string{kinesisJSON(), kinesisJSON(`"data"`, `"Data":"","data"`),
		kinesisJSON(`1545084650.987`, `null`),
		kinesisJSON(`eyJhIjoxfQ==`, `\/\/\/\/`), kinesisJSON(number1, `7`), kinesisJSON(`:[{`, `:[null,{`),
		`{"Records":[]}`, `{"Records":null}`} {
		f.Add(false, []byte(kinesis))
	}
	two := func(first, second string) string { return `{"Records":[` + first + `,` + second + `]}` }
	f.Add(false, []byte(two(kinesisRecord(), kinesisRecord(number1, "7", `"data"`, `"x":null,"data"`))))
	f.Add(false, []byte(two(kinesisRecord(`1545084650.987`, `{"a":[1,"b"]}`), kinesisRecord(number1, "7",
		`1545084650.987`, `0`))))
	f.Add(true, []byte(two(sqsRecord(), sqsRecord(`"m1"`, `"m\u0032"`, `"g"`, `null`))))
	for _, sqs := range []string{sqsJSON(), sqsJSON(`{\"a\":1}`, `\ud83d\ude00\u0000`), sqsJSON(`{\"a\":1}`, `\ud83d`),
		sqsJSON(`"attributes"`, `"attributes":null,"x"`),
		sqsJSON(`"body"`, `"body":"","body"`), sqsJSON(`"g"`, `{}`), sqsJSON(`"g"`, "\"\xff\""), `{"records":[]}`} {
		f.Add(true, []byte(sqs))
	}
}

func FuzzDecode_AgreesWithAwsLambdaGo(f *testing.F) {
	seedEvents(f)
	f.Fuzz(func(t *testing.T, sqs bool, raw []byte) {
		kind := Kinesis
		if sqs {
			kind = SQS
		}
		got, err := Decode(kind, raw)
		if err != nil && (!errors.Is(err, ErrEvent) || len(got.Records) != 0) {
			t.Fatalf("a refusal with %d records: %v", len(got.Records), err)
		}
		if !json.Valid(raw) {
			if err == nil {
				t.Fatalf("%q was taken for JSON", raw)
			}
			return
		}
		if !utf8.Valid(raw) {
			return
		}
		if second, err2 := decodeByTokens(kind, raw); err2 == nil && strict(raw) {
			compare(t, "a token reader", got, err, second.Records)
		}
		want, wantErr := reference(kind, raw)
		switch {
		case wantErr != nil && err == nil:
			t.Fatalf("taken, though the library refuses it: %v: %q", wantErr, raw)
		case wantErr == nil && (err == nil || strict(raw) && !brokenBase64(raw)):
			compare(t, "the library", got, err, want)
		}
	})
}

// brokenBase64 reports whether some string of the event has a line break, which the library passes over in base64.
func brokenBase64(raw []byte) bool { return bytes.Contains(raw, []byte(`\`)) }

func compare(t interface {
	Helper()
	Fatalf(string, ...any)
}, with string, got Batch, err error, want []Record) {
	t.Helper()
	if err != nil {
		t.Fatalf("refused, though %s takes it: %v", with, err)
	}
	if len(got.Records) != len(want) {
		t.Fatalf("%d records, %s has %d", len(got.Records), with, len(want))
	}
	for i, g := range got.Records {
		w := want[i]
		if g.ID != w.ID || g.Identity != w.Identity || !bytes.Equal(g.Payload, w.Payload) || g.Group != w.Group {
			t.Fatalf("record %d differs from that of %s:\n got %+v\nwant %+v", i, with, g, w)
		}
		if s := w.Arrived.Unix(); got.Kind == Kinesis && s > 0 && s < firstMilliseconds && !near(g.Arrived, w.Arrived) {
			t.Fatalf("record %d arrived at %v, with %s at %v", i, g.Arrived, with, w.Arrived)
		}
	}
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= time.Millisecond }

// envelopeMember finds the names by which an object may be a wrapping.
var envelopeMember = regexp.MustCompile(`"(TopicArn|detail-type|Records|Event|logEvents)"`)

func FuzzDocuments_AgreesWithAStreamOfJSON(f *testing.F) {
	for _, payload := range []string{`{"a":1}`, `{"a":1}{"b":"]"}`, "[{}, {\"a\":[1]}]\n", "\uFEFF{}", `[]`, ``, ` `,
		`5`, `{"a":01}`, "{\"a\":\"\\u00e9\xff\"}",
		gzipped(`{"a":1}`), gzipped(gzipped(`[]`)), zstdded(`{"a":1}`), "\x1f\x8b", "\x28\xb5\x2f\xfd"} {
		f.Add([]byte(payload))
	}
	o := newOpener(tally.DefaultEnvelopes, 1<<16, 100)
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := docs(o, string(payload))
		if err != nil && !errors.Is(err, ErrPayload) {
			t.Fatalf("%v is not ErrPayload", err)
		}
		for _, doc := range got {
			if !json.Valid([]byte(doc)) || doc[0] != '{' {
				t.Fatalf("%q is not an object", doc)
			}
		}
		if isGzip(payload) || isZstd(payload) || isAggregate(payload) || envelopeMember.Match(payload) {
			return
		}
		want, wantErr := stream2docs(bytes.TrimPrefix(payload, []byte("\uFEFF")))
		if len(want) > 100 {
			wantErr = errors.New("too many")
		}
		if (err == nil) != (wantErr == nil) || err == nil && !slices.Equal(got, want) {
			t.Fatalf("%q:\n got %q %v\nwant %q %v", payload, got, err, want, wantErr)
		}
		for _, wrap := range []func(string) string{gzipped, zstdded} {
			again, againErr := docs(o, wrap(string(payload)))
			if (againErr == nil) != (err == nil) || err == nil && !cmp.Equal(again, got) {
				t.Fatalf("wrapped: %q %v, bare: %q %v", again, againErr, got, err)
			}
		}
	})
}

// stream2docs finds the documents with encoding/json.
func stream2docs(payload []byte) (found []string, err error) {
	d := json.NewDecoder(bytes.NewReader(payload))
	for n := 0; ; n++ {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case err == io.EOF && n > 0:
			return found, nil
		case err != nil:
			return found, err
		}
		elements := []json.RawMessage{value}
		if value[0] == '[' {
			elements = nil
			if err := json.Unmarshal(value, &elements); err != nil {
				return found, err
			}
		}
		for _, element := range elements {
			if element[0] != '{' {
				return found, errors.New("not an object: " + strconv.Quote(string(element)))
			}
			found = append(found, string(element))
		}
	}
}
