package ingest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

// Case D2: an event may have members of the names that wrappings use.
func TestD2_ABusinessEventWithTheMembersOfAWrappingIsCountedAsItStands(t *testing.T) {
	for kind, event := range map[envelope.Kind]func(...string) []byte{envelope.SQS: sqsEvent,
		envelope.Kinesis: kinesisEvent} {
		m := newMachine(t, kind, nil)
		got := m.invoke(t, t.Context(), event(
			`{"id":"e1","key":"a","delta":1,"Message":"{\"id\":\"e9\",\"key\":\"b\",\"delta\":7}"}`,
			`{"id":"e2","key":"a","delta":1,"detail":{"id":"e9","key":"b","delta":7}}`))
		if len(got) != 0 || m.total("a") != "2" || m.total("b") != "0" {
			t.Errorf("%s: %v come again; a = %s, b = %s, want 2 and 0", kind, got, m.total("a"), m.total("b"))
		}
	}
}

// Case D2: whichever way an event comes, it is one event with one claim, by its own time.
func TestD2_TheFourWrappingsOfOneEventCountOnceByItsOwnTime(t *testing.T) {
	const event = `{"id":"e1","key":"a","delta":1,"at":"2024-12-31T23:59:59Z"}`
	bus := `{"version":"0","id":"eb-1","detail-type":"x","source":"s","time":"2025-01-01T00:00:09Z","detail":` + event + `}`
	set, err := rules.Parse("rules.yaml", []byte(`
counters:
  - {name: c, id: id, time: at, keys: ["{key}"], add: delta, windows: {all: forever, 1d: forever}}
`))
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, envelope.SQS, func(c *Config, _ *merge.Config) { c.Rules = set })
	batch := sqsEvent(event, notified("Notification", event), bus, notified("Notification", bus))
	for range 2 {
		if got := m.invoke(t, t.Context(), batch); len(got) != 0 {
			t.Errorf("%v come again", got)
		}
	}
	day := tally.Cell{Counter: "c", Key: "a", Window: "1d",
		Bucket: time.Date(2024, 12, 31, 0, 0, 0, 0, time.UTC).Unix()}
	if m.total("a") != "1" || m.store.Total(day).String() != "1" {
		t.Errorf("a = %s, of its day %s, want 1 and 1", m.total("a"), m.store.Total(day).String())
	}
	if got := m.invoke(t, t.Context(), sqsEvent(notified("SubscriptionConfirmation", event),
		strings.Replace(event, "e1", "e2", 1),
		notified("Notification", "hello"))); !slices.Equal(got, []string{"m1", "m3"}) || m.total("a") != "2" {
		t.Errorf("%v come again, want what holds no event; a = %s, want 2", got, m.total("a"))
	}
}

func notified(kind, message string) string {
	text, _ := json.Marshal(message)
	return fmt.Sprintf(`{"Type":%q,"MessageId":"sns-1","TopicArn":"arn:aws:sns:us-east-1:111122223333:t",`+
		`"Message":%s,"Timestamp":"2025-01-01T00:00:05Z"}`, kind, text)
}

// Case D3: data as CloudWatch Logs and others that play its part send it.
func TestD3_LogEventsOfASubscriptionAreCountedAndControlMessagesAreNot(t *testing.T) {
	const data = "H4sIAAAAAAAC/32OsQ6CQBBE/2XrKzwsTOhIRBqtoOOIQVjJReDI3aEhhH931BArnWpndudlZ+rYubLhbBqYQtpHWXQ+xWkaJTEJ" +
		"Mo+eLWIJBdAWQtyaJrFmHLBpPjb1lssO3sG78eIqqwevTX/QrWfrKMzpSsX7Nr5z71/JTLpG5SjR8RqP+LIDU+42X4n1QRzOCgVFoaJKKhKK" +
		"bjw5+FxRqQBXVHPrMYZyoUWs+OA3Xv7AB//xAfDF8gRYMfUPPAEAAA=="
	const control = "H4sIAAAAAAAC/0WOUQuCMBSF/8q4zz7UU+BbiPliCSn0EBJLb9tobrLNJMT/3pZG9+3jHM79JujQWsqwevcIMSTFqToX" +
		"+e2YluU+SyECPSo0IZF6aEfqGp5rZn0gNcuMHnqfLVQ6g7Rb0A532xjRO6HVQUiHxkJ8rb+99IXKBZxAtEvdCa/haOfHtrvN/6KfXhC45GTV" +
		"I6teTBKOzVMoRjhS6TjRD9L6JaFo+AxzPX8ADfdJQeIAAAA="
	set, err := rules.Parse("rules.yaml", []byte(`
counters:
  - {name: c, id: id, keys: ["{keys[]}"], add: delta, windows: {all: forever, 1d: forever}}
`))
	if err != nil {
		t.Fatal(err)
	}
	parker := new(lot)
	m := newMachine(t, envelope.Kinesis, func(c *Config, _ *merge.Config) { c.Rules, c.Parker = set, parker })
	one, err1 := base64.StdEncoding.DecodeString(data)
	other, err2 := base64.StdEncoding.DecodeString(control)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for round := range 2 {
		if got := m.invoke(t, t.Context(), kinesisEvent(string(one), string(other))); len(got) != 0 || m.total("a") != "3" {
			t.Errorf("round %d: %v come again, a = %s, want 3", round, got, m.total("a"))
		}
	}
	if len(parker.kept) != 0 || m.heard.counts[MetricPassed] != 2 {
		t.Errorf("%d parked, %d passed over, want none and the control message of each round", len(parker.kept),
			m.heard.counts[MetricPassed])
	}
	// Neither says when it happened, so the log's own time decides: 22:13 on 14 November 2023.
	day := tally.Cell{Counter: "c", Key: "a", Window: "1d", Bucket: time.Date(2023, 11, 14, 0, 0, 0, 0, time.UTC).Unix()}
	if got := m.store.Total(day).String(); got != "3" {
		t.Errorf("%s on the day of the log events", got)
	}
}

// A log event may come in two records, and at another place in each; it counts once, at the time that the log gives.
func TestD3_ALogEventInTwoRecordsCountsOnceAtItsOwnTime(t *testing.T) {
	message := func(lines ...int) string {
		var events []string
		for _, n := range lines {
			events = append(events, fmt.Sprintf(`{"id":"381%053d","timestamp":1600000000000,"message":`+
				`"{\"key\":\"a\",\"delta\":1}"},{"id":"382%053d","timestamp":1600000000000,"message":"START"}`, n, n))
		}
		return `{"messageType":"DATA_MESSAGE","owner":"1","logGroup":"g","logStream":"s","subscriptionFilters":["f"],` +
			`"logEvents":[` + strings.Join(events, ",") + `]}`
	}
	m := newMachine(t, envelope.Kinesis, nil)
	if got := m.invoke(t, t.Context(), kinesisEvent(message(1, 2), message(2, 3))); len(got) != 0 || m.total("a") != "3" {
		t.Errorf("%v come again, a = %s, want 3", got, m.total("a"))
	}
	day := tally.Cell{Counter: "c", Key: "a", Window: "1d", Bucket: time.Date(2020, 9, 13, 0, 0, 0, 0, time.UTC).Unix()}
	if got := m.store.Total(day).String(); got != "3" || m.heard.counts[MetricPassed] != 4 {
		t.Errorf("%s on the day of the log events; %d lines passed over, want 4", got, m.heard.counts[MetricPassed])
	}
}

// Case D4: what a service sends to test a queue holds no event. It is acknowledged, wrapped or bare, and its neighbours
// are counted; a rule file that opens no envelopes has it judged by its rules like any document.
func TestD4_AServicesTestMessageIsAcknowledgedAndLeavesItsNeighboursAlone(t *testing.T) {
	const message = `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2025-01-01T00:00:00Z","Bucket":"b",` +
		`"RequestId":"r","HostId":"h"}`
	plain, err := rules.Parse("rules.yaml", []byte("envelopes: none\n"+ruleFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		edit func(*Config, *merge.Config)
		want []string
	}{
		{nil, []string{}},
		{func(c *Config, _ *merge.Config) { c.Rules = plain }, []string{"m2", "m3"}},
	} {
		m := newMachine(t, envelope.SQS, c.edit)
		for range 2 {
			if got := m.invoke(t, t.Context(), sqsEvent(good("e1", "a"), message, notified("Notification", message),
				good("e3", "a"))); !slices.Equal(got, c.want) {
				t.Errorf("%v come again, want %v", got, c.want)
			}
		}
		if passed := 4 - 2*len(c.want); m.total("a") != "2" || m.heard.counts[MetricPassed] != passed {
			t.Errorf("a = %s, want 2; %d passed over, want %d", m.total("a"), m.heard.counts[MetricPassed], passed)
		}
	}
}

// Case A5, end to end: records without an identity never hide each other, nor do they count again when they come again.
func TestA5_RecordsWithoutAnIdentityCountOnceEach(t *testing.T) {
	bodies := []string{`{"key":"a","delta":1}`, `{"id":null,"key":"a","delta":1}`, `{"id":"","key":"a","delta":1}`}
	for kind, event := range map[envelope.Kind]func(...string) []byte{envelope.SQS: sqsEvent,
		envelope.Kinesis: kinesisEvent} {
		m := newMachine(t, kind, nil)
		for range 2 {
			if got := m.invoke(t, t.Context(), event(bodies...)); len(got) != 0 {
				t.Errorf("%s: %v come again", kind, got)
			}
		}
		if m.total("a") != "3" {
			t.Errorf("%s: a = %s, want 3", kind, m.total("a"))
		}
	}
}

// Case D5, end to end: sums beyond 64 bits are exact.
func TestD5_ABatchWhoseSumIsBeyondInt64CountsExactly(t *testing.T) {
	m := newMachine(t, envelope.Kinesis, nil)
	var bodies []string
	for i := range 3 {
		bodies = append(bodies, fmt.Sprintf(`{"id":"e%d","key":"a","delta":9223372036854775807}`, i))
	}
	if got := m.invoke(t, t.Context(), kinesisEvent(bodies...)); len(got) != 0 || m.total("a") != "27670116110564327421" {
		t.Errorf("%v come again, a = %s", got, m.total("a"))
	}
}
