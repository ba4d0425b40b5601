package demo

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"abacus/shared/local"

	"golang.org/x/sync/errgroup"
)

// Limits of PutRecords and SendMessageBatch: entries, and bytes together with room for partition keys.
const (
	kinesisEntries, kinesisBytes = 500, 4 << 20
	sqsEntries, sqsBytes         = 10, 1 << 20
)

// publishers is how many batches are sent to a source at one time.
const publishers = 4

// parts cuts records into batches of at most so many entries and bytes, in order.
func parts(records []record, entries, bytes int) [][]record {
	var out [][]record
	for start := 0; start < len(records); {
		end, size := start, 0
		for end < len(records) && end-start < entries {
			if size += len(records[end].payload) + 64; size > bytes && end > start {
				break
			}
			end++
		}
		out = append(out, records[start:end])
		start = end
	}
	return out
}

// publish sends all traffic through both sources at once. It tells shown how many records are sent, from time to time.
func publish(ctx context.Context, s *local.Suite, t traffic, shown func(sent int)) error {
	var sent atomic.Int64
	var mu sync.Mutex
	sources, within := errgroup.WithContext(ctx)
	through := func(records []record, entries, bytes int, send func(context.Context, int, []record) error) {
		sources.Go(func() error {
			batches, within := errgroup.WithContext(within)
			batches.SetLimit(publishers)
			first := 0
			for _, part := range parts(records, entries, bytes) {
				from := first
				first += len(part)
				batches.Go(func() error {
					if err := send(within, from, part); err != nil {
						return err
					}
					n := sent.Add(int64(len(part)))
					mu.Lock()
					defer mu.Unlock()
					shown(int(n))
					return nil
				})
			}
			return batches.Wait()
		})
	}
	through(t.kinesis, kinesisEntries, kinesisBytes, func(ctx context.Context, from int, part []record) error {
		return putRecords(ctx, s, s.Name("Stream"), from, part)
	})
	through(t.sqs, sqsEntries, sqsBytes, func(ctx context.Context, _ int, part []record) error {
		return sendMessages(ctx, s, s.Name("Queue"), part)
	})
	return sources.Wait()
}

func putRecords(ctx context.Context, s *local.Suite, stream string, from int, part []record) error {
	type entry struct {
		Data         []byte
		PartitionKey string
	}
	entries := make([]entry, len(part))
	for i, r := range part {
		entries[i] = entry{r.payload, strconv.Itoa(from + i)}
	}
	var answer struct{ FailedRecordCount int }
	err := s.Call(ctx, "Kinesis_20131202.PutRecords", map[string]any{"StreamName": stream, "Records": entries}, &answer)
	if err == nil && answer.FailedRecordCount > 0 {
		err = fmt.Errorf("%d of %d records were refused", answer.FailedRecordCount, len(part))
	}
	if err != nil {
		return fmt.Errorf("publish to stream %s: %w", stream, err)
	}
	return nil
}

func sendMessages(ctx context.Context, s *local.Suite, url string, part []record) error {
	type entry struct{ Id, MessageBody string }
	entries := make([]entry, len(part))
	for i, r := range part {
		entries[i] = entry{strconv.Itoa(i), string(r.payload)}
	}
	var answer struct {
		Failed []struct{ Code, Message string }
	}
	err := s.Call(ctx, "AmazonSQS.SendMessageBatch", map[string]any{"QueueUrl": url, "Entries": entries}, &answer)
	if err == nil && len(answer.Failed) > 0 {
		err = fmt.Errorf("%d of %d messages were refused: %s %s",
			len(answer.Failed), len(part), answer.Failed[0].Code, answer.Failed[0].Message)
	}
	if err != nil {
		return fmt.Errorf("publish to queue %s: %w", url, err)
	}
	return nil
}
