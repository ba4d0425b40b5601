package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"abacus/shared/local/mapping"
)

// Status is how far the suite is with what it was sent.
type Status struct {
	Mappings map[string]mapping.Stats // by function and event, such as "Kinesis.Records"
	Queues   []Depth                  // in the order of their names
}

// Depth is what is in one queue.
type Depth struct {
	Queue                     string // resource of the template
	Visible, InFlight, Hidden int    // Hidden: sent with a delay that is not over
}

// Depth returns what is in a queue, given by its name in the template.
func (s *Suite) Depth(ctx context.Context, queue string) (Depth, error) {
	var answer struct{ Attributes map[string]string }
	in := map[string]any{"QueueUrl": s.Name(queue), "AttributeNames": []string{"All"}}
	if err := s.Call(ctx, "AmazonSQS.GetQueueAttributes", in, &answer); err != nil {
		return Depth{}, fmt.Errorf("depth of queue %s: %w", queue, err)
	}
	number := func(name string) int { n, _ := strconv.Atoi(answer.Attributes[name]); return n }
	return Depth{
		Queue: queue, Visible: number("ApproximateNumberOfMessages"),
		InFlight: number("ApproximateNumberOfMessagesNotVisible"), Hidden: number("ApproximateNumberOfMessagesDelayed"),
	}, nil
}

// VisibilityTimeout returns for how long a queue, given by its name in the template, hides a message that was received.
func (s *Suite) VisibilityTimeout(ctx context.Context, queue string) (time.Duration, error) {
	var answer struct{ Attributes map[string]string }
	in := map[string]any{"QueueUrl": s.Name(queue), "AttributeNames": []string{"VisibilityTimeout"}}
	if err := s.Call(ctx, "AmazonSQS.GetQueueAttributes", in, &answer); err != nil {
		return 0, fmt.Errorf("visibility timeout of queue %s: %w", queue, err)
	}
	seconds, err := strconv.Atoi(answer.Attributes["VisibilityTimeout"])
	return time.Duration(seconds) * time.Second, err
}

// Status returns how far the suite is.
func (s *Suite) Status(ctx context.Context) (Status, error) {
	status := Status{Mappings: map[string]mapping.Stats{}}
	for name, m := range s.mappings {
		status.Mappings[name] = m.Stats()
	}
	for _, queue := range s.queues {
		depth, err := s.Depth(ctx, queue)
		if err != nil {
			return status, err
		}
		status.Queues = append(status.Queues, depth)
	}
	return status, nil
}

// String names what is still to be done and what stood in its way, for people who wait for it.
func (s Status) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.Mappings)) {
		m := s.Mappings[name]
		part := fmt.Sprintf("%s has read %d and given %d to its function, %d of them in vain, %d invocations under way",
			name, m.Polled, m.Invoked, m.FailedInvoke, m.Running)
		for _, id := range slices.Sorted(maps.Keys(m.Shards)) {
			if shard := m.Shards[id]; shard.Outstanding > 0 || shard.Behind > 0 {
				part += fmt.Sprintf("; %s has %d records outstanding and is %v behind", id, shard.Outstanding, shard.Behind)
			}
		}
		if m.LastError != "" {
			part += "; its last trouble: " + m.LastError
		}
		parts = append(parts, part)
	}
	for _, q := range s.Queues {
		parts = append(parts, fmt.Sprintf("%s has %d messages visible, %d in flight, %d delayed",
			q.Queue, q.Visible, q.InFlight, q.Hidden))
	}
	return strings.Join(parts, "\n")
}
