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
	times   int // that it was parked: a batch that comes again parks its bad records again, under the same identity
}

// collect takes everything out of the two queues where bad records end: messages as they were sent from the queue's own
// dead-letter queue, and parked Kinesis records from the park queue.
func collect(ctx context.Context, s *local.Suite) ([]letter, error) {
	var letters []letter
	given, err := receiveAll(ctx, s, s.Name("DeadLetterQueue"))
	if err != nil {
		return nil, fmt.Errorf("read the dead-letter queue: %w", err)
	}
	for _, body := range given {
		letters = append(letters, letter{"DeadLetterQueue", body, "reported failed on every one of its receives", 1})
	}
	documents, err := receiveAll(ctx, s, s.Name("ParkQueue"))
	if err != nil {
		return nil, fmt.Errorf("read the park queue: %w", err)
	}
	parked, err := readParked(documents)
	return append(letters, parked...), err
}

// readParked reads parked records, each identity once.
func readParked(documents [][]byte) ([]letter, error) {
	var letters []letter
	known := map[string]int{}
	for _, document := range documents {
		p, err := envelope.ParseParked(document)
		if err != nil {
			return nil, fmt.Errorf("the park queue holds a message that is no parked record: %w:\n%s", err, document)
		}
		at, again := known[p.Identity]
		if !again {
			at = len(letters)
			known[p.Identity] = at
			letters = append(letters, letter{queue: "ParkQueue", payload: p.Payload, reason: p.Reason})
		}
		letters[at].times++
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
