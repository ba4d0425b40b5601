package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"abacus/shared/envelope"
)

// visibility is longer than any message stays hidden.
const visibility = 15 * time.Minute

// publish sends records to the stream and messages to the queue.
func (s *schedule) publish(ctx context.Context, stream, queue [][]byte) error {
	type record struct {
		Data         []byte
		PartitionKey string
	}
	var records []record
	for _, payload := range stream {
		records = append(records, record{payload, strconv.Itoa(s.rng.IntN(1000))})
	}
	if len(records) > 0 {
		in := map[string]any{"StreamName": s.suite.Name("Stream"), "Records": records}
		if err := s.suite.Call(ctx, "Kinesis_20131202.PutRecords", in, nil); err != nil {
			return err
		}
	}
	for len(queue) > 0 {
		n := min(10, len(queue))
		if err := s.send(ctx, queue[:n]); err != nil {
			return err
		}
		queue = queue[n:]
	}
	return nil
}

func (s *schedule) send(ctx context.Context, bodies [][]byte) error {
	type entry struct{ Id, MessageBody string }
	var entries []entry
	for i, body := range bodies {
		entries = append(entries, entry{strconv.Itoa(i), string(body)})
	}
	in := map[string]any{"QueueUrl": s.suite.Name("Queue"), "Entries": entries}
	return s.suite.Call(ctx, "AmazonSQS.SendMessageBatch", in, nil)
}

// split divides the first open shard in two.
func (s *schedule) split(ctx context.Context) error {
	var listed struct {
		Shards []struct {
			ShardId             string
			HashKeyRange        struct{ StartingHashKey, EndingHashKey string }
			SequenceNumberRange struct{ EndingSequenceNumber string }
		}
	}
	stream := map[string]any{"StreamName": s.suite.Name("Stream")}
	if err := s.suite.Call(ctx, "Kinesis_20131202.ListShards", stream, &listed); err != nil {
		return err
	}
	for _, shard := range listed.Shards {
		if shard.SequenceNumberRange.EndingSequenceNumber != "" {
			continue
		}
		s.tale.splits.Add(1)
		stream["ShardToSplit"] = shard.ShardId
		stream["NewStartingHashKey"] = middle(shard.HashKeyRange.StartingHashKey, shard.HashKeyRange.EndingHashKey)
		return s.suite.Call(ctx, "Kinesis_20131202.SplitShard", stream, nil)
	}
	return errors.New("the stream has no open shard")
}

// settle waits until both sources are drained, moving time on for hidden messages and good dead letters back to their
// queue, as an operator would.
func (s *schedule) settle(ctx context.Context) error {
	for {
		within, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
		err := s.suite.Drained(within)
		cancel()
		if err := errors.Join(s.suite.Err(), ctx.Err()); err != nil {
			status, _ := s.suite.Status(context.WithoutCancel(ctx))
			return fmt.Errorf("not drained: %w: %s", err, status.String())
		}
		moved, failed := s.redrive(ctx)
		if failed != nil {
			return failed
		}
		if err == nil && moved == 0 {
			return nil
		}
		s.suite.SkipQueues(visibility)
	}
}

// redrive moves the dead letters that can be counted back, each as a new message.
func (s *schedule) redrive(ctx context.Context) (moved int, err error) {
	bodies, err := s.take(ctx, "DeadLetterQueue", func(body string) bool { return !s.traffic.bad[body] })
	for i := range bodies {
		if err := s.send(ctx, [][]byte{[]byte(bodies[i])}); err != nil {
			return i, err
		}
	}
	s.tale.redriven.Add(int64(len(bodies)))
	return len(bodies), err
}

// take receives what is visible in a queue and deletes what is wanted; the rest shows again when time moves on.
func (s *schedule) take(ctx context.Context, queue string, wanted func(body string) bool) ([]string, error) {
	var bodies []string
	for {
		var batch struct {
			Messages []struct{ Body, ReceiptHandle string }
		}
		url := s.suite.Name(queue)
		in := map[string]any{"QueueUrl": url, "MaxNumberOfMessages": 10}
		if err := s.suite.Call(ctx, "AmazonSQS.ReceiveMessage", in, &batch); err != nil {
			return bodies, err
		}
		if len(batch.Messages) == 0 {
			return bodies, nil
		}
		for _, m := range batch.Messages {
			if !wanted(m.Body) {
				continue
			}
			bodies = append(bodies, m.Body)
			in := map[string]any{"QueueUrl": url, "ReceiptHandle": m.ReceiptHandle}
			if err := s.suite.Call(ctx, "AmazonSQS.DeleteMessage", in, nil); err != nil {
				return bodies, err
			}
		}
	}
}

// audit holds the end against the promise.
func (s *schedule) audit(ctx context.Context) error {
	counted, err := s.counts(ctx)
	if err != nil {
		return err
	}
	var faults []error
	if off := s.traffic.truth.differences(counted); off != "" {
		faults = append(faults, fmt.Errorf("counts are off: %s", off))
	}
	return errors.Join(append(faults, s.auditBad(ctx), s.auditClaims(ctx))...)
}

// auditBad finds every bad record in one of the queues for them, and nothing else there.
func (s *schedule) auditBad(ctx context.Context) error {
	s.suite.SkipQueues(visibility)
	all := func(string) bool { return true }
	dead, err := s.take(ctx, "DeadLetterQueue", all)
	if err != nil {
		return err
	}
	parked, err := s.take(ctx, "ParkQueue", all)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, document := range parked {
		p, err := envelope.ParseParked([]byte(document))
		if err != nil {
			return fmt.Errorf("the park queue holds what is no parked record: %.300s", document)
		}
		dead = append(dead, string(p.Payload))
	}
	for _, payload := range dead {
		if !s.traffic.bad[payload] {
			return fmt.Errorf("a record that can be counted was given up: %s", payload)
		}
		found[payload] = true
	}
	for payload := range s.traffic.bad {
		if !found[payload] {
			return fmt.Errorf("a bad record is nowhere: %s", payload)
		}
	}
	return nil
}

// item is a row as Scan returns it.
type item map[string]struct {
	S, N string
	SS   []string
}

func (s *schedule) scan(ctx context.Context, table string) ([]item, error) {
	var all []item
	in := map[string]any{"TableName": s.suite.Name(table), "ConsistentRead": true}
	for {
		var page struct {
			Items            []item
			LastEvaluatedKey json.RawMessage
		}
		if err := s.suite.Call(ctx, "DynamoDB_20120810.Scan", in, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if len(page.LastEvaluatedKey) == 0 || string(page.LastEvaluatedKey) == "null" {
			return all, nil
		}
		in["ExclusiveStartKey"] = page.LastEvaluatedKey
	}
}

// counts sums the rows of each key of the counter sales.
func (s *schedule) counts(ctx context.Context) (map[string]string, error) {
	rows, err := s.scan(ctx, "CountersTable")
	if err != nil {
		return nil, err
	}
	sums := map[string]int64{}
	for _, row := range rows {
		key, ok := strings.CutPrefix(row["pk"].S, "sales|")
		n, err := strconv.ParseInt(row["n"].N, 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("strange row %v", row)
		}
		sums[key] += n
	}
	counted := map[string]string{}
	for key, n := range sums {
		counted[key] = strconv.FormatInt(n, 10)
	}
	return counted, nil
}

// auditClaims finds no claim whose attempt is undecided but for those whose lease is over.
func (s *schedule) auditClaims(ctx context.Context) error {
	rows, err := s.scan(ctx, "DedupTable")
	if err != nil {
		return err
	}
	decided := map[string]bool{}
	for _, row := range rows {
		if token, ok := strings.CutPrefix(row["pk"].S, "commit|"); ok {
			decided[token] = true
		}
	}
	now := time.Now().UnixMilli()
	for _, row := range rows {
		lease, _ := strconv.ParseInt(row["lease"].N, 10, 64)
		if strings.HasPrefix(row["pk"].S, "claim|") && !decided[row["token"].S] && lease > now {
			return fmt.Errorf("%s is held by an attempt that nothing decides, until %d", row["pk"].S, lease)
		}
	}
	return nil
}
