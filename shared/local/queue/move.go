package queue

import (
	"context"
	"encoding/base64"
	"slices"
	"time"

	"abacus/shared/local/wire"
)

// moveTask is one StartMessageMoveTask. It is over when the call returns.
type moveTask struct {
	ApproximateNumberOfMessagesMoved  int64
	ApproximateNumberOfMessagesToMove int64
	DestinationArn                    string `json:",omitempty"`
	FailureReason                     string `json:",omitempty"`
	MaxNumberOfMessagesPerSecond      *int   `json:",omitempty"`
	SourceArn                         string
	StartedTimestamp                  int64
	Status                            string
}

// startMoveTask moves every visible message of a dead-letter queue to the destination, or to the queue it came from. A
// moved message is a new one: it has a new id and enqueue time
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html).
func (s *Server) startMoveTask(_ context.Context, r struct {
	SourceArn                    string
	DestinationArn               string
	MaxNumberOfMessagesPerSecond *int
}) (any, error) {
	dead, ok := s.byARN(r.SourceArn)
	if !ok {
		return nil, noResource("SourceArn")
	}
	if rate := r.MaxNumberOfMessagesPerSecond; rate != nil && (*rate < 1 || *rate > 500) {
		return nil, bad("MaxNumberOfMessagesPerSecond must be between 1 and 500")
	}
	if !s.isDeadLetter(dead) {
		return nil, bad("Source queue must be configured as a Dead Letter Queue.")
	}
	destination, ok := s.byARN(r.DestinationArn)
	if r.DestinationArn != "" && !ok {
		return nil, noResource("DestinationArn")
	}
	now := s.config.Now()
	dead.expire(now)
	ready := dead.ready(now, len(dead.messages))
	task := moveTask{SourceArn: r.SourceArn, DestinationArn: r.DestinationArn, StartedTimestamp: now.UnixMilli(),
		ApproximateNumberOfMessagesToMove: int64(len(ready)),
		MaxNumberOfMessagesPerSecond:      r.MaxNumberOfMessagesPerSecond, Status: "COMPLETED"}
	for _, m := range ready {
		to := destination
		if to == nil {
			if to, ok = s.byARN(m.source); !ok {
				task.Status, task.FailureReason = "FAILED", "CouldNotDetermineMessageSource"
				break
			}
		}
		dead.remove(m)
		to.add(m.renewed(to, now))
		task.ApproximateNumberOfMessagesMoved++
	}
	dead.tasks = append(dead.tasks, task)
	return map[string]any{"TaskHandle": base64.StdEncoding.EncodeToString([]byte(newID() + "/" + r.SourceArn))}, nil
}

func (m *message) renewed(to *queue, now time.Time) *message {
	fresh := &message{id: newID(), body: m.body, attributes: m.attributes, trace: m.trace, group: m.group,
		dedup: m.dedup,
		sent:  now.Truncate(time.Millisecond), visible: now}
	if to.fifo {
		fresh.sequence = to.nextSequence()
	}
	return fresh
}

// isDeadLetter reports whether another queue's redrive policy names q.
func (s *Server) isDeadLetter(q *queue) bool {
	for _, other := range s.queues {
		if policy, ok := other.set.redrive(); ok && policy.target == s.ARN(q.name) {
			return true
		}
	}
	return false
}

func (s *Server) listMoveTasks(_ context.Context, r struct {
	SourceArn  string
	MaxResults *int
}) (any, error) {
	q, ok := s.byARN(r.SourceArn)
	if !ok {
		return nil, noResource("SourceArn")
	}
	most, err := within("MaxResults", r.MaxResults, 1, 10, 1)
	if err != nil {
		return nil, err
	}
	newest := slices.Clone(q.tasks)
	slices.Reverse(newest)
	return map[string]any{"Results": newest[:min(most, len(newest))]}, nil
}

func noResource(parameter string) error {
	return wire.Errorf("ResourceNotFoundException", "The resource that you specified for the %s parameter doesn't exist.",
		parameter)
}
