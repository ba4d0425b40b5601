package ingest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

const (
	streamARN = "arn:aws:kinesis:eu-west-1:111122223333:stream/s"
	queueARN  = "arn:aws:sqs:eu-west-1:111122223333:q"
)

const ruleFile = `
counters:
  - name: c
    match: skip == nil
    id: id
    keys: ["{key}"]
    add: delta
    windows: {all: forever, 1d: forever}
`

func good(id, key string) string { return fmt.Sprintf(`{"id":%q,"key":%q,"delta":1}`, id, key) }

// machine is a handler over the real rules, the real merge core and a strict store.
type machine struct {
	*Handler
	store *mergetest.Store
	log   *bytes.Buffer
	heard *ear
}

// newMachine makes a machine for kind; edit may change its parts before they are put together.
func newMachine(t *testing.T, kind envelope.Kind, edit func(*Config, *merge.Config)) *machine {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(ruleFile))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{store: mergetest.New(t), log: new(bytes.Buffer), heard: newEar()}
	core := merge.Config{Store: m.store, Now: m.store.Now, Recorder: m.heard}
	config := Config{Kind: kind, Rules: set, Recorder: m.heard, Now: m.store.Now,
		Log: slog.New(slog.NewJSONHandler(&locked{w: m.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if edit != nil {
		edit(&config, &core)
	}
	if config.Sink == nil {
		if config.Sink, err = merge.New(core); err != nil {
			t.Fatal(err)
		}
	}
	if m.Handler, err = New(config); err != nil {
		t.Fatal(err)
	}
	return m
}

// total is what the counter holds under a key, for ever.
func (m *machine) total(key string) string {
	return m.store.Total(tally.Cell{Counter: "c", Key: key, Window: "all"}).String()
}

// invoke returns the names of the records that must come again.
func (m *machine) invoke(t *testing.T, ctx context.Context, event []byte) []string {
	t.Helper()
	answer, err := m.Invoke(ctx, event)
	if err != nil {
		t.Fatal(err)
	}
	return named(t, answer)
}

func named(t *testing.T, answer []byte) []string {
	t.Helper()
	var list struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	names := []string{}
	for _, f := range list.BatchItemFailures {
		names = append(names, f.ItemIdentifier)
	}
	return names
}

// kinesisEvent is a batch whose records 1, 2, ... have these payloads.
func kinesisEvent(payloads ...string) []byte {
	var records []string
	for i, payload := range payloads {
		records = append(records,
			fmt.Sprintf(`{"kinesis":{"sequenceNumber":"%d","data":%q,"approximateArrivalTimestamp":1700000000.5},`+
				`"eventSource":"aws:kinesis","eventID":"shardId-000000000001:%d","eventSourceARN":%q}`,
				i+1, base64.StdEncoding.EncodeToString([]byte(payload)), i+1, streamARN))
	}
	return fmt.Appendf(nil, `{"Records":[%s]}`, strings.Join(records, ","))
}

// sqsEvent is a batch whose messages m1, m2, ... have these bodies.
func sqsEvent(bodies ...string) []byte {
	var messages []message
	for i, body := range bodies {
		messages = append(messages, message{fmt.Sprintf("m%d", i+1), "", body})
	}
	return queueEvent(queueARN, messages...)
}

type message struct{ id, group, body string }

func queueEvent(arn string, messages ...message) []byte {
	var records []string
	for _, m := range messages {
		body, _ := json.Marshal(m.body)
		records = append(records,
			fmt.Sprintf(`{"messageId":%q,"body":%s,"attributes":{"SentTimestamp":"1700000000500","MessageGroupId":%q},`+
				`"eventSource":"aws:sqs","eventSourceARN":%q}`, m.id, body, m.group, arn))
	}
	return fmt.Appendf(nil, `{"Records":[%s]}`, strings.Join(records, ","))
}

// ear is a Recorder that remembers.
type ear struct {
	mu      sync.Mutex
	counts  map[string]int
	flushes int
}

func newEar() *ear { return &ear{counts: map[string]int{}} }

func (e *ear) Count(name string, n int, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[name] += n
}

func (e *ear) Observe(string, time.Duration) {}

func (e *ear) Flush(context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushes++
}

// locked is a writer for many goroutines.
type locked struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// lot is a Parker that keeps what it is given, unless refuse says otherwise.
type lot struct {
	mu      sync.Mutex
	kept    []envelope.Parked
	notices int
	refuse  func(ctx context.Context, p envelope.Parked) error
}

var errFull = errors.New("no room")

func (l *lot) Park(ctx context.Context, document []byte) error {
	if strings.HasPrefix(string(document), `{"abacus":"oversized-record/1"`) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.notices++
		return nil
	}
	p, err := envelope.ParseParked(document)
	if err != nil {
		return err
	}
	if l.refuse != nil {
		if err := l.refuse(ctx, p); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p)
	return nil
}

func (l *lot) numbers() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := []string{}
	for _, p := range l.kept {
		numbers = append(numbers, string(p.Number))
	}
	slices.Sort(numbers)
	return numbers
}

// sinkFunc is a Sink.
type sinkFunc func(ctx context.Context, events []tally.Event) []merge.Outcome

func (f sinkFunc) MergeMany(ctx context.Context, events []tally.Event) []merge.Outcome {
	return f(ctx, events)
}

// rulesFunc are Rules.
type rulesFunc func(dst []tally.Event, doc rules.Document) ([]tally.Event, error)

func (f rulesFunc) Events(dst []tally.Event, doc rules.Document, _ time.Time) ([]tally.Event, int, error) {
	events, err := f(dst, doc)
	return events, 0, err
}

func (rulesFunc) Digest() string { return "digest" }

func (rulesFunc) Envelopes() tally.Envelopes { return tally.DefaultEnvelopes }
