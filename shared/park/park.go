// Package park sends what cannot be counted to an SQS queue, where it is kept until it is replayed. It is the only
// sender to SQS, and knows nothing of what it sends; package envelope documents that.
package park

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	sendTimeout = 5 * time.Second // of one document, all tries included
	attempts    = 3
	maxBackoff  = 500 * time.Millisecond
)

// Queue is a standard SQS queue that takes documents. It may be used by many goroutines.
type Queue struct {
	client *sqs.Client
	url    string
}

// NewQueue returns the queue at url. It makes no request. The endpoint comes from cfg, and so from AWS_ENDPOINT_URL_SQS
// and AWS_ENDPOINT_URL.
func NewQueue(cfg aws.Config, url string) *Queue {
	return &Queue{url: url, client: sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		// A document that is sent twice is replayed twice under one identity, and counts once: retries are safe.
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts, r.MaxBackoff = attempts, maxBackoff })
	})}
}

// Park sends one document, at most 1 MiB of the characters that SQS allows. It returns nil once SQS has it for good,
// after at most 5 s and 3 tries. After an error SQS may have it all the same.
func (q *Queue) Park(ctx context.Context, document []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: aws.String(string(document))})
	if err != nil {
		return fmt.Errorf("send to the park queue: %w; check that it exists, and that the function may send to it", err)
	}
	return nil
}
