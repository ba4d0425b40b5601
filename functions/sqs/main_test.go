package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"abacus/shared/dynamo"
	"abacus/shared/env"
	"abacus/shared/ingest"
	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/table"
	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// place is what a deployment gives the function: tables, and settings that name them.
type place struct {
	cfg      aws.Config
	settings map[string]string
	counters *dynamo.Reader
}

func newPlace(t *testing.T) *place {
	t.Helper()
	tables := httptest.NewServer(table.New(table.Config{}))
	t.Cleanup(tables.Close)
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_CONFIG_FILE": os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_ENDPOINT_URL_DYNAMODB": tables.URL,
	} {
		t.Setenv(name, value)
	}
	p := &place{cfg: env.New(os.Getenv).AWS(t.Context()), settings: map[string]string{"ABACUS_COUNTERS_TABLE": "counters",
		"ABACUS_DEDUP_TABLE": "dedup", "ABACUS_RULES": filepath.Join("..", "counters.yaml"), "ABACUS_LOG_LEVEL": "ERROR"}}
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

func (p *place) flights(t *testing.T, key string) string {
	t.Helper()
	sum, err := p.counters.Get(t.Context(), tally.Cell{Counter: "flights", Key: key, Window: "all"})
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

func shipped(t *testing.T, name string) []byte {
	t.Helper()
	event, err := os.ReadFile(filepath.Join("..", "..", "events", name))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func TestNewHandler_CountsTheShippedFlightsOnceHoweverOftenTheyCome(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"sqs-flights.json", "sqs-fifo-flights.json", "sqs-flights.json",
		"sqs-fifo-flights.json"} {
		answer, err := p.handler(t).Invoke(t.Context(), shipped(t, name))
		if err != nil || string(answer) != `{"batchItemFailures":[]}` {
			t.Fatalf("%s: %s, %v", name, answer, err)
		}
	}
	for key, want := range map[string]string{"all": "4", "origin/DTW": "1", "route/HNL/SFO": "1", "origin/LAS": "1",
		"origin/ORD": "1"} {
		if got := p.flights(t, key); got != want {
			t.Errorf("flights of %s: %s, want %s", key, got, want)
		}
	}
}

func TestD2_CountsTheShippedNotificationsAndBusEvents(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"sqs-sns.json", "sqs-eventbridge.json", "sqs-sns.json"} {
		answer, err := p.handler(t).Invoke(t.Context(), shipped(t, name))
		if err != nil || string(answer) != `{"batchItemFailures":[]}` {
			t.Fatalf("%s: %s, %v", name, answer, err)
		}
	}
	for key, want := range map[string]string{"all": "4", "route/JFK/SFO": "1", "route/SFO/JFK": "1", "route/ORD/DFW": "1",
		"route/DFW/ORD": "1"} {
		if got := p.flights(t, key); got != want {
			t.Errorf("flights of %s: %s, want %s", key, got, want)
		}
	}
}

func TestNewHandler_CountsTheShippedMessagesThatItsRuleFileOpens(t *testing.T) {
	for name, c := range map[string]struct {
		rules string
		want  map[string]string
	}{
		"sqs-base64.json": {"base64: true\ncounters: [{name: flights, id: flight_id, keys: [all, 'origin/{origin}']}]",
			map[string]string{"all": "3", "origin/SEA": "2", "origin/PDX": "1"}},
		"sqs-s3.json": {"counters: [{name: flights, keys: [all, 'bucket/{s3.bucket.name}'], add: s3.object.size}]",
			map[string]string{"all": "7168", "bucket/uploads": "7168"}},
	} {
		p := newPlace(t)
		p.settings["ABACUS_RULES"] = filepath.Join(t.TempDir(), "counters.yaml")
		if err := os.WriteFile(p.settings["ABACUS_RULES"], []byte(c.rules), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			answer, err := p.handler(t).Invoke(t.Context(), shipped(t, name))
			if err != nil || string(answer) != `{"batchItemFailures":[]}` {
				t.Fatalf("%s: %s, %v", name, answer, err)
			}
		}
		for key, want := range c.want {
			if got := p.flights(t, key); got != want {
				t.Errorf("%s: %s is %s, want %s", name, key, got, want)
			}
		}
	}
}

func TestC4_OneBadMessageLeavesItsNeighboursAlone(t *testing.T) {
	p := newPlace(t)
	event := strings.Replace(string(shipped(t, "sqs-flights.json")), `DTW`, `DTW\",\"origin\":\"`, 1) // origin twice
	answer, err := p.handler(t).Invoke(t.Context(), []byte(event))
	if want := `{"batchItemFailures":[{"itemIdentifier":"2f0b1c52-5d0e-4b53-9a51-0c6f0c8f0000"}]}`; err != nil ||
		string(answer) != want {
		t.Errorf("%s, %v, want %s", answer, err, want)
	}
	if got := p.flights(t, "all"); got != "2" {
		t.Errorf("%s flights, want 2", got)
	}
}

func TestC3_AnEventOfAnotherSourceIsAnError(t *testing.T) {
	p := newPlace(t)
	if answer, err := p.handler(t).Invoke(t.Context(), shipped(t, "kinesis-flights.json")); err == nil {
		t.Errorf("answer %s to a Kinesis event", answer)
	}
}

func TestC2_WithoutItsTablesTheFunctionAcknowledgesNothing(t *testing.T) {
	p := newPlace(t)
	p.settings["ABACUS_DEDUP_TABLE"] = "elsewhere"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	answer, err := p.handler(t).Invoke(ctx, shipped(t, "sqs-flights.json"))
	if err == nil && strings.Count(string(answer), "itemIdentifier") != 2 {
		t.Errorf("%s, %v, want both messages named", answer, err)
	}
}

func TestNewHandler_NamesEveryFaultOfItsSettingsAndWhatToDo(t *testing.T) {
	newPlace(t)
	faulty := map[string]string{"ABACUS_DEDUP_HORIZON": "-1h", "ABACUS_LOG_LEVEL": "5",
		"ABACUS_RULES": filepath.Join(t.TempDir(), "none"), "ABACUS_GUARD": "position"}
	_, err := newHandler(t.Context(), func(name string) string { return faulty[name] })
	if err == nil {
		t.Fatal("the function started")
	}
	for _, want := range []string{"ABACUS_COUNTERS_TABLE is not set", "ABACUS_DEDUP_TABLE is not set",
		"ABACUS_DEDUP_HORIZON", "ABACUS_LOG_LEVEL is",
		"ABACUS_RULES: load rules", `ABACUS_GUARD is "position": this function takes claim`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

// TestH3_APoisonMessageComesBack proves what the function cannot know by itself: that its answers are read. The mapping
// is set as in the template; the message must end in the dead-letter queue, and its neighbour must be counted once.
func TestH3_APoisonMessageComesBack(t *testing.T) {
	p := newPlace(t)
	var ahead atomic.Int64 // time passes as fast as the mapping waits for messages
	server := httptest.NewServer(queue.New(queue.Config{
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		After: func(d time.Duration) <-chan time.Time {
			ahead.Add(int64(d))
			return time.After(0)
		},
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_SQS", server.URL)
	client := sqs.NewFromConfig(env.New(os.Getenv).AWS(t.Context()))
	dead := makeQueue(t, client, "dead", nil)
	work := makeQueue(t, client, "work", map[string]string{"VisibilityTimeout": "60",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":"20"}`})
	for _, body := range []string{"poison",
		`{"flight_id":"f1","date":"2001/01/01 00:47","delay":1,"distance":10,"origin":"AAA","destination":"BBB"}`} {
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &work, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	from, err := mapping.NewSQS(mapping.SQSConfig{Client: client, Queue: work, Invoke: p.handler(t).Invoke,
		ReportBatchItemFailures: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { stopped <- from.Run(running) }()
	bodies := map[string]bool{}
	for !bodies["poison"] && ctx.Err() == nil {
		got, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &dead, WaitTimeSeconds: 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			bodies[*m.Body] = true
		}
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if got := p.flights(t, "all"); got != "1" || !bodies["poison"] {
		t.Errorf("%s flights, want 1; dead letters %v", got, bodies)
	}
}

func makeQueue(t *testing.T, client *sqs.Client, name string, attributes map[string]string) string {
	t.Helper()
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *made.QueueUrl
}
