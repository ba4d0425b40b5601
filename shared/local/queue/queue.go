package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// dedupWindow is how long a FIFO queue remembers a deduplication id
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html).
const dedupWindow = 5 * time.Minute

// maxInFlight is how many messages of one queue may be received and not yet deleted
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html).
const maxInFlight = 120_000

// sighting is the message that a deduplication id last made.
type sighting struct {
	at           time.Time
	id, sequence string
}

type queue struct {
	name              string
	fifo              bool
	set               settings
	created, modified time.Time
	purged            time.Time
	oldest            time.Time  // no message was sent before it; zero: there was none since it was last found
	messages          []*message // in the order of arrival; some gone
	gone              int
	byID              map[string]*message
	seen              map[string]sighting // FIFO only
	prune             int                 // how many of them may gather before old ones are forgotten
	serial            int64
	tasks             []moveTask // from this dead-letter queue, oldest first
	changed           chan struct{}
}

// notify wakes every long poll: something may have become visible.
func (q *queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) nextSequence() string {
	q.serial++
	return fmt.Sprintf("188%017d", q.serial)
}

func (q *queue) add(m *message) {
	q.messages = append(q.messages, m)
	q.byID[m.id] = m
	if q.oldest.IsZero() || m.sent.Before(q.oldest) {
		q.oldest = m.sent
	}
	q.notify()
}

// remove forgets m. The slice is compacted when half of it is gone, so that removal costs little.
func (q *queue) remove(m *message) {
	m.gone = true
	delete(q.byID, m.id)
	if q.gone++; q.gone > 64 && q.gone > len(q.messages)/2 {
		q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.gone })
		q.gone = 0
	}
}

// expire removes messages older than the retention period.
func (q *queue) expire(now time.Time) {
	horizon := now.Add(-q.set.seconds("MessageRetentionPeriod"))
	if q.oldest.IsZero() || !q.oldest.Before(horizon) {
		return
	}
	kept := q.messages
	q.messages, q.oldest, q.gone = nil, time.Time{}, 0
	for _, m := range kept {
		switch {
		case m.gone:
		case m.sent.Before(horizon):
			m.gone = true
			delete(q.byID, m.id)
		default:
			q.add(m)
		}
	}
}

// remember returns the message that dedup made within the window, or false after noting m as that message.
func (q *queue) remember(dedup string, m *message, now time.Time) (sighting, bool) {
	if first, ok := q.seen[dedup]; ok && now.Sub(first.at) < dedupWindow {
		return first, true
	}
	if len(q.seen) > q.prune {
		maps.DeleteFunc(q.seen, func(_ string, s sighting) bool { return now.Sub(s.at) >= dedupWindow })
		q.prune = 2*len(q.seen) + 1000
	}
	m.sequence = q.nextSequence()
	q.seen[dedup] = sighting{at: now, id: m.id, sequence: m.sequence}
	return q.seen[dedup], false
}

// ready returns at most n messages that may be received now, oldest first. A message that is not visible, in flight or
// delayed, holds back the rest of its group in a FIFO queue
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html).
func (q *queue) ready(now time.Time, n int) []*message {
	var out []*message
	blocked := map[string]bool{}
	for _, m := range q.messages {
		switch {
		case len(out) == n:
			return out
		case m.gone:
		case m.visible.After(now):
			blocked[m.group] = q.fifo
		case !blocked[m.group]:
			out = append(out, m)
		}
	}
	return out
}

// nextVisible returns when the next message that is hidden now becomes visible.
func (q *queue) nextVisible(now time.Time) (time.Time, bool) {
	var next time.Time
	for _, m := range q.messages {
		if !m.gone && m.visible.After(now) && (next.IsZero() || m.visible.Before(next)) {
			next = m.visible
		}
	}
	return next, !next.IsZero()
}
