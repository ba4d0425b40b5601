package ingest

import (
	"fmt"
	"slices"
	"testing"

	"abacus/shared/envelope"
	"abacus/shared/merge"
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

// Case D4: what a service sends to test a queue is a document like any other. The rules say what becomes of it: skipped
// where they do not match it, a bad record where they do. Its neighbours are counted either way.
func TestD4_AServicesTestMessageFollowsTheRulesAndLeavesItsNeighboursAlone(t *testing.T) {
	const message = `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2025-01-01T00:00:00Z","Bucket":"b",` +
		`"RequestId":"r","HostId":"h"}`
	careful, err := rules.Parse("rules.yaml", []byte(`
counters:
  - {name: c, match: key != nil, id: id, keys: ["{key}"], add: delta, windows: {all: forever}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		edit func(*Config, *merge.Config)
		want []string
	}{
		{nil, []string{"m2"}},
		{func(c *Config, _ *merge.Config) { c.Rules = careful }, []string{}},
	} {
		m := newMachine(t, envelope.SQS, c.edit)
		event := sqsEvent(good("e1", "a"), message, good("e3", "a"))
		for range 2 {
			if got := m.invoke(t, t.Context(), event); !slices.Equal(got, c.want) {
				t.Errorf("%v come again, want %v", got, c.want)
			}
		}
		if m.total("a") != "2" {
			t.Errorf("a = %s, want 2", m.total("a"))
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
