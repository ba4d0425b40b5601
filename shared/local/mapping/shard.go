package mapping

import (
	"context"
	"crypto/md5"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// position is where a shard is read from.
type position struct {
	kind   types.ShardIteratorType
	number string
	at     time.Time
}

// record is one record between its read and its end.
type record struct {
	number   string
	arrived  time.Time
	text     []byte // as the event carries it
	done     bool
	repeated bool // by chaos
	tries    int  // invocations that held it
}

// shard reads one shard, in order, and hands its records to its lanes.
type shard struct {
	k       *Kinesis
	id      string
	parents []string
	at      position
	lanes   []*lane

	// Under k.watch.
	started, done bool
	empty         int64 // generation of the latest read that found the shard drained

	mu          sync.Mutex
	outstanding []*record // read, in order; the first is not done
	checkpoint  string
}

// run reads the shard to its end and returns true, or returns false when ctx ends first.
func (d *shard) run(ctx, work context.Context) bool {
	var lanes sync.WaitGroup
	defer lanes.Wait()
	for range d.k.c.ParallelizationFactor {
		l := &lane{d: d, in: make(chan []*record, 1)}
		d.lanes = append(d.lanes, l)
		lanes.Go(func() { l.run(ctx, work) })
	}
	ended := d.read(ctx)
	for _, l := range d.lanes {
		close(l.in)
	}
	lanes.Wait()
	return ended && ctx.Err() == nil
}

// read goes through the shard with iterators, and gets a new one after the last record read whenever one has expired.
func (d *shard) read(ctx context.Context) (ended bool) {
	iterator, failures := "", 0
	for ctx.Err() == nil {
		var out *kinesis.GetRecordsOutput
		generation := d.k.now()
		err := d.seek(ctx, &iterator)
		if err == nil {
			out, err = d.fetch(ctx, iterator)
		}
		if err != nil {
			if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
				d.k.trouble(err)
				return true // the shard has expired, or its stream is deleted: nothing is left to read
			}
			failures++
			d.recover(ctx, err, &iterator, failures)
			continue
		}
		failures = 0
		if !d.dispatch(ctx, out.Records) {
			return false
		}
		d.observe(out, generation)
		if out.NextShardIterator == nil {
			return true
		}
		iterator = *out.NextShardIterator
		if len(out.Records) == 0 && !d.k.c.Pace.sleep(ctx, d.k.c.Pace.PollInterval) {
			return false
		}
	}
	return false
}

// seek gets an iterator if there is none.
func (d *shard) seek(ctx context.Context, iterator *string) error {
	if *iterator != "" {
		return nil
	}
	in := &kinesis.GetShardIteratorInput{StreamARN: &d.k.c.Stream, ShardId: &d.id, ShardIteratorType: d.at.kind}
	if d.at.number != "" {
		in.StartingSequenceNumber = &d.at.number
	}
	if !d.at.at.IsZero() {
		in.Timestamp = &d.at.at
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	asked := d.k.c.Pace.Now()
	out, err := d.k.c.Client.GetShardIterator(call, in)
	if err != nil {
		return err
	}
	if d.at.kind == types.ShardIteratorTypeLatest {
		// Should this iterator expire before a record is read, LATEST would by then be later.
		d.at = position{kind: types.ShardIteratorTypeAtTimestamp, at: asked}
	}
	*iterator = aws.ToString(out.ShardIterator)
	return nil
}

func (d *shard) fetch(ctx context.Context, iterator string) (*kinesis.GetRecordsOutput, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	limit := int32(min(10_000, max(100, d.k.c.BatchSize*d.k.c.ParallelizationFactor)))
	return d.k.c.Client.GetRecords(call, &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: &limit})
}

// recover makes the next read possible. An iterator may be used again after any failure but its own: a lost reply costs
// nothing.
func (d *shard) recover(ctx context.Context, err error, iterator *string, failures int) {
	if ctx.Err() != nil {
		return
	}
	d.k.trouble(err)
	if _, expired := errors.AsType[*types.ExpiredIteratorException](err); expired {
		*iterator = ""
		return
	}
	if _, refused := errors.AsType[*types.InvalidArgumentException](err); refused && d.at.number != "" {
		// The number after which to go on may have been trimmed. What is left is better than nothing.
		*iterator, d.at = "", position{kind: types.ShardIteratorTypeTrimHorizon}
	}
	d.k.c.Pace.backoff(ctx, failures)
}

// dispatch gives each lane its records, and waits where a lane is behind.
func (d *shard) dispatch(ctx context.Context, records []types.Record) bool {
	parts := make([][]*record, len(d.lanes))
	for _, r := range records {
		one := &record{number: aws.ToString(r.SequenceNumber), arrived: aws.ToTime(r.ApproximateArrivalTimestamp),
			text: encodeKinesis(r, d.k.stream, d.id, d.k.c.Role)}
		sum := md5.Sum([]byte(aws.ToString(r.PartitionKey)))
		n := int(sum[15]) % len(d.lanes)
		parts[n] = append(parts[n], one)
		d.mu.Lock()
		d.outstanding = append(d.outstanding, one)
		d.mu.Unlock()
		d.at = position{kind: types.ShardIteratorTypeAfterSequenceNumber, number: one.number}
	}
	d.k.note(func(s *Stats) { s.Polled += int64(len(records)) })
	for n, part := range parts {
		if len(part) == 0 {
			continue
		}
		select {
		case d.lanes[n].in <- part:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// observe notes how far a read, begun in a generation, has found the shard to be.
func (d *shard) observe(out *kinesis.GetRecordsOutput, generation int64) {
	behind := time.Duration(aws.ToInt64(out.MillisBehindLatest)) * time.Millisecond
	d.mu.Lock()
	left := len(d.outstanding)
	d.mu.Unlock()
	// A shard at its end counts as done instead, when its children are known.
	if len(out.Records) == 0 && behind == 0 && left == 0 && out.NextShardIterator != nil {
		d.k.watch.Lock()
		d.empty = generation
		d.k.watch.Unlock()
	}
	d.k.note(func(s *Stats) {
		at := s.Shards[d.id]
		at.Behind, at.Outstanding = behind, left
		s.Shards[d.id] = at
	})
}

// settle marks records as done with. The checkpoint is the last record before which, itself included, none is left.
func (d *shard) settle(records []*record) {
	d.mu.Lock()
	for _, r := range records {
		r.done = true
	}
	n := 0
	for n < len(d.outstanding) && d.outstanding[n].done {
		d.checkpoint = d.outstanding[n].number
		n++
	}
	d.outstanding = d.outstanding[n:]
	left, checkpoint := len(d.outstanding), d.checkpoint
	d.mu.Unlock()
	d.k.note(func(s *Stats) {
		at := s.Shards[d.id]
		at.Outstanding, at.Checkpoint = left, checkpoint
		s.Shards[d.id] = at
	})
}

// now returns the generation of Drained calls.
func (k *Kinesis) now() int64 {
	k.watch.Lock()
	defer k.watch.Unlock()
	return k.generation
}
