package queue

import (
	"context"
	"errors"

	"abacus/shared/local/wire"
)

// maxBatchBytes bounds the messages of one SendMessageBatch together
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html).
const maxBatchBytes = 1 << 20

type failedEntry struct {
	Id          string
	Code        string
	Message     string `json:",omitempty"`
	SenderFault bool
}

// batchAnswer answers a batch operation: status 200, whatever became of the single entries.
type batchAnswer struct {
	Successful []any         `json:",omitempty"`
	Failed     []failedEntry `json:",omitempty"`
}

type idOnly struct{ Id string }

// batch checks the ids of a batch, then applies it entry by entry.
func batch[E any](s *Server, operation string, q *queue, entries []E, about func(E) (id, message string),
	apply func(E) (any, error)) (any, error) {
	ids := map[string]bool{}
	for _, e := range entries {
		id, _ := about(e)
		if !entryID.MatchString(id) {
			return nil, wire.Errorf("InvalidBatchEntryId",
				"A batch entry id must be 1 to 80 letters, digits, hyphens and underscores.")
		}
		if ids[id] {
			return nil, wire.Errorf("BatchEntryIdsNotDistinct", "Id %s repeated.", id)
		}
		ids[id] = true
	}
	switch {
	case len(entries) == 0:
		return nil, wire.Errorf("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(entries) > 10:
		return nil, wire.Errorf("TooManyEntriesInBatchRequest",
			"Maximum number of entries per request are 10. You have sent %d.", len(entries))
	}
	var answer batchAnswer
	for _, e := range entries {
		id, message := about(e)
		var injected *Failure
		if s.config.FailEntry != nil {
			injected = s.config.FailEntry(Entry{Operation: operation, Queue: q.name, ID: id, Message: message})
		}
		if injected != nil && !injected.Applied {
			answer.Failed = append(answer.Failed, failedEntry{id, injected.Code, "injected", injected.SenderFault})
			continue
		}
		out, err := apply(e)
		var refusal *wire.Error
		switch {
		case errors.As(err, &refusal):
			answer.Failed = append(answer.Failed, failedEntry{id, refusal.Code, refusal.Message, true})
		case err != nil:
			return nil, err
		case injected != nil:
			answer.Failed = append(answer.Failed, failedEntry{id, injected.Code, "injected", injected.SenderFault})
		default:
			answer.Successful = append(answer.Successful, out)
		}
	}
	return answer, nil
}

func (s *Server) sendMessageBatch(_ context.Context, r struct {
	QueueUrl string
	Entries  []sendEntry
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, e := range r.Entries {
		extra, _ := checkAttributes(e.MessageAttributes)
		total += len(e.MessageBody) + extra
	}
	if total > maxBatchBytes {
		return nil, wire.Errorf("BatchRequestTooLong",
			"Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxBatchBytes, total)
	}
	return batch(s, "SendMessageBatch", q, r.Entries, func(e sendEntry) (string, string) { return e.Id, "" },
		func(e sendEntry) (any, error) { return s.send(q, e) })
}

// receiptEntry is one entry of a batch over received messages.
type receiptEntry struct {
	Id                string
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (e receiptEntry) about(q *queue) (id, message string) {
	message, _, _ = q.parseReceipt(e.ReceiptHandle)
	return e.Id, message
}

func (s *Server) deleteMessageBatch(_ context.Context, r struct {
	QueueUrl string
	Entries  []struct{ Id, ReceiptHandle string }
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	entries := make([]receiptEntry, len(r.Entries))
	for i, e := range r.Entries {
		entries[i] = receiptEntry{Id: e.Id, ReceiptHandle: e.ReceiptHandle}
	}
	return batch(s, "DeleteMessageBatch", q, entries, func(e receiptEntry) (string, string) { return e.about(q) },
		func(e receiptEntry) (any, error) { return idOnly{e.Id}, q.delete(e.ReceiptHandle, s.config.Now()) })
}

func (s *Server) changeVisibilityBatch(_ context.Context, r struct {
	QueueUrl string
	Entries  []receiptEntry
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	about := func(e receiptEntry) (string, string) { return e.about(q) }
	return batch(s, "ChangeMessageVisibilityBatch", q, r.Entries, about,
		func(e receiptEntry) (any, error) {
			return idOnly{e.Id}, q.hide(e.ReceiptHandle, e.VisibilityTimeout, s.config.Now())
		})
}
