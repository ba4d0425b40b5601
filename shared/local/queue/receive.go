package queue

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"abacus/shared/local/wire"
)

// senderID is who sent every message, as far as the stand-in knows.
const senderID = "AIDALOCALSTANDIN00000"

var systemAttributes = []string{"All", "AWSTraceHeader", "ApproximateFirstReceiveTimestamp",
	"ApproximateReceiveCount",
	"DeadLetterQueueSourceArn", "MessageDeduplicationId", "MessageGroupId", "SenderId", "SentTimestamp", "SequenceNumber"}

type receiveRequest struct {
	QueueUrl                    string
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
}

type received struct {
	MessageId              string
	ReceiptHandle          string
	Body                   string
	MD5OfBody              string
	MD5OfMessageAttributes string               `json:",omitempty"`
	Attributes             map[string]string    `json:",omitempty"`
	MessageAttributes      map[string]attribute `json:",omitempty"`
}

func within(what string, n *int, least, most, usual int) (int, error) {
	if n == nil {
		return usual, nil
	}
	if *n < least || *n > most {
		return 0, bad("Value %d for parameter %s is invalid. Reason: Must be between %d and %d, if provided.",
			*n, what, least, most)
	}
	return *n, nil
}

// receiveMessage takes what is visible. If that is nothing it waits, without the server's lock, until something arrives
// or becomes visible again, the wait time ends, or the client leaves.
func (s *Server) receiveMessage(ctx context.Context, body []byte) (any, error) {
	var r receiveRequest
	if err := decode(body, &r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	start := s.config.Now()
	for {
		q, err := s.find(r.QueueUrl) // it may have been deleted, or changed, while we waited
		if err != nil {
			return nil, err
		}
		n, hide, wait, err := r.limits(q)
		if err != nil {
			return nil, err
		}
		now := s.config.Now()
		taken, err := s.take(q, now, n, hide)
		left := wait - now.Sub(start)
		if err != nil || len(taken) > 0 || left <= 0 {
			return map[string]any{"Messages": r.shapes(q, taken)}, err
		}
		if next, hidden := q.nextVisible(now); hidden {
			left = min(left, next.Sub(now))
		}
		changed := q.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-s.config.After(left):
		case <-callerOf(ctx).gone:
		}
		s.mu.Lock()
		select {
		case <-callerOf(ctx).gone: // a message handed to a client that has left would be hidden for nothing
			return nil, wire.Errorf("RequestAborted", "the client has left")
		default:
		}
	}
}

func (r receiveRequest) limits(q *queue) (n int, hide, wait time.Duration, err error) {
	n, err = within("MaxNumberOfMessages", r.MaxNumberOfMessages, 1, 10, 1)
	if err != nil {
		return 0, 0, 0, err
	}
	seconds, err := within("VisibilityTimeout", r.VisibilityTimeout, 0, 43_200, q.set.number("VisibilityTimeout"))
	if err != nil {
		return 0, 0, 0, err
	}
	waits, err := within("WaitTimeSeconds", r.WaitTimeSeconds, 0, 20, q.set.number("ReceiveMessageWaitTimeSeconds"))
	if err != nil {
		return 0, 0, 0, err
	}
	for _, name := range slices.Concat(r.AttributeNames, r.MessageSystemAttributeNames) {
		if !slices.Contains(systemAttributes, name) {
			return 0, 0, 0, wire.Errorf("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return n, time.Duration(seconds) * time.Second, time.Duration(waits) * time.Second, nil
}

// take receives up to n visible messages, and moves those that have been received too often to the dead-letter queue.
func (s *Server) take(q *queue, now time.Time, n int, hide time.Duration) ([]*message, error) {
	q.expire(now)
	if len(q.messages) >= maxInFlight {
		out := 0
		for _, m := range q.messages {
			if !m.gone && m.inFlight(now) {
				out++
			}
		}
		if n = min(n, maxInFlight-out); n <= 0 {
			return nil, wire.Errorf("OverLimit", "Too many messages in flight; delete some first")
		}
	}
	for {
		ready := q.ready(now, n)
		if s.bury(q, ready, now) {
			continue // what was behind them may be ready now
		}
		for _, m := range ready {
			if m.first.IsZero() {
				m.first = now
			}
			m.received++
			m.handles++
			m.taken, m.visible, m.out = now, now.Add(hide), true
		}
		return ready, nil
	}
}

func (r receiveRequest) shapes(q *queue, taken []*message) []received {
	out := make([]received, len(taken))
	for i, m := range taken {
		shown := map[string]attribute{}
		for name, a := range m.attributes {
			if slices.ContainsFunc(r.MessageAttributeNames, func(want string) bool { return matches(want, name) }) {
				shown[name] = a
			}
		}
		out[i] = received{MessageId: m.id, ReceiptHandle: m.receipt(q.name),
			Body: m.body, MD5OfBody: hexMD5([]byte(m.body)), Attributes: r.system(m),
			MessageAttributes: shown, MD5OfMessageAttributes: digest(shown)}
	}
	return out
}

// matches reports whether an entry of MessageAttributeNames asks for name: itself, "All", or a prefix before ".*".
func matches(want, name string) bool {
	prefix, wild := strings.CutSuffix(want, ".*")
	return want == "All" || want == name || (wild && (prefix == "" || strings.HasPrefix(name, prefix+".")))
}

func (r receiveRequest) system(m *message) map[string]string {
	all := map[string]string{
		"SenderId":                         senderID,
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.received),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
		"AWSTraceHeader":                   m.trace, "DeadLetterQueueSourceArn": m.source, "MessageGroupId": m.group,
		"MessageDeduplicationId": m.dedup, "SequenceNumber": m.sequence,
	}
	shown := map[string]string{}
	wanted := slices.Concat(r.AttributeNames, r.MessageSystemAttributeNames)
	for name, value := range all {
		if value != "" && (slices.Contains(wanted, name) || slices.Contains(wanted, "All")) {
			shown[name] = value
		}
	}
	return shown
}
