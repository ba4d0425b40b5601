package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"abacus/shared/dynamo"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// sub is the shipped event with the records [from, to) of it.
func sub(t *testing.T, name string, from, to int) []byte {
	t.Helper()
	var event struct{ Records []json.RawMessage }
	if err := json.Unmarshal(shipped(t, name), &event); err != nil {
		t.Fatal(err)
	}
	event.Records = event.Records[from:min(to, len(event.Records))]
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestPositionGuard_CountsTheShippedFlightsOnceHoweverTheyAreCut(t *testing.T) {
	p := newPlace(t)
	p.settings["ABACUS_GUARD"] = "position"
	h := p.handler(t)
	for _, event := range [][]byte{
		sub(t, "kinesis-flights.json", 0, 1), // and its answer is lost
		shipped(t, "kinesis-flights.json"), shipped(t, "kinesis-window.json"),
		sub(t, "kinesis-flights.json", 1, 99), shipped(t, "kinesis-window.json"), shipped(t, "kinesis-flights.json"),
	} {
		if got := invoke(t, h, event); !strings.Contains(got, `"batchItemFailures":[]`) {
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
	claims, err := dynamo.NewClient(p.cfg).Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("dedup")})
	if err != nil || claims.Count != 0 {
		t.Errorf("%d claims and commit records, %v; under this guard there are none", claims.Count, err)
	}
}

func TestPositionGuard_ABadRecordIsParkedAndItsShardGoesOn(t *testing.T) {
	p := newPlace(t)
	p.settings["ABACUS_GUARD"] = "position"
	h := p.handler(t)
	event := shipped(t, "kinesis-flights.json")
	var first struct {
		Records []struct {
			Kinesis struct{ Data, SequenceNumber string }
		}
	}
	if err := json.Unmarshal(event, &first); err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(string(event), first.Records[0].Kinesis.Data, "bm90IGpzb24=", 1) // not json
	if got := invoke(t, h, []byte(bad)); got != `{"batchItemFailures":[]}` {
		t.Fatalf("answer %s", got)
	}
	if a, b := p.total(t, "flights", "origin/DTW"), p.total(t, "flights", "all"); a != "0" || b == "0" {
		t.Errorf("flights of the bad record %s, of all %s", a, b)
	}
	received, err := p.parked.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(p.settings["ABACUS_PARK_QUEUE_URL"]), MaxNumberOfMessages: 10})
	if err != nil || len(received.Messages) != 1 {
		t.Fatalf("%d parked, %v; want 1", len(received.Messages), err)
	}
	p.settings["ABACUS_PARK_QUEUE_URL"] = ""
	all := p.total(t, "flights", "all")
	if got := invoke(t, p.handler(t), []byte(bad)); !strings.Contains(got, first.Records[0].Kinesis.SequenceNumber) {
		t.Errorf("without a park queue the answer is %s", got)
	}
	if got := p.total(t, "flights", "all"); got != all {
		t.Errorf("%s flights after a delivery that counted nothing new, want %s", got, all)
	}
}

func TestPositionGuard_IsOneOfTwo(t *testing.T) {
	p := newPlace(t)
	p.settings["ABACUS_GUARD"] = "positions"
	_, err := newHandler(context.Background(), func(name string) string { return p.settings[name] })
	if err == nil || !strings.Contains(err.Error(), `ABACUS_GUARD is "positions": this function takes claim or position`) {
		t.Errorf("error %v", err)
	}
}
