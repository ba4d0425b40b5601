// Command kinesis is the Lambda function that counts the records of a Kinesis stream. Its settings are environment
// variables; the README lists them.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"abacus/shared/dynamo"
	"abacus/shared/env"
	"abacus/shared/envelope"
	"abacus/shared/ingest"
	"abacus/shared/merge"
	"abacus/shared/park"
	"abacus/shared/tally/rules"
	"abacus/shared/telemetry"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	env.LimitMemory(os.Getenv)
	handler, err := newHandler(context.Background(), os.Getenv)
	if err != nil {
		telemetry.NewLogger(os.Stdout, slog.LevelError).Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(handler)
}

// newHandler puts the function together from its settings; its error names every fault of them. It asks nothing of AWS.
func newHandler(ctx context.Context, getenv func(string) string) (*ingest.Handler, error) {
	settings := env.New(getenv)
	log := telemetry.NewLogger(os.Stdout, settings.Level("ABACUS_LOG_LEVEL"))
	counters := settings.Required("ABACUS_COUNTERS_TABLE", "the name of the table of counters")
	dedup := settings.Required("ABACUS_DEDUP_TABLE", "the name of the table of claims and commit records")
	horizon := settings.Duration("ABACUS_DEDUP_HORIZON", merge.DefaultHorizon, merge.MinHorizon)
	queue := settings.QueueURL("ABACUS_PARK_QUEUE_URL")
	guard := settings.OneOf("ABACUS_GUARD", "claim", "position")
	set, err := rules.Load(settings.Text("ABACUS_RULES", "/opt/counters.yaml"))
	settings.Check("ABACUS_RULES", err)
	cfg := settings.AWS(ctx)
	if err := settings.Err(); err != nil {
		return nil, err
	}
	store, err := dynamo.NewStore(dynamo.Options{Client: dynamo.NewClient(cfg), Counters: counters, Dedup: dedup})
	if err != nil {
		return nil, fmt.Errorf("ABACUS_COUNTERS_TABLE, ABACUS_DEDUP_TABLE: %w", err)
	}
	sums := telemetry.NewSums(log)
	merger, err := merge.New(merge.Config{Store: store, Recorder: sums, Horizon: horizon})
	if err != nil {
		return nil, err
	}
	config := ingest.Config{Kind: envelope.Kinesis, Rules: set, Sink: merger, Recorder: sums, Log: log}
	if guard == "position" {
		config.Sink, config.ByPosition = merger.ByPosition(store), true
	}
	if queue != "" {
		config.Parker = park.NewQueue(cfg, queue)
	}
	return ingest.New(config)
}
