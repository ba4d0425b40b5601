package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sys/unix"
)

const benchRules = `
counters:
  - name: views
    id: event_id
    keys: ["{page}"]
    add: 1
    windows: {all: forever}
`

// view is one event of the workload, about 120 bytes as JSON.
type view struct {
	EventID string `json:"event_id"`
	Page    string `json:"page"`
	Country string `json:"country"`
	At      int64  `json:"at"`
	Agent   string `json:"agent"`
}

// views is a Kinesis batch of n views, zipf(1.1) over 50 pages.
func views(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	pages := rand.NewZipf(random, 1.1, 1, 49)
	var e events.KinesisEvent
	for i := range n {
		data, _ := json.Marshal(view{fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", i), fmt.Sprintf("/page/%d",
			pages.Uint64()), "DE",
			1_700_000_000_000 + int64(i), "curl/8"})
		at := events.SecondsEpochTime{Time: time.UnixMilli(1_700_000_000_123 + int64(i))}
		number := fmt.Sprintf("4959033827149025660855969253836157109592157598913658%04d", i)
		e.Records = append(e.Records, events.KinesisEventRecord{
			AwsRegion: "eu-west-1", EventID: "shardId-000000000006:" + number, EventName: "aws:kinesis:record",
			EventSource:    "aws:kinesis",
			EventSourceArn: streamARN, EventVersion: "1.0", InvokeIdentityArn: "arn:aws:iam::111122223333:role/views-counter",
			Kinesis: events.KinesisRecord{ApproximateArrivalTimestamp: at,
				Data: data, PartitionKey: fmt.Sprint(i), SequenceNumber: number, KinesisSchemaVersion: "1.0"},
		})
	}
	raw, _ := json.Marshal(e)
	return raw
}

// inMemory is a Sink that adds up and never fails.
type inMemory map[tally.Cell]int64

func (s inMemory) MergeMany(_ context.Context, events []tally.Event) []merge.Outcome {
	outcomes := make([]merge.Outcome, len(events))
	for i, e := range events {
		for _, a := range e.Adds {
			s[a.Cell] += a.Delta
		}
		outcomes[i].Status = merge.Counted
	}
	return outcomes
}

// naive does for this one workload what a handler on aws-lambda-go's event types does.
func naive(sink inMemory, raw []byte) ([]byte, error) {
	var e events.KinesisEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	answer := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
	for _, r := range e.Records {
		var v view
		if err := json.Unmarshal(r.Kinesis.Data, &v); err != nil {
			answer.BatchItemFailures = append(answer.BatchItemFailures,
				events.KinesisBatchItemFailure{ItemIdentifier: r.Kinesis.SequenceNumber})
			continue
		}
		event := []tally.Event{{ID: v.EventID, Adds: []tally.Add{{Cell: tally.Cell{Counter: "views", Key: v.Page,
			Window: "all"}, Delta: 1}}}}
		sink.MergeMany(context.Background(), event)
	}
	return json.Marshal(answer)
}

func benchHandler(tb testing.TB) *Handler {
	set, err := rules.Parse("rules.yaml", []byte(benchRules))
	if err != nil {
		tb.Fatal(err)
	}
	h, err := New(Config{Kind: envelope.Kinesis, Rules: set, Sink: inMemory{}})
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// processorTime is what this process has used so far, collecting garbage included. Other work on the machine moves it
// less than the time on the clock.
func processorTime(tb testing.TB) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkInvoke is a whole invocation, payload bytes to response bytes, beside the naive way.
func BenchmarkInvoke(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		raw, h := views(n), benchHandler(b)
		for name, invoke := range map[string]func() ([]byte, error){
			"abacus": func() ([]byte, error) { return h.Invoke(context.Background(), raw) },
			"naive":  func() ([]byte, error) { return naive(h.sink.(inMemory), raw) },
		} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				start := processorTime(b)
				for b.Loop() {
					if answer, err := invoke(); err != nil || string(answer) != `{"batchItemFailures":[]}` {
						b.Fatal(string(answer), err)
					}
				}
				b.ReportMetric(float64((processorTime(b)-start).Microseconds())/float64(b.N*n), "cpu-us/event")
			})
		}
	}
}

func TestInvoke_CostsAtMostFourAllocationsAnEvent(t *testing.T) {
	raw, h := views(1000), benchHandler(t)
	n := testing.AllocsPerRun(5, func() { _, _ = h.Invoke(context.Background(), raw) }) / 1000
	if n > allowedAllocations {
		t.Errorf("%.2f allocations an event, want at most %d", n, allowedAllocations)
	}
}
