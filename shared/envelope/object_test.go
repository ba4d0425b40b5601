package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/tally"
)

const plainEvent = `{"id":"e1","keys":["a"],"delta":1}`

func notification(kind, message string) string {
	return fmt.Sprintf(`{"Type":%q,"MessageId":"sns-1","TopicArn":"arn:aws:sns:us-east-1:111122223333:t",`+
		`"Message":%s,"Timestamp":"2025-01-01T00:00:05Z"}`, kind, quoted(message))
}

func busEvent(detail string) string {
	return `{"version":"0","id":"eb-1","detail-type":"x","source":"s","time":"2025-01-01T00:00:09Z",` +
		`"detail":` + detail + `}`
}

func quoted(text string) string { return string(mustMarshal(text)) }

// opened is all that an Opener finds in a payload.
func opened(o *Opener, payload string) (found []Document, skipped int, err error) {
	skipped, err = o.Documents([]byte(payload), func(d Document) error {
		d.JSON = slices.Clone(d.JSON)
		found = append(found, d)
		return nil
	})
	return found, skipped, err
}

func TestD2_OneEventInEveryWrappingIsOneDocument(t *testing.T) {
	for name, payload := range map[string]string{
		"raw":                      plainEvent,
		"SNS":                      notification("Notification", plainEvent),
		"EventBridge":              busEvent(plainEvent),
		"SNS around EventBridge":   notification("Notification", busEvent(plainEvent)),
		"EventBridge around SNS":   busEvent(notification("Notification", plainEvent)),
		"a line of a file":         "\n" + notification("Notification", plainEvent) + "\n",
		"an element of an array":   "[" + busEvent(plainEvent) + "]",
		"gzip around SNS":          gzipped(notification("Notification", plainEvent)),
		"members in another order": `{"detail":` + plainEvent + `,"source":"s","detail-type":"x","id":"1","version":"0"}`,
	} {
		found, skipped, err := opened(NewOpener(tally.DefaultEnvelopes), payload)
		if err != nil || skipped != 0 || len(found) != 1 || string(found[0].JSON) != plainEvent || found[0].Index != 0 {
			t.Errorf("%s: %+v, %d skipped, %v", name, found, skipped, err)
			continue
		}
		if got := found[0].Identity("arn:q", "arn:q|m1"); got != "arn:q|m1" || !found[0].Arrived.IsZero() {
			t.Errorf("%s: identity %s, arrived %v; want the record's own", name, got, found[0].Arrived)
		}
	}
}

func TestD2_WhatIsNoEventInAWrappingIsABadRecord(t *testing.T) {
	for name, payload := range map[string]string{
		"subscription":     notification("SubscriptionConfirmation", plainEvent),
		"unsubscription":   notification("UnsubscribeConfirmation", plainEvent),
		"text":             notification("Notification", "hello"),
		"nothing":          notification("Notification", ""),
		"number":           notification("Notification", "5"),
		"broken":           notification("Notification", `{"id":`),
		"good and broken":  notification("Notification", plainEvent) + "\n" + notification("Notification", "x"),
		"five within each": nested(MaxLayers + 1),
	} {
		if found, _, err := opened(NewOpener(tally.DefaultEnvelopes), payload); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %d documents, %v, want ErrPayload", name, len(found), err)
		}
	}
	if found, _, err := opened(NewOpener(tally.DefaultEnvelopes), nested(MaxLayers)); err != nil || len(found) != 1 {
		t.Errorf("wrappings at the limit: %d documents, %v", len(found), err)
	}
}

func nested(depth int) string {
	payload := plainEvent
	for range depth {
		payload = busEvent(payload)
	}
	return payload
}

// Whatever lacks one of the marks of a wrapping, or has it in another form, is an event and stands for itself.
func TestD2_AnEventThatOnlyResemblesAWrappingIsNotOpened(t *testing.T) {
	sns, bus := notification("Notification", plainEvent), busEvent(plainEvent)
	s3, test := s3Notification("k"), s3Test
	logs := logMessage("DATA_MESSAGE", plainEvent)
	for _, payload := range []string{
		`{"id":"e1","Message":"{\"id\":\"e9\"}"}`, `{"id":"e1","detail":{"id":"e9"}}`,
		strings.Replace(sns, `"Type"`, `"type"`, 1),
		strings.Replace(sns, `"Notification"`, `"Other"`, 1),
		strings.Replace(sns, `"sns-1"`, `7`, 1),
		strings.Replace(sns, `:sns:`, `:sqs:`, 1),
		strings.Replace(sns, `arn:aws:sns:us-east-1:111122223333:t`, `t`, 1),
		strings.Replace(sns, quoted(plainEvent), plainEvent, 1), // Message is an object
		strings.Replace(sns, quoted(plainEvent), `"\ud800"`, 1),
		strings.Replace(sns, `{"Type"`, `{"Type":"Notification","Type"`, 1),
		strings.Replace(bus, `"version"`, `"v"`, 1), strings.Replace(bus, `"id":"eb-1"`, `"id":1`, 1),
		strings.Replace(bus, `"source":"s"`, `"source":null`, 1), strings.Replace(bus, `"x"`, `["x"]`, 1),
		busEvent(quoted(plainEvent)), busEvent("[" + plainEvent + "]"), busEvent("null"),
		`{"Records":[]}`, `{"Records":{}}`, `{"Records":[5]}`, `{"Records":null}`,
		strings.Replace(s3, `"aws:s3"`, `"aws:ses"`, 1), strings.Replace(s3, `"s3":{`, `"s4":{`, 1),
		strings.TrimSuffix(s3, "}") + `,"more":1}`, strings.Replace(s3, `[{`, `[{"eventSource":"aws:x"},{`, 1),
		strings.Replace(test, `Amazon S3`, `Amazon`, 1), strings.Replace(test, `s3:TestEvent`, `s3:Other`, 1),
		strings.Replace(test, `"b"`, `5`, 1),
		strings.Replace(logs, `DATA_MESSAGE`, `OTHER`, 1), strings.Replace(logs, `"owner"`, `"Owner"`, 1),
		strings.Replace(logs, `"subscriptionFilters":["f"]`, `"subscriptionFilters":"f"`, 1),
		strings.Replace(logs, `"logEvents":[`, `"logEvents":5,"x":[`, 1),
	} {
		found, skipped, err := opened(NewOpener(tally.DefaultEnvelopes), payload)
		if err != nil || skipped != 0 || len(found) != 1 || string(found[0].JSON) != payload {
			t.Errorf("%s: %d documents, %d skipped, %v; want it as it is", payload, len(found), skipped, err)
		}
	}
}

const s3Test = `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2025-01-01T00:00:00Z","Bucket":"b",` +
	`"RequestId":"r","HostId":"h"}`

func s3Record(key string) string {
	return fmt.Sprintf(`{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"object":{"key":%q}}}`, key)
}

func s3Notification(keys ...string) string {
	var records []string
	for _, key := range keys {
		records = append(records, s3Record(key))
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

func TestD4_ATestMessageIsSkippedWrappedOrBare(t *testing.T) {
	for name, payload := range map[string]string{
		"bare": s3Test, "SNS": notification("Notification", s3Test), "EventBridge": busEvent(s3Test),
		"gzip": gzipped(s3Test),
	} {
		if found, skipped, err := opened(NewOpener(tally.DefaultEnvelopes), payload); err != nil || skipped != 1 ||
			len(found) != 0 {
			t.Errorf("%s: %d documents, %d skipped, %v", name, len(found), skipped, err)
		}
	}
}

func TestD4_EachRecordOfAnS3NotificationIsADocument(t *testing.T) {
	want := []string{s3Record("a"), s3Record("b")}
	for name, payload := range map[string]string{
		"bare": s3Notification("a", "b"), "spaced": " { \"Records\" : [ " + s3Record("a") + " , " + s3Record("b") + " ] } ",
		"SNS": notification("Notification", s3Notification("a", "b")),
		"two": s3Notification("a") + "\n" + s3Notification("b"),
	} {
		found, skipped, err := opened(NewOpener(tally.DefaultEnvelopes), payload)
		var got []string
		for i, d := range found {
			got = append(got, string(d.JSON))
			if d.Index != i {
				t.Errorf("%s: document %d has the index %d", name, i, d.Index)
			}
		}
		if err != nil || skipped != 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %d skipped, %v", name, got, skipped, err)
		}
	}
}

// logMessage is what a subscription sends for these lines. The ids are those of CloudWatch Logs: 56 digits.
func logMessage(kind string, lines ...string) string {
	var events []string
	for i, line := range lines {
		events = append(events, fmt.Sprintf(`{"id":"381%053d","timestamp":%d,"message":%s}`, i, 1_700_000_000_000+i,
			quoted(line)))
	}
	return fmt.Sprintf(`{"messageType":%q,"owner":"111122223333","logGroup":"g","logStream":"s",`+
		`"subscriptionFilters":["f"],"logEvents":[%s]}`, kind, strings.Join(events, ","))
}

func TestD3_EachLogLineThatIsAnObjectIsADocument(t *testing.T) {
	lines := []string{plainEvent + "\n", "START RequestId: 1", "5", "[{}]", "", `{"a":1`, `{"a":1} x`, "{}{}", "\n{\n}\n",
		`{"Records":[]}`}
	for name, payload := range map[string]string{
		"plain": logMessage("DATA_MESSAGE", lines...), "gzip": gzipped(logMessage("DATA_MESSAGE", lines...)),
		"gzip in gzip": gzipped(gzipped(logMessage("DATA_MESSAGE", lines...))),
	} {
		found, skipped, err := opened(NewOpener(tally.DefaultEnvelopes), payload)
		if err != nil || skipped != len(lines)-3 || len(found) != 3 {
			t.Fatalf("%s: %d documents, %d skipped, %v", name, len(found), skipped, err)
		}
		for i, want := range []struct {
			line int
			text string
		}{{0, plainEvent}, {8, "{\n}"}, {9, `{"Records":[]}`}} {
			got := found[i]
			if string(got.JSON) != want.text || !got.Arrived.Equal(time.UnixMilli(1_700_000_000_000+int64(want.line))) {
				t.Errorf("%s: document %d is %s of %v", name, i, got.JSON, got.Arrived)
			}
		}
	}
}

func TestD3_AControlMessageHoldsNothingAndIsNoFault(t *testing.T) {
	payload := logMessage("CONTROL_MESSAGE", "CWL CONTROL MESSAGE: Checking health of destination Kinesis stream.",
		plainEvent)
	if found, skipped, err := opened(NewOpener(tally.DefaultEnvelopes), gzipped(payload)); err != nil || skipped != 1 ||
		len(found) != 0 {
		t.Errorf("%d documents, %d skipped, %v", len(found), skipped, err)
	}
}

func TestD3_ALogEventWithoutAMessageMakesTheRecordBad(t *testing.T) {
	for _, event := range []string{`{}`, `5`, `null`, `{"id":"1","timestamp":1}`, `{"message":null}`, `{"message":{}}`,
		`{"message":"\ud800"}`} {
		payload := strings.Replace(logMessage("DATA_MESSAGE", plainEvent), `"logEvents":[`, `"logEvents":[`+event+`,`, 1)
		if _, _, err := opened(NewOpener(tally.DefaultEnvelopes), payload); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v, want ErrPayload", event, err)
		}
	}
}

// A log event that comes in two records, by two subscriptions or by a repeat, is one; events of two logs never are.
func TestD3_ALogEventHasOneIdentityInWhicheverRecordItComes(t *testing.T) {
	const stream = "arn:aws:kinesis:eu-west-1:111122223333:stream/s"
	identity := func(payload, record string, i int) string {
		t.Helper()
		found, _, err := opened(NewOpener(tally.DefaultEnvelopes), payload)
		if err != nil || len(found) <= i {
			t.Fatalf("%d documents, %v", len(found), err)
		}
		return found[i].Identity(stream, record)
	}
	one := logMessage("DATA_MESSAGE", plainEvent, "{}")
	first := identity(one, "r1", 0)
	if want := stream + "|log:80e964b4b620338740c79d8558f84fbb|381" + strings.Repeat("0", 53); first != want {
		t.Errorf("the identity changed: %s, want %s", first, want)
	}
	if again := identity(one, "r2", 0); again != first {
		t.Errorf("%s in one record, %s in another", first, again)
	}
	if consumer := func() string {
		found, _, _ := opened(NewOpener(tally.DefaultEnvelopes), one)
		return found[0].Identity(stream+"/consumer/c:1", "r1")
	}(); consumer != first {
		t.Errorf("%s through a consumer, else %s", consumer, first)
	}
	seen := map[string]string{first: "the first"}
	for name, other := range map[string]string{
		"the next": identity(one, "r1", 1),
		"owner":    identity(strings.Replace(one, "1111", "2222", 1), "r1", 0),
		"group":    identity(strings.Replace(one, `"g"`, `"gs"`, 1), "r1", 0),
		"stream":   identity(strings.Replace(one, `"s"`, `"t"`, 1), "r1", 0),
	} {
		if taken, ok := seen[other]; ok {
			t.Errorf("%s has the identity of %s", name, taken)
		}
		seen[other] = name
	}
	// What somebody else numbers as he likes identifies nothing: such events are known by their place.
	for _, id := range []string{`"L1"`, `"7"`, `""`, `null`, `5`, quoted("381" + strings.Repeat("0", 52) + "x"),
		quoted(strings.Repeat("1", 129)), quoted(strings.Repeat("1", 27))} {
		short := strings.Replace(one, quoted("381"+strings.Repeat("0", 53)), id, 1)
		if got := identity(short, "r1", 0); got != "r1" {
			t.Errorf("id %s: %s", id, got)
		}
	}
}

func TestBase64_IsOpenedOnlyWhereItIsAskedFor(t *testing.T) {
	encoded := map[string]string{"plain": b64(plainEvent), "gzip": b64(gzipped(plainEvent)), "twice": b64(b64(plainEvent)),
		"in SNS": notification("Notification", b64(plainEvent)), "spaced": "\n" + b64(plainEvent) + "\n"}
	for name, payload := range encoded {
		if found, _, err := opened(NewOpener(tally.DefaultEnvelopes|tally.Base64), payload); err != nil || len(found) != 1 ||
			string(found[0].JSON) != plainEvent {
			t.Errorf("%s: %d documents, %v", name, len(found), err)
		}
		if found, _, err := opened(NewOpener(tally.DefaultEnvelopes), payload); !errors.Is(err, ErrPayload) {
			t.Errorf("%s, not asked for: %d documents, %v, want ErrPayload", name, len(found), err)
		}
	}
	for _, payload := range []string{b64(plainEvent)[1:], "====", b64(`{"a":1}`) + "=", "AA=A", strings.ReplaceAll(
		b64(plainEvent), "a", "-"), b64(plainEvent)[:8] + "\n" + b64(plainEvent)[8:]} {
		if found, _, err := opened(NewOpener(tally.DefaultEnvelopes|tally.Base64), payload); !errors.Is(err, ErrPayload) {
			t.Errorf("%q: %d documents, %v, want ErrPayload", payload, len(found), err)
		}
	}
	if found, _, err := opened(NewOpener(tally.DefaultEnvelopes|tally.Base64), plainEvent); err != nil || len(found) != 1 {
		t.Errorf("JSON as it is: %d documents, %v", len(found), err)
	}
}

func TestNewOpener_OpensWhatItIsToldAndNothingElse(t *testing.T) {
	payloads := map[tally.Envelopes]string{tally.Gzip: gzipped(plainEvent), tally.Zstd: zstdded(plainEvent),
		tally.KPL: aggregateOf(plainEvent), tally.SNS: notification("Notification", plainEvent),
		tally.EventBridge: busEvent(plainEvent), tally.S3: s3Notification("k"),
		tally.Logs: logMessage("DATA_MESSAGE", plainEvent), tally.Base64: b64(plainEvent)}
	for one, payload := range payloads {
		if found, _, err := opened(NewOpener(one), payload); err != nil || len(found) != 1 ||
			string(found[0].JSON) != plainEvent && string(found[0].JSON) != s3Record("k") {
			t.Errorf("%v alone: %d documents, %v", one, len(found), err)
		}
		found, _, err := opened(NewOpener((tally.DefaultEnvelopes|tally.Base64)&^one), payload)
		if json.Valid([]byte(payload)) {
			if err != nil || len(found) != 1 || string(found[0].JSON) != payload {
				t.Errorf("all but %v: %d documents, %v; want the object as it is", one, len(found), err)
			}
		} else if !errors.Is(err, ErrPayload) {
			t.Errorf("all but %v: %d documents, %v, want ErrPayload", one, len(found), err)
		}
	}
	if found, _, err := opened(NewOpener(0), plainEvent); err != nil || len(found) != 1 {
		t.Errorf("none: %d documents, %v", len(found), err)
	}
}
