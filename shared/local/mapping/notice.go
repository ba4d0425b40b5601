package mapping

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// notice is the document that an on-failure destination gets: where the records are, and only in S3 also what was in
// them (https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html).
type notice struct {
	RequestContext struct {
		RequestID              string `json:"requestId"`
		FunctionARN            string `json:"functionArn"`
		Condition              string `json:"condition"`
		ApproximateInvokeCount int    `json:"approximateInvokeCount"`
	} `json:"requestContext"`
	ResponseContext *responseContext `json:"responseContext,omitempty"` // absent where the function was never invoked
	Version         string           `json:"version"`
	Timestamp       string           `json:"timestamp"`
	Batch           struct {
		ShardID      string `json:"shardId"`
		Start        string `json:"startSequenceNumber"`
		End          string `json:"endSequenceNumber"`
		FirstArrival string `json:"approximateArrivalOfFirstRecord"`
		LastArrival  string `json:"approximateArrivalOfLastRecord"`
		Size         int    `json:"batchSize"`
		StreamARN    string `json:"streamArn"`
	} `json:"KinesisBatchInfo"`
	Payload string `json:"payload,omitempty"`
}

type responseContext struct {
	StatusCode      int    `json:"statusCode"`
	ExecutedVersion string `json:"executedVersion"`
	FunctionError   string `json:"functionError,omitempty"` // absent where the function named records as failed
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (l *lane) notice(p piece, condition string) notice {
	k, first, last := l.d.k, p.records[0], p.records[len(p.records)-1]
	n := notice{Version: "1.0", Timestamp: instant(k.c.Pace.Now())}
	n.RequestContext.RequestID, n.RequestContext.FunctionARN = newID(), k.c.Function
	n.RequestContext.Condition, n.RequestContext.ApproximateInvokeCount = condition, p.invoked
	if p.invoked > 0 {
		n.ResponseContext = &responseContext{StatusCode: 200, ExecutedVersion: "$LATEST"}
		if p.function {
			n.ResponseContext.FunctionError = "Unhandled"
		}
	}
	n.Batch.ShardID, n.Batch.Size, n.Batch.StreamARN = l.d.id, len(p.records), k.c.Stream
	n.Batch.Start, n.Batch.End = first.number, last.number
	n.Batch.FirstArrival, n.Batch.LastArrival = instant(first.arrived), instant(last.arrived)
	return n
}

// discard gives p up: the destination is told, and the shard goes on whether that worked or not.
func (l *lane) discard(work context.Context, p piece, condition string) {
	k, count := l.d.k, int64(len(p.records))
	if len(p.records) == 0 {
		return
	}
	told, err := k.tell(work, l.notice(p, condition), p.records)
	if err != nil {
		k.trouble(fmt.Errorf("%d records of %s/%s are lost: %w", count, k.stream.resource, l.d.id, err))
	}
	k.note(func(s *Stats) {
		s.Dropped += count
		switch {
		case told:
			s.DestinationDelivered += count
		case err != nil:
			s.DestinationFailed += count
		}
	})
	l.d.settle(p.records)
}

// tell sends a notice to the destination, if there is one, with a few tries.
func (k *Kinesis) tell(work context.Context, n notice, records []*record) (told bool, err error) {
	if k.queueURL == "" && k.c.OnFailureObject == nil {
		return false, nil
	}
	key := ""
	if k.c.OnFailureObject != nil {
		n.Payload = string(event(texts(records)))
		now := k.c.Pace.Now().UTC()
		key = fmt.Sprintf("aws/lambda/%s/%s/%s-%s", k.id, n.Batch.ShardID, now.Format("2006/01/02/2006-01-02T15.04.05"),
			newID())
	}
	text, err := json.Marshal(n)
	if err != nil {
		return false, err
	}
	for try := 1; ; try++ {
		if k.c.OnFailureObject != nil {
			err = k.c.OnFailureObject(key, text)
		} else {
			call, cancel := context.WithTimeout(work, callTimeout)
			_, err = k.c.Queues.SendMessage(call, &sqs.SendMessageInput{QueueUrl: &k.queueURL,
				MessageBody: aws.String(string(text))})
			cancel()
		}
		if err == nil {
			return true, nil
		}
		if try == 5 || !k.c.Pace.backoff(work, try) {
			return false, fmt.Errorf("tell the on-failure destination: %w", err)
		}
	}
}

// findDestination looks the on-failure queue up, so that one that does not exist shows before anything is lost.
func (k *Kinesis) findDestination(ctx context.Context) error {
	if k.c.OnFailure == "" {
		return nil
	}
	name, _ := parseARN(k.c.OnFailure, "sqs")
	for try := 1; ; try++ {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		out, err := k.c.Queues.GetQueueUrl(call, &sqs.GetQueueUrlInput{QueueName: &name.resource})
		cancel()
		if err == nil {
			k.queueURL = aws.ToString(out.QueueUrl)
			return nil
		}
		_, gone := errors.AsType[*types.QueueDoesNotExist](err)
		if gone || try == 5 || !k.c.Pace.backoff(ctx, try) {
			return fmt.Errorf("on-failure destination %s: %w", k.c.OnFailure, err)
		}
	}
}
