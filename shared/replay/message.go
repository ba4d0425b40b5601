package replay

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Attributes of SQS that tell where a message is from
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html). A caller of
// ReceiveMessage must ask for them; Lambda gives them all.
const (
	attributeSource = "DeadLetterQueueSourceArn"
	attributeGroup  = "MessageGroupId"
	attributeSent   = "SentTimestamp"
)

// ErrEvent reports an invocation that is not a batch of a queue. Nothing of it may be acknowledged.
var ErrEvent = errors.New("not an event of a queue")

// Message is one message of a dead-letter queue, as Lambda's event or ReceiveMessage gives it.
type Message struct {
	ID         string
	Queue      string // ARN of the queue that it is in
	Body       string
	Attributes map[string]string // system attributes
}

// Messages reads the event of a function that a queue triggers
// (https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html). An error wraps ErrEvent.
func Messages(event []byte) ([]Message, error) {
	var e struct {
		Records []struct {
			ID         string            `json:"messageId"`
			Body       *string           `json:"body"`
			Attributes map[string]string `json:"attributes"`
			Source     string            `json:"eventSource"`
			Queue      string            `json:"eventSourceARN"`
		} `json:"Records"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, fmt.Errorf("decode event: %w: %w", ErrEvent, err)
	}
	if len(e.Records) == 0 {
		return nil, fmt.Errorf("decode event: %w: it has no records", ErrEvent)
	}
	var messages []Message
	for i, r := range e.Records {
		if r.Source != "aws:sqs" || r.Body == nil || !plain(r.ID, r.Queue) {
			return nil, fmt.Errorf("decode event: %w: record %d is no message of a queue", ErrEvent, i)
		}
		messages = append(messages, Message{ID: r.ID, Queue: r.Queue, Body: *r.Body, Attributes: r.Attributes})
	}
	return messages, nil
}
