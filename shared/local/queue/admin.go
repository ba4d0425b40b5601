package queue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"abacus/shared/local/wire"
)

func (s *Server) url(ctx context.Context, name string) string {
	return callerOf(ctx).base + "/" + s.config.Account + "/" + name
}

// createQueue returns the queue of that name if it has the attributes asked for.
func (s *Server) createQueue(ctx context.Context, r struct {
	QueueName  string
	Attributes map[string]string
}) (any, error) {
	fifo := strings.HasSuffix(r.QueueName, ".fifo")
	if !queueName.MatchString(r.QueueName) || fifo != (r.Attributes["FifoQueue"] == "true") {
		return nil, bad("QueueName must be 1 to 80 letters, digits, hyphens and underscores, " +
			"and end in .fifo if and only if FifoQueue is true")
	}
	set, err := s.configure(r.QueueName, settings{}, r.Attributes)
	if err != nil {
		return nil, err
	}
	now := s.config.Now()
	q, exists := s.queues[r.QueueName]
	if !exists {
		q = &queue{name: r.QueueName, fifo: fifo, set: set, created: now, modified: now, byID: map[string]*message{},
			seen: map[string]sighting{}, changed: make(chan struct{})}
		s.queues[r.QueueName] = q
	}
	for name, value := range set {
		if q.set[name] != value {
			return nil, wire.Errorf("QueueNameExists",
				"A queue already exists with the same name and a different value for attribute %s", name)
		}
	}
	return map[string]any{"QueueUrl": s.url(ctx, r.QueueName)}, nil
}

type queueRequest struct{ QueueUrl string }

func (s *Server) deleteQueue(_ context.Context, r queueRequest) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	delete(s.queues, q.name)
	q.notify()
	return struct{}{}, nil
}

// purgeQueue empties a queue, in-flight messages too, at most once a minute.
func (s *Server) purgeQueue(_ context.Context, r queueRequest) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	now := s.config.Now()
	if !q.purged.IsZero() && now.Sub(q.purged) < time.Minute {
		return nil, wire.Errorf("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.",
			q.name)
	}
	q.purged, q.messages, q.gone = now, nil, 0
	clear(q.byID)
	return struct{}{}, nil
}

func (s *Server) getURL(ctx context.Context, r struct {
	QueueName              string
	QueueOwnerAWSAccountId string
}) (any, error) {
	_, ok := s.queues[r.QueueName]
	if !ok || (r.QueueOwnerAWSAccountId != "" && r.QueueOwnerAWSAccountId != s.config.Account) {
		return nil, wire.Errorf("QueueDoesNotExist", "The specified queue does not exist.")
	}
	return map[string]any{"QueueUrl": s.url(ctx, r.QueueName)}, nil
}

func (s *Server) listQueues(ctx context.Context, r struct {
	QueueNamePrefix string
	MaxResults      int
	NextToken       string
}) (any, error) {
	return s.page(ctx, "QueueUrls", r.MaxResults, r.NextToken, func(q *queue) bool {
		return strings.HasPrefix(q.name, r.QueueNamePrefix)
	})
}

func (s *Server) listSources(ctx context.Context, r struct {
	QueueUrl   string
	MaxResults int
	NextToken  string
}) (any, error) {
	dead, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	return s.page(ctx, "queueUrls", r.MaxResults, r.NextToken, func(q *queue) bool {
		policy, ok := q.set.redrive()
		return ok && policy.target == s.ARN(dead.name)
	})
}

// page lists queue URLs by name. A next token, which is the last name shown, is given only to callers that set a
// maximum (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListQueues.html).
func (s *Server) page(ctx context.Context, member string, most int, after string, match func(*queue) bool) (any,
	error) {
	if most < 0 || most > 1000 {
		return nil, bad("MaxResults must be between 1 and 1000")
	}
	urls, last := []string{}, ""
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if name <= after || !match(s.queues[name]) {
			continue
		}
		if most > 0 && len(urls) == most {
			return map[string]any{member: urls, "NextToken": last}, nil
		}
		if len(urls) < 1000 {
			urls, last = append(urls, s.url(ctx, name)), name
		}
	}
	return map[string]any{member: urls}, nil
}
