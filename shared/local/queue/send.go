package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"abacus/shared/local/wire"
)

// sendEntry is one message as a client sends it.
type sendEntry struct {
	Id                      string // of a batch entry
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]attribute
	MessageSystemAttributes map[string]attribute
	MessageDeduplicationId  string
	MessageGroupId          string
}

type sent struct {
	Id                           string `json:",omitempty"`
	MessageId                    string
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	SequenceNumber               string `json:",omitempty"`
}

func (s *Server) sendMessage(_ context.Context, r struct {
	QueueUrl                string
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]attribute
	MessageSystemAttributes map[string]attribute
	MessageDeduplicationId  string
	MessageGroupId          string
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	return s.send(q, sendEntry{"", r.MessageBody, r.DelaySeconds, r.MessageAttributes, r.MessageSystemAttributes,
		r.MessageDeduplicationId, r.MessageGroupId})
}

// send checks one message and puts it into q, unless q is FIFO and has seen its deduplication id in the last five
// minutes: then it answers as it did the first time.
func (s *Server) send(q *queue, e sendEntry) (sent, error) {
	if err := s.check(q, e); err != nil {
		return sent{}, err
	}
	now := s.config.Now()
	m := &message{id: newID(), body: e.MessageBody, attributes: e.MessageAttributes, group: e.MessageGroupId,
		dedup: e.MessageDeduplicationId, sent: now.Truncate(time.Millisecond)}
	if header, ok := e.MessageSystemAttributes["AWSTraceHeader"]; ok {
		m.trace = *header.StringValue
	}
	delay := q.set.seconds("DelaySeconds")
	if e.DelaySeconds != nil {
		delay = time.Duration(*e.DelaySeconds) * time.Second
	}
	m.visible = now.Add(delay)
	out := sent{Id: e.Id, MD5OfMessageBody: hexMD5([]byte(e.MessageBody)),
		MD5OfMessageAttributes: digest(e.MessageAttributes), MD5OfMessageSystemAttributes: digest(e.MessageSystemAttributes)}
	if !q.fifo {
		q.add(m)
		out.MessageId = m.id
		return out, nil
	}
	if m.dedup == "" {
		sum := sha256.Sum256([]byte(e.MessageBody))
		m.dedup = hex.EncodeToString(sum[:])
	}
	key := m.dedup
	if q.set.word("DeduplicationScope") == "messageGroup" {
		key = m.group + "\x00" + m.dedup
	}
	first, again := q.remember(key, m, now)
	if !again {
		q.add(m)
	}
	out.MessageId, out.SequenceNumber = first.id, first.sequence
	return out, nil
}

// check holds one message against the rules of its queue.
func (s *Server) check(q *queue, e sendEntry) error {
	if e.MessageBody == "" {
		return wire.Errorf("MissingParameter", "The request must contain the parameter MessageBody.")
	}
	if err := checkText(e.MessageBody); err != nil {
		return err
	}
	extra, err := checkAttributes(e.MessageAttributes)
	if err != nil {
		return err
	}
	for name, a := range e.MessageSystemAttributes {
		if name != "AWSTraceHeader" || a.DataType != "String" || a.StringValue == nil {
			return bad("Message system attribute %s is invalid: only AWSTraceHeader of type String can be sent.", name)
		}
	}
	most := q.set.number("MaximumMessageSize")
	switch size := len(e.MessageBody) + extra; {
	case size > most:
		return bad("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most)
	case e.DelaySeconds != nil && (*e.DelaySeconds < 0 || *e.DelaySeconds > 900):
		return bad("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.",
			*e.DelaySeconds)
	case q.fifo && e.DelaySeconds != nil:
		return bad("Value %d for parameter DelaySeconds is invalid. Reason: a FIFO queue delays as a whole; leave it out.",
			*e.DelaySeconds)
	case q.fifo && e.MessageGroupId == "":
		return wire.Errorf("MissingParameter", "The request must contain the parameter MessageGroupId.")
	case q.fifo && e.MessageDeduplicationId == "" && !q.set.is("ContentBasedDeduplication"):
		return bad("The queue should either have ContentBasedDeduplication enabled " +
			"or MessageDeduplicationId provided explicitly")
	case !q.fifo && e.MessageDeduplicationId != "":
		return bad("MessageDeduplicationId is not valid for a standard queue; leave it out")
	case !token(e.MessageGroupId) || !token(e.MessageDeduplicationId):
		return bad("MessageGroupId and MessageDeduplicationId may have 128 letters, digits and punctuation marks")
	}
	return nil
}

// token reports whether text may be a group or deduplication id: at most 128 printable ASCII characters, no space.
func token(text string) bool {
	for _, r := range text {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return len(text) <= 128
}
