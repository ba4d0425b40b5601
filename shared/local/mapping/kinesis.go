package mapping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// KinesisConfig is an event source mapping of a stream, by the names of CreateEventSourceMapping
// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-parameters.html).
type KinesisConfig struct {
	Client   *kinesis.Client
	Stream   string // ARN
	Invoke   Invoke
	Function string // ARN, for failure notices; "": one made up
	Role     string // ARN, for invokeIdentityArn; "": one made up

	StartingPosition           string                             // TRIM_HORIZON, LATEST or AT_TIMESTAMP
	StartingPositionTimestamp  time.Time                          // with AT_TIMESTAMP
	BatchSize                  int                                // 1 to 10,000; 0: 100
	BatchingWindow             time.Duration                      // 0 to 300 s
	ParallelizationFactor      int                                // 1 to 10 lanes a shard, by partition key; 0: 1
	MaximumRetryAttempts       int                                // 0 to 10,000; -1: without end, which is AWS's default
	MaximumRecordAge           time.Duration                      // 60 s to 7 days; 0 or less: without end, AWS's default
	BisectBatchOnFunctionError bool                               //
	ReportBatchItemFailures    bool                               //
	OnFailure                  string                             // ARN of a standard queue; "": none
	Queues                     *sqs.Client                        // of OnFailure
	OnFailureObject            func(key string, doc []byte) error // in OnFailure's place: a destination of type S3

	// SplitStuck decides what AWS leaves open: with bisecting and partial responses, a batch whose very first record is
	// named as failed. false: it is retried whole, and given up whole. true: it is halved until the record stands alone.
	SplitStuck bool
	Pace       Pace
}

// Kinesis is a mapping of a stream.
type Kinesis struct {
	ledger
	c        KinesisConfig
	stream   arn
	id       string // of the mapping, as S3 keys carry it
	queueURL string // of OnFailure

	watch      sync.Mutex
	generation int64
	shards     map[string]*shard
}

// NewKinesis returns a mapping that has done nothing yet. Its error names everything that is wrong with the config.
func NewKinesis(c KinesisConfig) (*Kinesis, error) {
	stream, err := parseARN(c.Stream, "kinesis")
	faults := []error{err}
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	c.BatchSize, c.ParallelizationFactor = cmp.Or(c.BatchSize, 100), cmp.Or(c.ParallelizationFactor, 1)
	rule(c.Client != nil && c.Invoke != nil, "Client and Invoke must be set")
	rule(slices.Contains([]string{"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"}, c.StartingPosition),
		"StartingPosition %q must be TRIM_HORIZON, LATEST or AT_TIMESTAMP", c.StartingPosition)
	rule((c.StartingPosition == "AT_TIMESTAMP") != c.StartingPositionTimestamp.IsZero(),
		"StartingPositionTimestamp goes with AT_TIMESTAMP, and with it alone")
	rule(c.BatchSize >= 1 && c.BatchSize <= 10_000, "BatchSize %d must be 1 to 10000", c.BatchSize)
	rule(c.BatchingWindow >= 0 && c.BatchingWindow <= 300*time.Second, "BatchingWindow %v must be 0 to 300s",
		c.BatchingWindow)
	rule(c.ParallelizationFactor >= 1 && c.ParallelizationFactor <= 10,
		"ParallelizationFactor %d must be 1 to 10", c.ParallelizationFactor)
	rule(c.MaximumRetryAttempts >= -1 && c.MaximumRetryAttempts <= 10_000,
		"MaximumRetryAttempts %d must be -1 to 10000", c.MaximumRetryAttempts)
	rule(c.MaximumRecordAge <= 0 || (c.MaximumRecordAge >= time.Minute && c.MaximumRecordAge <= 7*24*time.Hour),
		"MaximumRecordAge %v must be 60s to 7 days, or 0 for none", c.MaximumRecordAge)
	rule(c.OnFailure == "" || (c.Queues != nil && c.OnFailureObject == nil),
		"OnFailure needs Queues, and no OnFailureObject")
	if c.OnFailure != "" {
		_, err := parseARN(c.OnFailure, "sqs")
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("event source mapping of a stream: %w", err)
	}
	c.Function = cmp.Or(c.Function, "arn:aws:lambda:"+stream.region+":"+stream.account+":function:local")
	c.Role = cmp.Or(c.Role, "arn:aws:iam::"+stream.account+":role/local")
	c.Pace = c.Pace.complete()
	k := &Kinesis{c: c, stream: stream, id: newID(), shards: map[string]*shard{}}
	k.stats.Shards = map[string]ShardStats{}
	return k, nil
}

// Run reads the stream until ctx ends: it invokes no more then, waits for the invocations under way, and returns nil.
// It returns an error at once where the stream or the destination does not exist. Call it once.
func (k *Kinesis) Run(ctx context.Context) error {
	if err := k.findDestination(ctx); err != nil {
		return err
	}
	work, done := k.c.Pace.working(ctx)
	defer done()
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	finished := make(chan *shard)
	for first := true; ; first = false {
		listed, err := k.list(ctx)
		if err != nil {
			return err
		}
		k.adopt(listed, first)
		for _, d := range k.startable() {
			readers.Go(func() {
				if d.run(ctx, work) {
					select {
					case finished <- d:
					case <-ctx.Done():
					}
				}
			})
		}
		select {
		case d := <-finished:
			// Its children are adopted before it counts as done: else the stream would look drained for a moment.
			listed, err := k.list(ctx)
			if err != nil {
				return err
			}
			k.adopt(listed, false)
			k.finish(d)
		case <-ctx.Done():
			return nil
		}
	}
}

// list returns the stream's shards. It retries until ctx ends, then returns none; an error says that there is no
// stream.
func (k *Kinesis) list(ctx context.Context) ([]types.Shard, error) {
	var out []types.Shard
	in := &kinesis.ListShardsInput{StreamARN: &k.c.Stream}
	for tries := 1; ctx.Err() == nil; {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		page, err := k.c.Client.ListShards(call, in)
		cancel()
		if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
			return nil, fmt.Errorf("list shards of %s: %w", k.c.Stream, err)
		}
		if err != nil {
			k.trouble(err)
			k.c.Pace.backoff(ctx, tries)
			tries++
			continue
		}
		out = append(out, page.Shards...)
		if page.NextToken == nil {
			return out, nil
		}
		in = &kinesis.ListShardsInput{NextToken: page.NextToken}
	}
	return nil, nil
}

// adopt makes shards of those that are new. The mapping's starting position is for those of the first list; what comes
// later came out of a split or merge of them and is read from its start. LATEST has no business with what is closed.
func (k *Kinesis) adopt(listed []types.Shard, first bool) {
	k.watch.Lock()
	defer k.watch.Unlock()
	for _, l := range listed {
		id := aws.ToString(l.ShardId)
		if k.shards[id] != nil {
			continue
		}
		at := position{kind: types.ShardIteratorTypeTrimHorizon}
		if first {
			at = position{kind: types.ShardIteratorType(k.c.StartingPosition), at: k.c.StartingPositionTimestamp}
		}
		d := &shard{k: k, id: id, at: at}
		for _, parent := range []*string{l.ParentShardId, l.AdjacentParentShardId} {
			if parent != nil {
				d.parents = append(d.parents, *parent)
			}
		}
		d.done = first && at.kind == types.ShardIteratorTypeLatest && l.SequenceNumberRange.EndingSequenceNumber != nil
		d.started = d.done
		k.shards[id] = d
	}
}

// startable returns the shards to be read from now on: those whose parents are read to their end, or not known
// (https://docs.aws.amazon.com/streams/latest/dev/kinesis-using-sdk-java-after-resharding.html).
func (k *Kinesis) startable() []*shard {
	k.watch.Lock()
	defer k.watch.Unlock()
	var out []*shard
	for _, d := range k.shards {
		waits := slices.ContainsFunc(d.parents, func(p string) bool { return k.shards[p] != nil && !k.shards[p].done })
		if !d.started && !waits {
			d.started = true
			out = append(out, d)
		}
	}
	return out
}

func (k *Kinesis) finish(d *shard) {
	k.watch.Lock()
	d.done = true
	k.watch.Unlock()
	k.note(func(s *Stats) {
		at := s.Shards[d.id]
		at.Done, at.Behind = true, 0
		s.Shards[d.id] = at
	})
}

// Drained waits until every shard has been read to its tip, by a read begun after this call, and no record is
// outstanding. It returns the error of ctx if that ends first.
func (k *Kinesis) Drained(ctx context.Context) error {
	k.watch.Lock()
	k.generation++
	wanted := k.generation
	k.watch.Unlock()
	for {
		changed := k.next()
		if k.drained(wanted) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (k *Kinesis) drained(wanted int64) bool {
	k.watch.Lock()
	defer k.watch.Unlock()
	for _, d := range k.shards {
		if !d.done && d.empty < wanted {
			return false
		}
	}
	return len(k.shards) > 0
}
