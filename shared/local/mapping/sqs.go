package mapping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// usualPollers is how many batches a mapping of a standard queue takes at once when it starts
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html). It does not scale here.
const usualPollers = 5

// SQSConfig is an event source mapping of a queue, by the names of CreateEventSourceMapping
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html).
type SQSConfig struct {
	Client *sqs.Client
	Queue  string // URL
	Invoke Invoke

	BatchSize               int           // 1 to 10,000; 0: 10. FIFO: at most 10. Above 10 it needs a window
	BatchingWindow          time.Duration // 0 to 300 s, whole seconds. FIFO: 0
	MaximumConcurrency      int           // 2 to 1,000; 0: as many batches at once as AWS starts with, 5
	ReportBatchItemFailures bool
	FunctionTimeout         time.Duration // at most the queue's visibility timeout; 0: not checked
	Pace                    Pace
}

// SQS is a mapping of a queue.
type SQS struct {
	ledger
	c     SQSConfig
	queue arn
	fifo  bool
}

// NewSQS returns a mapping that has done nothing yet. Its error names everything that is wrong with the config.
func NewSQS(c SQSConfig) (*SQS, error) {
	var faults []error
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fifo := strings.HasSuffix(c.Queue, ".fifo")
	c.BatchSize = cmp.Or(c.BatchSize, 10)
	rule(c.Client != nil && c.Invoke != nil, "Client and Invoke must be set")
	rule(c.Queue != "", "Queue must be the URL of a queue")
	rule(c.BatchSize >= 1 && c.BatchSize <= 10_000, "BatchSize %d must be 1 to 10000", c.BatchSize)
	rule(!fifo || c.BatchSize <= 10, "BatchSize %d must be at most 10 for a FIFO queue", c.BatchSize)
	rule(!fifo || c.BatchingWindow == 0, "BatchingWindow %v must be 0 for a FIFO queue", c.BatchingWindow)
	rule(c.BatchingWindow >= 0 && c.BatchingWindow <= 300*time.Second && c.BatchingWindow%time.Second == 0,
		"BatchingWindow %v must be whole seconds from 0 to 300", c.BatchingWindow)
	rule(fifo || c.BatchSize <= 10 || c.BatchingWindow >= time.Second,
		"BatchSize %d above 10 needs a BatchingWindow of at least 1s", c.BatchSize)
	rule(c.MaximumConcurrency == 0 || (c.MaximumConcurrency >= 2 && c.MaximumConcurrency <= 1000),
		"MaximumConcurrency %d must be 2 to 1000", c.MaximumConcurrency)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("event source mapping of a queue: %w", err)
	}
	c.Pace = c.Pace.complete()
	return &SQS{c: c, fifo: fifo}, nil
}

// Run takes messages until ctx ends: it invokes no more then, waits for the invocations under way and deletes what they
// processed, and returns nil. It returns an error at once where there is no such queue, or where its visibility timeout
// is below the function's timeout. Call it once.
func (q *SQS) Run(ctx context.Context) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	work, done := q.c.Pace.working(ctx)
	defer done()
	var pollers sync.WaitGroup
	for range cmp.Or(q.c.MaximumConcurrency, usualPollers) {
		pollers.Go(func() { (&poller{q: q}).run(ctx, work) })
	}
	pollers.Wait()
	return nil
}

// check looks the queue up. It retries until ctx ends.
func (q *SQS) check(ctx context.Context) error {
	for try := 1; ctx.Err() == nil; try++ {
		all, err := q.attributes(ctx)
		if _, gone := errors.AsType[*types.QueueDoesNotExist](err); gone {
			return fmt.Errorf("event source mapping of %s: %w", q.c.Queue, err)
		}
		if err != nil {
			q.trouble(err)
			q.c.Pace.backoff(ctx, try)
			continue
		}
		visibility, _ := strconv.Atoi(all["VisibilityTimeout"])
		if limit := time.Duration(visibility) * time.Second; limit < q.c.FunctionTimeout {
			return fmt.Errorf("event source mapping of %s: the queue's visibility timeout %v is less than "+
				"the function's timeout %v; raise it to six times that", q.c.Queue, limit, q.c.FunctionTimeout)
		}
		q.queue, err = parseARN(all["QueueArn"], "sqs")
		return err
	}
	return nil
}

func (q *SQS) attributes(ctx context.Context) (map[string]string, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := q.c.Client.GetQueueAttributes(call, &sqs.GetQueueAttributesInput{QueueUrl: &q.c.Queue,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// Drained waits until the queue holds no message, neither visible nor in flight nor delayed, and no invocation is under
// way. It returns the error of ctx if that ends first.
func (q *SQS) Drained(ctx context.Context) error {
	for {
		all, err := q.attributes(ctx)
		empty := err == nil && q.Stats().Running == 0
		for _, kind := range []string{"", "NotVisible", "Delayed"} {
			empty = empty && all["ApproximateNumberOfMessages"+kind] == "0"
		}
		if empty {
			return nil
		}
		if !q.c.Pace.sleep(ctx, q.c.Pace.PollInterval) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// poller takes one batch after the other.
type poller struct {
	q        *SQS
	pending  []message // received, and too much for the batch before
	failures int       // of the function, in a row
}

type message struct {
	id, receipt, group string
	tries              string // ApproximateReceiveCount
	text               []byte
}

// run takes batches until ctx ends, and gives back what it holds then.
func (p *poller) run(ctx, work context.Context) {
	for ctx.Err() == nil {
		batch := p.gather(ctx)
		switch {
		case ctx.Err() != nil:
			p.pending = append(batch, p.pending...)
		case len(batch) > 0:
			p.deliver(ctx, work, batch)
		}
	}
	p.q.show(work, p.pending)
}

// gather returns the next batch. It closes on the first of: batch size, batching window, 6 MB; without a window it is
// what one receive brings (https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html).
func (p *poller) gather(ctx context.Context) []message {
	if len(p.pending) == 0 && !p.receive(ctx, 20*time.Second) {
		return nil
	}
	end := p.q.c.Pace.Now().Add(p.q.c.BatchingWindow)
	for len(p.pending) < p.q.c.BatchSize && fitting(bodies(p.pending)) == len(p.pending) {
		left := end.Sub(p.q.c.Pace.Now())
		if left <= 0 || !p.receive(ctx, left) && ctx.Err() != nil {
			break
		}
	}
	n := min(p.q.c.BatchSize, len(p.pending))
	n = max(1, min(n, fitting(bodies(p.pending[:n]))))
	batch := p.pending[:n:n]
	p.pending = p.pending[n:]
	return batch
}

// receive adds messages to what is pending, and waits for some up to a time, in whole seconds and 20 at most. It
// returns false where there were none.
func (p *poller) receive(ctx context.Context, wait time.Duration) bool {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := p.q.c.Client.ReceiveMessage(call, &sqs.ReceiveMessageInput{
		QueueUrl: &p.q.c.Queue, MaxNumberOfMessages: int32(min(10, p.q.c.BatchSize-len(p.pending))),
		WaitTimeSeconds:             int32(min(20, (wait+time.Second-1)/time.Second)),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"}})
	if err != nil {
		if ctx.Err() == nil {
			p.q.trouble(err)
			p.q.c.Pace.backoff(ctx, 5)
		}
		return false
	}
	for _, m := range out.Messages {
		p.pending = append(p.pending, message{id: aws.ToString(m.MessageId), receipt: aws.ToString(m.ReceiptHandle),
			group: m.Attributes["MessageGroupId"], tries: m.Attributes["ApproximateReceiveCount"],
			text: encodeSQS(m, p.q.queue)})
	}
	p.q.note(func(s *Stats) { s.Polled += int64(len(out.Messages)) })
	return len(out.Messages) > 0
}

func bodies(messages []message) [][]byte {
	out := make([][]byte, len(messages))
	for i, m := range messages {
		out[i] = m.text
	}
	return out
}
