package mapping

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// deliver invokes the function with a batch and deletes what it processed. What failed stays in the queue and comes
// again when its visibility timeout ends
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html).
func (p *poller) deliver(ctx, work context.Context, batch []message) {
	q := p.q
	ids := identifiers(batch)
	try, _ := strconv.Atoi(batch[0].tries)
	twist := q.c.Pace.twist(Delivery{Source: "aws:sqs", IDs: ids, Try: try})
	if twist.Cut > 0 && twist.Cut < len(batch) {
		p.pending = append(slices.Clone(batch[twist.Cut:]), p.pending...)
		batch, ids = batch[:twist.Cut], ids[:twist.Cut]
	}
	if twist.Lapse {
		q.show(work, batch)
	}
	q.started()
	response, err := q.c.Invoke(work, event(bodies(batch)))
	v := verdict{err: err}
	if err == nil {
		v = judge(response, ids, q.c.ReportBatchItemFailures)
	}
	failed := slices.DeleteFunc(slices.Clone(batch), func(m message) bool { return v.err == nil && !v.failed[m.id] })
	processed := slices.DeleteFunc(slices.Clone(batch), func(m message) bool { return v.err != nil || v.failed[m.id] })
	if twist.Repeat {
		q.show(work, processed)
	} else {
		q.delete(work, processed)
	}
	q.ended(len(batch), len(failed))
	p.holdBack(failed)
	p.slowDown(ctx, v.err)
}

func identifiers(batch []message) []string {
	ids := make([]string, len(batch))
	for i, m := range batch {
		ids[i] = m.id
	}
	return ids
}

// holdBack lets go of received messages whose group has a failure before them: in a FIFO queue that is delivered again
// before more of the group is (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html).
func (p *poller) holdBack(failed []message) {
	if p.q.fifo {
		p.pending = slices.DeleteFunc(p.pending, func(m message) bool {
			return slices.ContainsFunc(failed, func(f message) bool { return f.group == m.group })
		})
	}
}

// slowDown backs off from polling after a failure of the whole batch. With partial responses Lambda does not.
func (p *poller) slowDown(ctx context.Context, err error) {
	switch {
	case err == nil:
		p.failures = 0
	case !p.q.c.ReportBatchItemFailures || errors.Is(err, ErrThrottled):
		p.failures++
		p.q.c.Pace.backoff(ctx, p.failures)
	}
}

// delete deletes messages, ten at a time, and tries again with those of which the answer says that they failed. What it
// cannot delete will come again.
func (q *SQS) delete(work context.Context, messages []message) {
	for part := range slices.Chunk(messages, 10) {
		left := q.retry(work, part, func(part []message) ([]types.BatchResultErrorEntry, error) {
			in := &sqs.DeleteMessageBatchInput{QueueUrl: &q.c.Queue}
			for i, m := range part {
				in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)),
					ReceiptHandle: &m.receipt})
			}
			call, cancel := context.WithTimeout(work, callTimeout)
			defer cancel()
			out, err := q.c.Client.DeleteMessageBatch(call, in)
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		})
		q.note(func(s *Stats) { s.Deleted += int64(len(part) - left); s.DeleteFailed += int64(left) })
	}
}

// show makes messages visible again at once.
func (q *SQS) show(work context.Context, messages []message) {
	for part := range slices.Chunk(messages, 10) {
		q.retry(work, part, func(part []message) ([]types.BatchResultErrorEntry, error) {
			in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.c.Queue}
			for i, m := range part {
				in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
					Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &m.receipt, VisibilityTimeout: 0})
			}
			call, cancel := context.WithTimeout(work, callTimeout)
			defer cancel()
			out, err := q.c.Client.ChangeMessageVisibilityBatch(call, in)
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		})
	}
}

// retry runs a batch operation up to five times on what is left, and returns how many messages never went through. An
// entry that failed by the sender's fault is not tried again.
func (q *SQS) retry(work context.Context, part []message,
	run func([]message) ([]types.BatchResultErrorEntry, error)) (lost int) {
	for try := 1; ; try++ {
		failed, err := run(part)
		if err == nil {
			var left []message
			for _, f := range failed {
				if n, bad := strconv.Atoi(aws.ToString(f.Id)); bad == nil && n < len(part) && !f.SenderFault {
					left = append(left, part[n])
				} else {
					lost++
				}
			}
			part = left
		} else {
			q.trouble(err)
		}
		if len(part) == 0 || try == 5 || !q.c.Pace.backoff(work, try) {
			return lost + len(part)
		}
	}
}
