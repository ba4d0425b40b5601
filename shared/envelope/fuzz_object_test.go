package envelope

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"abacus/shared/tally"
)

// slowly opens the wrappings that are JSON objects, with encoding/json and maps: a second reading of the same rules.
type slowly struct {
	documents []string
	skipped   int
	bad       bool
	unknown   bool // JSON that encoding/json reads otherwise: a name twice, half a surrogate pair, text that is not UTF-8
}

func (s *slowly) payload(text []byte, depth int) {
	for _, value := range bytes.SplitAfter(text, []byte("\n")) {
		if len(value) > 0 && json.Valid(value) && !strict(value) {
			s.unknown = true
		}
	}
	s.unknown = s.unknown || json.Valid(text) && !strict(text)
	found, err := stream2docs(bytes.TrimPrefix(text, byteOrderMark))
	s.bad = s.bad || err != nil || depth > MaxLayers
	for _, doc := range found {
		if !s.bad {
			s.object(doc, depth)
		}
	}
}

func (s *slowly) object(doc string, depth int) {
	var m map[string]json.RawMessage
	s.unknown = s.unknown || json.Unmarshal([]byte(doc), &m) != nil || !strict([]byte(doc))
	text := func(name string) (out string) {
		if s.kind(m[name]) == '"' {
			_ = json.Unmarshal(m[name], &out)
		}
		return out
	}
	isText := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return s.kind(m[n]) != '"' })
	}
	topic, subject := strings.Split(text("TopicArn"), ":"), text("Type")
	switch {
	case isText("Type", "MessageId", "TopicArn", "Message") && len(topic) > 5 && topic[0] == "arn" && topic[2] == "sns" &&
		slices.Contains([]string{"Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"}, subject):
		s.bad = s.bad || subject != "Notification"
		s.payload([]byte(text("Message")), depth+1)
	case isText("version", "id", "detail-type", "source") && s.kind(m["detail"]) == '{':
		s.payload(m["detail"], depth+1)
	case text("Service") == "Amazon S3" && text("Event") == "s3:TestEvent" && isText("Bucket"):
		s.skipped++
	case len(m) == 1 && s.areObjectEvents(m["Records"]):
		var records []json.RawMessage
		_ = json.Unmarshal(m["Records"], &records)
		for _, r := range records {
			s.documents = append(s.documents, string(r))
		}
	case isText("messageType", "owner", "logGroup", "logStream") && s.kind(m["subscriptionFilters"]) == '[' &&
		s.kind(m["logEvents"]) == '[' && (text("messageType") == "DATA_MESSAGE" || text("messageType") == "CONTROL_MESSAGE"):
		if text("messageType") == "CONTROL_MESSAGE" {
			s.skipped++
			return
		}
		s.logEvents(m["logEvents"])
	default:
		s.documents = append(s.documents, doc)
	}
}

func (s *slowly) kind(value json.RawMessage) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

func (s *slowly) areObjectEvents(list json.RawMessage) bool {
	var records []map[string]json.RawMessage
	if json.Unmarshal(list, &records) != nil || len(records) == 0 {
		return false
	}
	for _, r := range records {
		var source string
		if json.Unmarshal(r["eventSource"], &source) != nil || source != "aws:s3" || s.kind(r["s3"]) != '{' {
			return false
		}
	}
	return true
}

func (s *slowly) logEvents(list json.RawMessage) {
	var events []json.RawMessage
	_ = json.Unmarshal(list, &events)
	for _, e := range events {
		var m map[string]json.RawMessage
		var line string
		if json.Unmarshal(e, &m) != nil || s.kind(m["message"]) != '"' || json.Unmarshal(m["message"], &line) != nil {
			s.bad = true
			return
		}
		line = string(bytes.TrimSpace([]byte(line)))
		if json.Valid([]byte(line)) && line[0] == '{' {
			s.documents = append(s.documents, line)
		} else {
			s.skipped++
		}
	}
}

func FuzzObjectLayers_AgreeWithASlowReading(f *testing.F) {
	for _, payload := range []string{plainEvent, notification("Notification", plainEvent), busEvent(plainEvent),
		notification("Notification", busEvent(plainEvent)), notification("SubscriptionConfirmation", plainEvent),
		notification("Notification", "x"), s3Test, s3Notification("a", "b"), `{"Records":[]}`,
		logMessage("DATA_MESSAGE", plainEvent, "x", "[]"), logMessage("CONTROL_MESSAGE", "x"), nested(MaxLayers + 1),
		"[" + busEvent(`{}`) + "]\n" + s3Test} {
		f.Add([]byte(payload))
	}
	o := newOpener(tally.SNS|tally.EventBridge|tally.S3|tally.Logs, 1<<20, 1000)
	f.Fuzz(func(t *testing.T, payload []byte) {
		var want slowly
		want.payload(payload, 0)
		found, skipped, err := opened(o, string(payload))
		if err != nil && !errors.Is(err, ErrPayload) {
			t.Fatal(err)
		}
		for i, d := range found {
			if d.Index != i || !json.Valid(d.JSON) || d.JSON[0] != '{' {
				t.Fatalf("document %d: %q at %d", i, d.JSON, d.Index)
			}
		}
		if want.unknown || len(want.documents) > 1000 || bytes.Contains(payload, []byte(`\u`)) {
			return
		}
		if want.bad != (err != nil) {
			t.Fatalf("%q: %v, want bad: %t", payload, err, want.bad)
		}
		got := make([]string, len(found))
		for i, d := range found {
			got[i] = string(d.JSON)
		}
		if err == nil && (!slices.Equal(got, want.documents) || skipped != want.skipped) {
			t.Fatalf("%q:\n got %q, %d skipped\nwant %q, %d", payload, got, skipped, want.documents, want.skipped)
		}
	})
}

// protoTokens reads a message of Protocol Buffers with encoding/binary alone: number, wire type, and the payload of
// varints and of texts. It reports false for what it does not know: groups.
func protoTokens(message []byte, each func(number, kind, n uint64, text []byte) bool) (valid, known bool) {
	for len(message) > 0 {
		tag, size := binary.Uvarint(message)
		if size <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return false, size <= 0 || tag>>3 == 0 // larger numbers are none, but readers differ in whether they mind
		}
		message = message[size:]
		var n uint64
		var text []byte
		switch tag & 7 {
		case 0, 2:
			if n, size = binary.Uvarint(message); size <= 0 {
				return false, true
			}
			message = message[size:]
			if tag&7 == 2 {
				if n > uint64(len(message)) {
					return false, true
				}
				text, message = message[:n], message[n:]
			}
		case 1, 5:
			width := map[uint64]int{1: 8, 5: 4}[tag&7]
			if len(message) < width {
				return false, true
			}
			message = message[width:]
		default:
			return false, false
		}
		if !each(tag>>3, tag&7, n, text) {
			return false, true
		}
	}
	return true, true
}

func FuzzAggregated_AgreesWithASecondReader(f *testing.F) {
	for _, message := range []string{"", field(1, "k") + record(0, "{}"), record(0, "{}") + field(1, "k"),
		field(1, "k") + field(2, "7") + field(3, numeral(1, 0)+numeral(2, 0)+field(3, "x")),
		field(1, "k") + field(3, field(3, "x")), field(1, "k") + numeral(3, 1), "\x1a\xff\xff\xff\xff\x0f"} {
		f.Add([]byte(message))
	}
	for _, vector := range kplVectors(f) {
		if len(vector) < 512 {
			f.Add([]byte(vector[4 : len(vector)-16]))
		}
	}
	const most = 100
	f.Fuzz(func(t *testing.T, message []byte) {
		whole := sealed(string(message))
		got, err := aggregated(message, []byte(whole[len(whole)-16:]), most)
		want, valid, known := secondReading(message)
		if !known || len(want) > most {
			return
		}
		if valid != (err == nil) || valid && !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%x: %q, %v; the second reader: %q, %t", message, got, err, want, valid)
		}
		if _, err := docs(NewOpener(tally.DefaultEnvelopes), whole); err != nil && !errors.Is(err, ErrPayload) {
			t.Fatal(err)
		}
	})
}

func secondReading(message []byte) (data [][]byte, valid, known bool) {
	var tables [3]uint64
	var indices [][2]uint64
	allKnown := true
	valid, known = protoTokens(message, func(number, kind, _ uint64, text []byte) bool {
		if number > 3 {
			return true
		}
		if kind != 2 {
			return false
		}
		if number < 3 {
			tables[number]++
			return true
		}
		index, seen := [2]uint64{}, [4]bool{}
		var value []byte
		ok, innerKnown := protoTokens(text, func(number, kind, n uint64, text []byte) bool {
			if number > 3 {
				return true
			}
			seen[number] = true
			if number == 3 {
				value = text
				return kind == 2
			}
			index[number-1] = n
			return kind == 0
		})
		allKnown = allKnown && innerKnown
		if seen[2] {
			index[1]++ // so that 0 says none, and n the index n-1
		}
		data, indices = append(data, value), append(indices, index)
		return ok && seen[1] && seen[3]
	})
	for _, index := range indices {
		valid = valid && index[0] < tables[1] && index[1] <= tables[2]
	}
	return data, valid, known && allKnown
}
