package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"abacus/shared/dynamo"
	"abacus/shared/env"
	"abacus/shared/envelope"
	"abacus/shared/ingest"
	"abacus/shared/local/queue"
	"abacus/shared/local/table"
	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// place is what a deployment gives the function: tables, a park queue, and settings that name them.
type place struct {
	cfg      aws.Config
	settings map[string]string
	counters *dynamo.Reader
	parked   *sqs.Client
}

func newPlace(t *testing.T) *place {
	t.Helper()
	tables, queues := httptest.NewServer(table.New(table.Config{})), httptest.NewServer(queue.New(queue.Config{}))
	t.Cleanup(tables.Close)
	t.Cleanup(queues.Close)
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_CONFIG_FILE": os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_ENDPOINT_URL": tables.URL, "AWS_ENDPOINT_URL_SQS": queues.URL,
	} {
		t.Setenv(name, value)
	}
	p := &place{cfg: env.New(os.Getenv).AWS(t.Context())}
	client := dynamo.NewClient(p.cfg)
	for name, spec := range map[string]dynamo.TableSpec{"counters": dynamo.CountersTable, "dedup": dynamo.DedupTable} {
		if _, err := client.CreateTable(t.Context(), spec.CreateTable(name)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if p.counters, err = dynamo.NewReader(dynamo.Options{Client: client, Counters: "counters"}); err != nil {
		t.Fatal(err)
	}
	p.parked = sqs.NewFromConfig(p.cfg)
	made, err := p.parked.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("parked")})
	if err != nil {
		t.Fatal(err)
	}
	p.settings = map[string]string{"ABACUS_COUNTERS_TABLE": "counters", "ABACUS_DEDUP_TABLE": "dedup",
		"ABACUS_LOG_LEVEL": "ERROR",
		"ABACUS_RULES":     filepath.Join("..", "counters.yaml"), "ABACUS_DEDUP_HORIZON": "35d",
		"ABACUS_PARK_QUEUE_URL": *made.QueueUrl}
	return p
}

func (p *place) handler(t *testing.T) *ingest.Handler {
	t.Helper()
	h, err := newHandler(t.Context(), func(name string) string { return p.settings[name] })
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func invoke(t *testing.T, h *ingest.Handler, event []byte) string {
	t.Helper()
	answer, err := h.Invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func shipped(t *testing.T, name string) []byte {
	t.Helper()
	event, err := os.ReadFile(filepath.Join("..", "..", "events", name))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func (p *place) total(t *testing.T, counter, key string) string {
	t.Helper()
	sum, err := p.counters.Get(t.Context(), tally.Cell{Counter: counter, Key: key, Window: "all"})
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

func TestNewHandler_CountsTheShippedFlightsOnceHoweverOftenTheyCome(t *testing.T) {
	p := newPlace(t)
	for range 3 {
		h := p.handler(t)
		if got := invoke(t, h, shipped(t, "kinesis-flights.json")); got != `{"batchItemFailures":[]}` {
			t.Fatalf("answer %s", got)
		}
		if got := invoke(t, h, shipped(t, "kinesis-window.json")); got != `{"state":`+carried(t)+`,"batchItemFailures":[]}` {
			t.Fatalf("answer %s", got)
		}
	}
	for key, want := range map[[2]string]string{
		{"flights", "all"}: "5", {"flights", "origin/DTW"}: "1", {"flights", "route/LAS/OAK"}: "1",
		{"delay_minutes", "all"}: "57", {"long_flights", "all"}: "2", {"flights", "origin/XXX"}: "0",
	} {
		if got := p.total(t, key[0], key[1]); got != want {
			t.Errorf("%s of %s is %s, want %s", key[0], key[1], got, want)
		}
	}
}

// carried is the state of the shipped event's window.
func carried(t *testing.T) string {
	t.Helper()
	b, err := envelope.Decode(envelope.Kinesis, shipped(t, "kinesis-window.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b.State)
}

// noFlights is a shipped event whose records hold text instead of what they held.
func noFlights(t *testing.T) []byte {
	t.Helper()
	data := regexp.MustCompile(`"data": *"[^"]*"`)
	return data.ReplaceAll(shipped(t, "kinesis-flights.json"), []byte(`"data": "bm8gZmxpZ2h0"`))
}

func TestD3_CountsTheShippedAggregateAndLogSubscription(t *testing.T) {
	p := newPlace(t)
	for range 2 {
		for _, name := range []string{"kinesis-kpl.json", "kinesis-cloudwatch-logs.json"} {
			if got := invoke(t, p.handler(t), shipped(t, name)); got != `{"batchItemFailures":[]}` {
				t.Fatalf("%s: answer %s", name, got)
			}
		}
	}
	for key, want := range map[[2]string]string{
		{"flights", "all"}: "7", {"flights", "origin/LAX"}: "5", {"flights", "origin/HNL"}: "1",
		{"flights", "origin/DTW"}: "1", {"delay_minutes", "origin/LAX"}: "41",
	} {
		if got := p.total(t, key[0], key[1]); got != want {
			t.Errorf("%s of %s is %s, want %s", key[0], key[1], got, want)
		}
	}
}

func TestNewHandler_ParksABadRecordWithItsPayloadAndGoesOn(t *testing.T) {
	p := newPlace(t)
	h := p.handler(t)
	if got := invoke(t, h, noFlights(t)); got != `{"batchItemFailures":[]}` {
		t.Fatalf("answer %s", got)
	}
	received, err := p.parked.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(p.settings["ABACUS_PARK_QUEUE_URL"]), MaxNumberOfMessages: 10})
	if err != nil || len(received.Messages) == 0 {
		t.Fatalf("%d parked, %v", len(received.Messages), err)
	}
	batch, err := envelope.Decode(envelope.Kinesis, noFlights(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range received.Messages {
		parked, err := envelope.ParseParked([]byte(*m.Body))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range batch.Records {
			found = found || r.Identity == parked.Identity && string(r.Payload) == string(parked.Payload)
		}
		if !found || parked.Reason == "" || parked.Rules == "" {
			t.Errorf("%s is none of the records", *m.Body)
		}
	}
}

func TestNewHandler_WithoutAParkQueueABadRecordComesAgain(t *testing.T) {
	p := newPlace(t)
	p.settings["ABACUS_PARK_QUEUE_URL"] = ""
	var answer struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	text := invoke(t, p.handler(t), noFlights(t))
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.BatchItemFailures) == 0 {
		t.Errorf("answer %s, %v", text, err)
	}
}

func TestC3_AnEventOfAnotherSourceIsAnError(t *testing.T) {
	p := newPlace(t)
	if answer, err := p.handler(t).Invoke(t.Context(), shipped(t, "sqs-flights.json")); err == nil {
		t.Errorf("answer %s to an SQS event", answer)
	}
	if got := p.total(t, "flights", "all"); got != "0" {
		t.Errorf("%s flights were counted", got)
	}
}

func TestNewHandler_NamesEveryFaultOfItsSettingsAndWhatToDo(t *testing.T) {
	p := newPlace(t)
	bad := filepath.Join(t.TempDir(), "counters.yaml")
	if err := os.WriteFile(bad, []byte("counters:\n  - name: a\n  - keys: [b]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	faulty := map[string]string{"ABACUS_DEDUP_HORIZON": "5m", "ABACUS_LOG_LEVEL": "loud",
		"ABACUS_PARK_QUEUE_URL": "parked",
		"ABACUS_RULES":          bad}
	_, err := newHandler(context.Background(), func(name string) string { return faulty[name] })
	if err == nil {
		t.Fatal("the function started")
	}
	for _, want := range []string{"ABACUS_COUNTERS_TABLE is not set", "ABACUS_DEDUP_TABLE is not set",
		"ABACUS_DEDUP_HORIZON is 5m: set it",
		"ABACUS_LOG_LEVEL is", "ABACUS_PARK_QUEUE_URL is no queue's URL", "ABACUS_RULES: counters.yaml:", "counters.yaml:3",
		"AWS_REGION is not set"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	p.settings["ABACUS_RULES"] = filepath.Join(t.TempDir(), "none.yaml")
	t.Setenv("AWS_REGION", "us-east-1")
	if _, err := newHandler(context.Background(), func(name string) string { return p.settings[name] }); err == nil ||
		!strings.Contains(err.Error(), "ABACUS_RULES") {
		t.Errorf("without a rule file: %v", err)
	}
	p.settings["ABACUS_RULES"], p.settings["ABACUS_DEDUP_TABLE"] = filepath.Join("..", "counters.yaml"), "counters"
	if _, err := newHandler(context.Background(), func(name string) string { return p.settings[name] }); err == nil ||
		!strings.Contains(err.Error(), "ABACUS_DEDUP_TABLE") {
		t.Errorf("with one table for both: %v", err)
	}
}
