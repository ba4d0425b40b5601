package replay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"abacus/shared/envelope"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
)

const (
	readEvery = time.Second      // a fifth of what a shard allows to its mapping and all other readers together
	pageSize  = 1000             // records a read, so that a page of 1 KiB records is half of a shard's second
	callTime  = 10 * time.Second // of one call
	endBefore = 3 * time.Second  // the last read begins this long before the deadline
	maxRounds = 2000             // calls of one Read
	maxTries  = 8                // calls in a row that fail
	maxStill  = 5                // empty pages in a row that come no nearer to the shard's tip
	firstWait = time.Second      // after a failed call; doubles
	maxWait   = 10 * time.Second // a 10 MB answer alone closes a shard for 5 s
)

// ErrUnfinished reports a range whose reading was given up for now: its deadline is near, or it takes very many calls.
var ErrUnfinished = errors.New("the range is not read to its end; read on from where it stopped")

// LostError reports a range of which retention, or the end of its stream, has taken records. What was left of it has
// been handed over.
type LostError struct {
	Range Range
	Of    int // records that the failed batch had
	Found int // records that are left in the range, of the batch or between them
}

// Lost is how many records of the batch are gone, at least: records that stand between them count as found.
func (e *LostError) Lost() int { return max(1, e.Of-e.Found) }

func (e *LostError) Error() string {
	return fmt.Sprintf("lost at least %d of %d records: %d are left of %s; the stream no longer has the others, so look "+
		"for them at their producer", e.Lost(), e.Of, e.Found, e.Range)
}

// Shards reads shards. *kinesis.Client is one; give it aws.NopRetryer, since the Reader waits and tries again itself.
type Shards interface {
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput, ...func(*kinesis.Options)) (
		*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error)
}

// Reader reads ranges of shards again, at most one call a second over all of them, so that the mapping that reads the
// same shard keeps most of its five reads a second
// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_GetRecords.html). It may be used by many goroutines.
type Reader struct {
	Shards Shards                                       // required
	Now    func() time.Time                             // nil: time.Now
	Sleep  func(context.Context, time.Duration) error   // nil: a timer
	Jitter func(d time.Duration) (within time.Duration) // nil: evenly from half of d to d

	mu   sync.Mutex
	next time.Time // of the next call
}

// Progress is how far a range has been read. Its zero value is the start.
type Progress struct {
	After envelope.SequenceNumber // the last record that was handed over
	Found int                     // records handed over
	Head  bool                    // the range's first record was among them
	Tail  bool                    // and its last
}

// Read hands the records of a range to use, page by page in their order, each page as a batch of its shard, and goes on
// once use returns nil. Records between those of the failed batch are handed over too.
//
// It returns nil when the whole range was used. A *LostError says that the whole of what is left was used, and that it
// is not all; ErrUnfinished, or an error of use or of Kinesis that is not cured by patience, that a later Read may go
// on from the Progress.
func (r *Reader) Read(ctx context.Context, of Range, from Progress, use func(*envelope.Batch) error) (Progress, error) {
	if err := of.check(); err != nil {
		return from, fmt.Errorf("read a range: %w", err)
	}
	s := &reading{Reader: r, of: of, Progress: from, use: use}
	for range maxRounds {
		if s.ended || s.Tail {
			return s.Progress, s.lost()
		}
		if end, ok := ctx.Deadline(); ok && end.Sub(r.now()) < endBefore {
			return s.Progress, fmt.Errorf("read %s: %w", of, ErrUnfinished)
		}
		if err := r.pace(ctx); err != nil {
			return s.Progress, fmt.Errorf("read %s: %w: %w", of, ErrUnfinished, err)
		}
		if err := s.cope(ctx, s.step(ctx)); err != nil {
			return s.Progress, fmt.Errorf("read %s: %w", of, err)
		}
	}
	return s.Progress, fmt.Errorf("read %s: %w", of, ErrUnfinished)
}

// reading is one Read.
type reading struct {
	*Reader
	of Range
	Progress
	use func(*envelope.Batch) error

	iterator *string // nil: to be got
	horizon  bool    // the start is trimmed, and Kinesis does not say what is left: read from the oldest record
	ended    bool    // nothing of the range is left to read
	tries    int     // calls that failed in a row
	still    int     // empty pages in a row that came no nearer
	behind   int64   // MillisBehindLatest of the last page
}

// useError is an error of the caller's, which is not Kinesis's.
type useError struct{ error }

func (e useError) Unwrap() error { return e.error }

// step makes one call: it gets an iterator, or a page.
func (s *reading) step(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if s.iterator == nil {
		return s.seek(call)
	}
	out, err := s.Shards.GetRecords(call, &kinesis.GetRecordsInput{ShardIterator: s.iterator, Limit: aws.Int32(pageSize),
		StreamARN: aws.String(streamOf(s.of.Stream))})
	if err != nil {
		return err
	}
	s.tries = 0
	if err := s.take(out.Records); err != nil {
		return useError{err}
	}
	s.iterator = out.NextShardIterator
	if s.iterator == nil { // the shard is closed, and this was its end
		s.ended = true
	}
	s.watch(len(out.Records), aws.ToInt64(out.MillisBehindLatest))
	return nil
}

// seek gets an iterator: at the range's start, or after the last record that was used, however often one expires.
func (s *reading) seek(ctx context.Context) error {
	in := kinesis.GetShardIteratorInput{StreamARN: aws.String(streamOf(s.of.Stream)), ShardId: &s.of.Shard}
	switch {
	case s.horizon:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	case s.After != "":
		in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		in.StartingSequenceNumber = aws.String(string(s.After))
	default:
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.StartingSequenceNumber = aws.String(string(s.of.First))
	}
	out, err := s.Shards.GetShardIterator(ctx, &in)
	if err == nil {
		s.tries, s.iterator = 0, out.ShardIterator
	}
	return err
}

// take hands over those records of a page that are of the range, compared as numbers, and not handed over yet. Only
// what use has taken moves the progress on.
func (s *reading) take(page []types.Record) error {
	b := envelope.Batch{Kind: envelope.Kinesis, Source: streamOf(s.of.Stream), Shard: s.of.Shard}
	p := s.Progress
	for _, r := range page {
		n := envelope.SequenceNumber(aws.ToString(r.SequenceNumber))
		if !n.Valid() {
			return errors.New("kinesis gave a record without a sequence number")
		}
		if n.Compare(s.of.Last) > 0 {
			s.ended = true
			break
		}
		if n.Compare(s.of.First) < 0 || p.After != "" && n.Compare(p.After) <= 0 {
			continue
		}
		b.Records = append(b.Records, envelope.Record{ID: string(n), Payload: r.Data,
			Identity: envelope.KinesisIdentity(b.Source, b.Shard, n), Arrived: aws.ToTime(r.ApproximateArrivalTimestamp)})
		p.After, p.Found = n, p.Found+1
		p.Head, p.Tail = p.Head || n.Compare(s.of.First) == 0, n.Compare(s.of.Last) == 0
	}
	if len(b.Records) > 0 {
		if err := s.use(&b); err != nil {
			s.ended = false
			return err
		}
	}
	s.Progress = p
	return nil
}

// watch tells a shard whose records lie far apart, of which empty pages come nearer to the tip, from a place where
// there is nothing to read: the tip itself, or a trimmed start from which Kinesis reads nothing for ever.
func (s *reading) watch(records int, behind int64) {
	if records > 0 || behind < s.behind {
		s.still = 0
	} else {
		s.still++
	}
	s.behind = behind
	if s.still < maxStill {
		return
	}
	s.still = 0
	if behind > 0 && !s.horizon {
		s.horizon, s.iterator = true, nil
		return
	}
	s.ended = true
}

// cope answers a step's error with nil where the next step may cure it.
func (s *reading) cope(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, callers := errors.AsType[useError](err); callers {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	s.tries++
	_, gone := errors.AsType[*types.ResourceNotFoundException](err)
	_, expired := errors.AsType[*types.ExpiredIteratorException](err)
	_, refused := errors.AsType[*types.InvalidArgumentException](err)
	switch {
	case gone: // a shard is forgotten once all that it held is trimmed
		s.ended = true
		return nil
	case s.tries >= maxTries:
		return fmt.Errorf("%d calls in a row failed: %w", s.tries, err)
	case expired:
		s.iterator = nil
		return nil
	case refused && s.iterator == nil && !s.horizon: // a trimmed number, as some have seen it
		s.horizon = true
		return nil
	case permanent(err):
		return err
	}
	if err := s.sleep(ctx, s.jitter(min(firstWait<<(s.tries-1), maxWait))); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return nil
}

// permanent reports whether an error of Kinesis repeats until somebody mends something.
func permanent(err error) bool {
	if _, throttled := errors.AsType[*types.ProvisionedThroughputExceededException](err); throttled {
		return false
	}
	if _, throttled := errors.AsType[*types.KMSThrottlingException](err); throttled {
		return false
	}
	service, ok := errors.AsType[smithy.APIError](err)
	return ok && service.ErrorFault() == smithy.FaultClient
}

func (s *reading) lost() error {
	if s.Head && s.Tail && s.Found >= s.of.Size {
		return nil
	}
	return &LostError{Range: s.of, Of: s.of.Size, Found: s.Found}
}

// pace waits for this Reader's next turn.
func (r *Reader) pace(ctx context.Context) error {
	r.mu.Lock()
	now := r.now()
	turn := r.next
	if turn.Before(now) {
		turn = now
	}
	r.next = turn.Add(r.jitter(2 * readEvery * 2 / 3)) // from two thirds to four thirds of readEvery
	r.mu.Unlock()
	return r.sleep(ctx, turn.Sub(now))
}

func (r *Reader) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

func (r *Reader) jitter(d time.Duration) time.Duration {
	if r.Jitter == nil {
		return d/2 + rand.N(d/2+1)
	}
	return r.Jitter(d)
}

func (r *Reader) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
