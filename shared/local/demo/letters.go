package demo

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"abacus/shared/envelope"
	"abacus/shared/local"
)

// letter is a record that ended in a queue for bad ones.
type letter struct {
	queue   string // resource of the template
	payload []byte
	reason  string
}

// collect takes everything out of the two queues where bad records end: messages as they were sent from the queue's own
// dead-letter queue, and parked Kinesis records from the park queue.
func collect(ctx context.Context, s *local.Suite) ([]letter, error) {
	var letters []letter
	for _, queue := range []string{"DeadLetterQueue", "ParkQueue"} {
		bodies, err := receiveAll(ctx, s, s.Name(queue))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", queue, err)
		}
		for _, body := range bodies {
			l := letter{queue: queue, payload: body, reason: "received more often than the queue's redrive policy allows"}
			if queue == "ParkQueue" {
				parked, err := envelope.ParseParked(body)
				if err != nil {
					return nil, fmt.Errorf("read %s: a message that is no parked record: %w:\n%s", queue, err, body)
				}
				l.payload, l.reason = parked.Payload, parked.Reason
			}
			letters = append(letters, l)
		}
	}
	return letters, nil
}

func receiveAll(ctx context.Context, s *local.Suite, url string) ([][]byte, error) {
	var bodies [][]byte
	for {
		var batch struct {
			Messages []struct{ Body, ReceiptHandle string }
		}
		err := s.Call(ctx, "AmazonSQS.ReceiveMessage", map[string]any{"QueueUrl": url, "MaxNumberOfMessages": 10}, &batch)
		if err != nil {
			return nil, err
		}
		if len(batch.Messages) == 0 {
			return bodies, nil
		}
		for _, m := range batch.Messages {
			bodies = append(bodies, []byte(m.Body))
			in := map[string]any{"QueueUrl": url, "ReceiptHandle": m.ReceiptHandle}
			if err := s.Call(ctx, "AmazonSQS.DeleteMessage", in, nil); err != nil {
				return nil, err
			}
		}
	}
}

// match pairs letters with the records that had to end as such, byte by byte. It returns the records that did not, and
// the letters that nobody expected.
func match(refused []record, letters []letter) (missing []record, strange []letter) {
	strange = slices.Clone(letters)
	for _, r := range refused {
		i := slices.IndexFunc(strange, func(l letter) bool { return bytes.Equal(l.payload, r.payload) })
		if i < 0 {
			missing = append(missing, r)
			continue
		}
		strange = slices.Delete(strange, i, i+1)
	}
	return missing, strange
}
