package queue

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"abacus/shared/local/wire"
)

// maxHidden is how long a message may stay in flight from one receive on
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html).
const maxHidden = 12 * time.Hour

func (q *queue) parseReceipt(handle string) (id, serial string, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(handle)
	parts := strings.Split(string(raw), "/")
	if err != nil || len(parts) != 3 || parts[0] != q.name {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// held returns the message that handle names, nil if it is gone, and whether handle is the latest one for it.
func (q *queue) held(handle string) (m *message, latest bool, err error) {
	id, _, ok := q.parseReceipt(handle)
	if !ok {
		return nil, false, wire.Errorf("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	}
	m = q.byID[id]
	return m, m != nil && m.receipt(q.name) == handle, nil
}

func (s *Server) deleteMessage(_ context.Context, r struct {
	QueueUrl      string
	ReceiptHandle string
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	return struct{}{}, q.delete(r.ReceiptHandle, s.config.Now())
}

// delete removes the message of the latest handle. An older handle succeeds and deletes nothing; so does one whose
// message is gone. In a FIFO queue a handle ends with the visibility timeout
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html).
func (q *queue) delete(handle string, now time.Time) error {
	m, latest, err := q.held(handle)
	switch {
	case err != nil:
		return err
	case m == nil:
		return nil
	case q.fifo && (!latest || !m.inFlight(now)):
		return bad("Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", handle)
	case !latest:
		return nil
	}
	q.remove(m)
	q.notify() // the rest of a FIFO group is free now
	return nil
}

func (s *Server) changeVisibility(_ context.Context, r struct {
	QueueUrl          string
	ReceiptHandle     string
	VisibilityTimeout *int
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	return struct{}{}, q.hide(r.ReceiptHandle, r.VisibilityTimeout, s.config.Now())
}

// hide lets the visibility timeout of a message in flight end seconds from now; 0 ends it.
func (q *queue) hide(handle string, seconds *int, now time.Time) error {
	if seconds == nil || *seconds < 0 || *seconds > int(maxHidden/time.Second) {
		return bad("VisibilityTimeout must be given, between 0 and 43200")
	}
	m, latest, err := q.held(handle)
	until := now.Add(time.Duration(*seconds) * time.Second)
	switch {
	case err != nil:
		return err
	case m == nil || !latest:
		return bad("Value %s for parameter ReceiptHandle is invalid. Reason: "+
			"Message does not exist or is not available for visibility timeout change.", handle)
	case !m.inFlight(now):
		return wire.Errorf("MessageNotInflight", "The specified message isn't in flight.")
	case until.Sub(m.taken) > maxHidden:
		return bad("Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
	}
	m.visible = until
	q.notify()
	return nil
}
