package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"

	"pgregory.net/rapid"
)

// drawn is one record of the property test. Each letter of its documents says what the rules or the sink make of one:
// C counted, D duplicate, F failed, I in flight, R refused, S skipped, B bad, P panic; X stands for what is no
// document.
type drawn struct{ group, documents, wrapping string }

func (d drawn) payload() string {
	var text strings.Builder
	for _, letter := range d.documents {
		if letter == 'X' {
			text.WriteString("X")
		} else {
			fmt.Fprintf(&text, `{"is":"%c"}`, letter)
		}
	}
	switch d.wrapping {
	case "gzip":
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write([]byte(text.String()))
		_ = w.Close()
		return out.String()
	case "sns":
		return notified("Notification", text.String())
	case "kpl": // each document, or what is none, in an inner record of its own
		return aggregated(regexp.MustCompile(`X|\{[^}]*\}`).FindAllString(text.String(), -1))
	}
	return text.String()
}

// aggregated is what the Kinesis Producer Library makes of these records, each below 120 bytes.
func aggregated(records []string) string {
	message := "\x0a\x01k"
	for _, r := range records {
		message += "\x1a" + string(byte(len(r)+4)) + "\x08\x00\x1a" + string(byte(len(r))) + r
	}
	sum := md5.Sum([]byte(message))
	return "\xf3\x89\x9a\xc2" + message + string(sum[:])
}

var letters = map[byte]merge.Status{'C': merge.Counted, 'D': merge.Duplicate, 'F': merge.Failed, 'I': merge.InFlight,
	'R': merge.Refused}

// world plays the handler's parts, and notes what reached them.
type world struct {
	sunk   map[string]bool // identities
	mu     sync.Mutex
	parked map[string]bool // sequence numbers
	room   string          // the records that can be parked, by number
	parks  bool            // somebody asks
}

func (w *world) Events(dst []tally.Event, doc rules.Document, _ any) ([]tally.Event, error) {
	switch letter := doc.JSON[len(`{"is":"`)]; letter {
	case 'S':
		return dst, nil
	case 'B':
		return dst, rules.ErrBadRecord
	case 'P':
		panic("rules")
	default:
		return append(dst, tally.Event{ID: doc.Source, Serial: doc.Serial,
			Adds: []tally.Add{{Cell: tally.Cell{Key: string(letter)}}}}), nil
	}
}

func (w *world) MergeMany(_ context.Context, events []tally.Event) []merge.Outcome {
	var outcomes []merge.Outcome
	for _, e := range events {
		w.sunk[e.ID] = true
		outcomes = append(outcomes, merge.Outcome{Status: letters[e.Adds[0].Cell.Key[0]], Err: errFull})
	}
	return outcomes
}

func (w *world) park(_ context.Context, p envelope.Parked) error {
	if !strings.Contains(w.room, string(p.Number)) {
		return errFull
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked[string(p.Number)] = true
	return nil
}

func TestEveryDocument_EndsInExactlyOneOfCountedDuplicateSkippedParkedFailed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drawn {
			return drawn{rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"),
				rapid.StringMatching(`[CDS]{0,2}[CDFIRSBPX]{1,3}`).Draw(t, "documents"), ""}
		}), 1, 8).Draw(t, "records")
		source := rapid.SampledFrom([]string{"kinesis", "kinesis without parking", "sqs", "sqs fifo"}).Draw(t, "source")
		w := &world{sunk: map[string]bool{}, parked: map[string]bool{}, room: rapid.StringMatching(`[1-8]{0,8}`).Draw(t,
			"room")}
		config := Config{Kind: envelope.SQS, Sink: w, Rules: rulesFunc(func(dst []tally.Event,
			doc rules.Document) ([]tally.Event, error) {
			return w.Events(dst, doc, nil)
		})}
		wrappings := []string{"", "", "sns"}
		if strings.HasPrefix(source, "kinesis") { // a message is text, so it holds neither of these
			wrappings = append(wrappings, "gzip", "kpl")
		}
		for i := range records {
			records[i].wrapping = rapid.SampledFrom(wrappings).Draw(t, "wrapping")
		}
		event := queueEvent
		arn := queueARN
		switch source {
		case "kinesis":
			config.Kind, config.Parker, w.parks = envelope.Kinesis, &lot{refuse: w.park}, true
		case "kinesis without parking":
			config.Kind = envelope.Kinesis
		case "sqs fifo":
			arn += ".fifo"
		}
		var messages []message
		var payloads []string
		for i, d := range records {
			messages, payloads = append(messages, message{fmt.Sprint(i + 1), d.group, d.payload()}), append(payloads,
				d.payload())
		}
		raw := event(arn, messages...)
		if config.Kind == envelope.Kinesis {
			raw = kinesisEvent(payloads...)
		}
		h, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := h.Invoke(context.Background(), raw)
		if err != nil {
			t.Fatal(err)
		}
		check(t, w, config.Kind, source == "sqs fifo", records, string(answer))
	})
}

func check(t *rapid.T, w *world, kind envelope.Kind, fifo bool, records []drawn, answer string) {
	held := map[string]bool{}
	lowest := len(records)
	for i, d := range records {
		if ahead := strings.IndexAny(d.documents, "BPX"); ahead >= 0 && d.documents[ahead] == 'P' ||
			ahead < 0 && strings.ContainsAny(d.documents, "FI") {
			lowest = min(lowest, i)
		}
	}
	for i, d := range records {
		number := fmt.Sprint(i + 1)
		again, parked := strings.Contains(answer, `"`+number+`"`), w.parked[number]
		identity := envelope.SQSIdentity(queueARN, number)
		if fifo {
			identity = envelope.SQSIdentity(queueARN+".fifo", number)
		}
		if kind == envelope.Kinesis {
			identity = envelope.KinesisIdentity(streamARN, "shardId-000000000001", envelope.SequenceNumber(number))
		}
		unreadable := strings.IndexAny(d.documents, "BPX")
		bad := unreadable >= 0 && d.documents[unreadable] != 'P' ||
			unreadable < 0 && strings.Contains(d.documents, "R") && !strings.ContainsAny(d.documents, "FI")
		fails := unreadable >= 0 && !bad || unreadable < 0 && strings.ContainsAny(d.documents, "FI")
		if again && parked {
			t.Fatalf("record %s comes again, though it is parked", number)
		}
		if want := fails || bad && !parked || fifo && held[d.group]; again != want {
			t.Fatalf("record %s (%s) comes again: %t, want %t", number, d.documents, again, want)
		}
		if parked && (!bad || i > lowest) || bad && w.parks && i < lowest && strings.Contains(w.room, number) != parked {
			t.Fatalf("record %s (%s) parked: %t", number, d.documents, parked)
		}
		for n, letter := range d.documents {
			sunk := w.sunk[envelope.DocumentIdentity(identity, n)]
			if want := unreadable < 0 && letter != 'S' && !(fifo && held[d.group]); sunk != want {
				t.Fatalf("document %d of record %s (%s) was given to be counted: %t, want %t", n, number, d.documents, sunk, want)
			}
		}
		held[d.group] = held[d.group] || again
	}
}

func TestCount_RecordsOfManyDocumentsAreMergedInSeveralGoes(t *testing.T) {
	const documents = 1000
	var payloads []string
	for range 2 * maxPending / documents {
		payloads = append(payloads, strings.Repeat(`{"is":"C"}`, documents))
	}
	payloads = append(payloads, `{"is":"F"}`)
	w := &world{sunk: map[string]bool{}}
	calls, largest := 0, 0
	h, err := New(Config{Kind: envelope.Kinesis, Rules: rulesFunc(func(dst []tally.Event,
		doc rules.Document) ([]tally.Event, error) {
		return w.Events(dst, doc, nil)
	}), Sink: sinkFunc(func(ctx context.Context, events []tally.Event) []merge.Outcome {
		calls, largest = calls+1, max(largest, len(events))
		return w.MergeMany(ctx, events)
	})})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.Invoke(t.Context(), kinesisEvent(payloads...))
	if got := named(t, answer); err != nil || !slices.Equal(got, []string{fmt.Sprint(len(payloads))}) {
		t.Errorf("%v come again, %v", got, err)
	}
	if want := (len(payloads)-1)*documents + 1; len(w.sunk) != want || calls < 2 || largest >= maxPending+documents {
		t.Errorf("%d of %d documents in %d merges, at most %d at once", len(w.sunk), want, calls, largest)
	}
}

func TestNew_NamesEveryFault(t *testing.T) {
	_, err := New(Config{Kind: "aws:s3"})
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{`kind "aws:s3": set it to "aws:kinesis" or "aws:sqs"`, "no rules", "no sink"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestLog_HasNothingOfWhatARecordSays(t *testing.T) {
	for _, kind := range []envelope.Kind{envelope.Kinesis, envelope.SQS} {
		parker := &lot{refuse: func(context.Context, envelope.Parked) error { return errors.New("queue is away") }}
		m := newMachine(t, kind, func(c *Config, _ *merge.Config) { c.Parker = parker })
		event := map[envelope.Kind]func(...string) []byte{envelope.Kinesis: kinesisEvent, envelope.SQS: sqsEvent}[kind]
		m.invoke(t, t.Context(), event("secret", `{"id":"secret","key":"secret","delta":"secret"}`, `{"secret":`,
			`{"id":"secret","key":"","delta":1}`,
			`{"id":["secret"],"key":"a","delta":1}`, `{"secret":1,"secret":2}`))
		_, _ = m.Invoke(t.Context(), []byte(`{"Records":[{"messageId":"secret","body":"secret"}]}`))
		if log := m.log.String(); strings.Contains(log, "secret") || strings.Count(log, "\n") < 4 {
			t.Errorf("%s: %s", kind, log)
		}
	}
}
