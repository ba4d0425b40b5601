package envelope

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"abacus/shared/tally"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sys/unix"
)

// kinesisEvent is an event as Lambda writes it, without white space, of n records that carry payload(i).
func kinesisEvent(n int, payload func(i int) []byte) []byte {
	var e events.KinesisEvent
	for i := range n {
		number := fmt.Sprintf("4959033827149025660855969253836157109592157598913658%04d", i)
		e.Records = append(e.Records, events.KinesisEventRecord{
			AwsRegion: "eu-west-1", EventID: "shardId-000000000006:" + number, EventName: "aws:kinesis:record",
			EventSource: "aws:kinesis", EventSourceArn: "arn:aws:kinesis:eu-west-1:111122223333:stream/flights",
			EventVersion: "1.0", InvokeIdentityArn: "arn:aws:iam::111122223333:role/flights-counter",
			Kinesis: events.KinesisRecord{
				ApproximateArrivalTimestamp: events.SecondsEpochTime{Time: time.UnixMilli(1_700_000_000_123 + int64(i))},
				Data:                        payload(i), PartitionKey: fmt.Sprint(i), SequenceNumber: number,
				KinesisSchemaVersion: "1.0",
			},
		})
	}
	return mustMarshal(e)
}

// sqsEvent is an event as Lambda writes it, without white space, of n messages with body(i).
func sqsEvent(n int, body func(i int) []byte) []byte {
	var e events.SQSEvent
	for i := range n {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId:     fmt.Sprintf("059f36b4-87a3-44ab-83d2-66197583%04d", i),
			ReceiptHandle: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0aAQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0aAQEBwJnKyrHigUMZj6rYigCgxl",
			Body:          string(body(i)), Md5OfBody: "e4e68fb7bd0e697a0ae8f1bb342846b3",
			Attributes: map[string]string{"ApproximateReceiveCount": "1", "SentTimestamp": "1700000000123",
				"SenderId": "AIDAIENQZJOLO23YVJ4VO", "ApproximateFirstReceiveTimestamp": "1700000000125"},
			MessageAttributes: map[string]events.SQSMessageAttribute{},
			EventSourceARN:    "arn:aws:sqs:eu-west-1:111122223333:flights", EventSource: "aws:sqs", AWSRegion: "eu-west-1",
		})
	}
	return mustMarshal(e)
}

func mustMarshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func flight(i int) []byte {
	return fmt.Appendf(nil, `{"flight_id":"f%05d","date":"2001/01/01 00:47","delay":66,"distance":1750,`+
		`"origin":"DTW","destination":"LAS"}`, i)
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

// BenchmarkDecode compares Decode with the candidates that it was chosen over, on 1,000 records of about 120 bytes.
func BenchmarkDecode(b *testing.B) {
	for _, source := range []struct {
		kind Kind
		raw  []byte
		into func() any
	}{
		{Kinesis, kinesisEvent(1000, flight), func() any { return new(events.KinesisEvent) }},
		{SQS, sqsEvent(1000, flight), func() any { return new(events.SQSEvent) }},
	} {
		run := func(name string, decode func() error) {
			b.Run(string(source.kind[4:])+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(source.raw)))
				b.ReportAllocs()
				start := processorTime(b)
				for b.Loop() {
					if err := decode(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/float64(b.N*1000), "cpu-ns/record")
			})
		}
		run("scanner", func() error { _, err := Decode(source.kind, source.raw); return err })
		run("jsontext", func() error { _, err := decodeByTokens(source.kind, source.raw); return err })
		run("aws-lambda-go", func() error { return json.Unmarshal(source.raw, source.into()) })
	}
}

// BenchmarkDocuments finds the document in a payload of about 120 bytes.
func BenchmarkDocuments(b *testing.B) {
	opener, payload := NewOpener(tally.DefaultEnvelopes), flight(1)
	each := func(Document) error { return nil }
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := opener.Documents(payload, each); err != nil {
			b.Fatal(err)
		}
	}
}
