package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/local/loopback"
	"abacus/shared/local/stream"
	"abacus/shared/local/wire"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// shard is a stream of one shard behind the real SDK, under a fake clock: its tests run in a bubble.
type shard struct {
	*kinesis.Client
	server  *stream.Server
	numbers []string

	mu    sync.Mutex
	calls []string                // GetRecords, or the type of iterator that was asked for
	fault func(string) wire.Fault // by the same names
}

func newShard(t *testing.T, config stream.Config) *shard {
	t.Helper()
	s := new(shard)
	config.Fault = func(call wire.Call) wire.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		name := call.Name
		for _, kind := range []string{"AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "TRIM_HORIZON"} {
			if strings.Contains(string(call.Body), `"`+kind+`"`) {
				name = kind
			}
		}
		if name == "PutRecord" || name == "CreateStream" {
			return wire.Fault{}
		}
		s.calls = append(s.calls, name)
		if s.fault == nil {
			return wire.Fault{}
		}
		return s.fault(name)
	}
	s.server = stream.New(config)
	s.Client = kinesis.New(kinesis.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://kinesis.local"),
		HTTPClient: loopback.Client(s.server), Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	in := &kinesis.CreateStreamInput{StreamName: aws.String("flights"), ShardCount: aws.Int32(1)}
	if _, err := s.CreateStream(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return s
}

// put adds records to the shard.
func (s *shard) put(t *testing.T, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		out, err := s.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("flights"),
			PartitionKey: aws.String("k"), Data: []byte(p)})
		if err != nil {
			t.Fatal(err)
		}
		s.numbers = append(s.numbers, *out.SequenceNumber)
	}
}

// rng is the range of records first to last, from 1.
func (s *shard) rng(first, last int) Range {
	return Range{Stream: streamARN, Shard: shardID, First: envelope.SequenceNumber(s.numbers[first-1]),
		Last: envelope.SequenceNumber(s.numbers[last-1]), Size: last - first + 1}
}

// read returns the payloads that one Read hands over.
func (s *shard) read(ctx context.Context, of Range, from Progress) (string, Progress, error) {
	got := ""
	r := Reader{Shards: s}
	p, err := r.Read(ctx, of, from, func(b *envelope.Batch) error {
		for _, record := range b.Records {
			if record.Identity != envelope.KinesisIdentity(streamARN, shardID, envelope.SequenceNumber(record.ID)) ||
				record.Arrived.IsZero() || b.Source != streamARN || b.Shard != shardID || b.Kind != envelope.Kinesis {
				return fmt.Errorf("record %+v of %+v", record, b)
			}
			got += string(record.Payload)
		}
		return nil
	})
	return got, p, err
}

func (s *shard) count(name string) int {
	return len(slices.DeleteFunc(slices.Clone(s.calls), func(c string) bool { return c != name }))
}

// bubble runs a test with a fake clock and a deadline of ten minutes.
func bubble(t *testing.T, config stream.Config, test func(t *testing.T, ctx context.Context, s *shard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		test(t, ctx, newShard(t, config))
	})
}

func wantLost(t *testing.T, err error, of, found int) {
	t.Helper()
	lost, ok := errors.AsType[*LostError](err)
	if !ok || lost.Of != of || lost.Found != found || lost.Lost() != max(1, of-found) || lost.Range.Shard != shardID {
		t.Errorf("%v; want %d of %d found", err, found, of)
	}
}

func TestRange_BothEndsAreOfItAndNothingBeyond(t *testing.T) {
	bubble(t, stream.Config{Throttle: true}, func(t *testing.T, ctx context.Context, s *shard) {
		s.put(t, "a", "b", "c", "d", "e")
		for _, c := range []struct {
			first, last int
			want        string
		}{{2, 4, "bcd"}, {1, 5, "abcde"}, {3, 3, "c"}} {
			got, p, err := s.read(ctx, s.rng(c.first, c.last), Progress{})
			if got != c.want || err != nil || !p.Head || !p.Tail || p.Found != len(c.want) {
				t.Errorf("%d to %d: %q, %+v, %v", c.first, c.last, got, p, err)
			}
		}
	})
}

func TestRange_RecordsBetweenAreHandedOverToo(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, ctx context.Context, s *shard) {
		s.put(t, "a", "b", "c", "d")
		of := s.rng(1, 4)
		of.Size = 2
		if got, _, err := s.read(ctx, of, Progress{}); got != "abcd" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestE2_AnExpiredIteratorIsReplacedAfterTheLastRecordAndThrottlingIsWaitedFor(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, ctx context.Context, s *shard) {
		s.put(t, "a", "b", "c", "d", "e")
		pages := &paged{shard: s, size: 3}
		s.fault = func(name string) wire.Fault {
			switch reads := s.count("GetRecords"); {
			case name == "GetRecords" && reads == 2:
				return wire.Fault{Before: wire.Errorf("ExpiredIteratorException", "expired")}
			case name == "GetRecords" && reads == 3:
				return wire.Fault{Before: wire.Errorf("ProvisionedThroughputExceededException", "slow down")}
			}
			return wire.Fault{}
		}
		got, r := "", Reader{Shards: pages}
		_, err := r.Read(ctx, s.rng(1, 5), Progress{}, func(b *envelope.Batch) error {
			for _, record := range b.Records {
				got += string(record.Payload)
			}
			return nil
		})
		if got != "abcde" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		want := []string{"AT_SEQUENCE_NUMBER", "GetRecords", "GetRecords", "AFTER_SEQUENCE_NUMBER", "GetRecords",
			"GetRecords"}
		if !slices.Equal(s.calls, want) || pages.after != s.numbers[2] {
			t.Errorf("called %v, after %s; want after record 3", s.calls, pages.after)
		}
	})
}

// paged has small pages, and puts empty ones between them if asked.
type paged struct {
	*shard
	size  int32
	empty int // empty pages before each with records
	calls int
	after string
}

func (p *paged) GetShardIterator(ctx context.Context, in *kinesis.GetShardIteratorInput, o ...func(*kinesis.Options)) (
	*kinesis.GetShardIteratorOutput, error) {
	if in.ShardIteratorType == "AFTER_SEQUENCE_NUMBER" {
		p.after = *in.StartingSequenceNumber
	}
	return p.shard.GetShardIterator(ctx, in, o...)
}

func (p *paged) GetRecords(ctx context.Context, in *kinesis.GetRecordsInput, o ...func(*kinesis.Options)) (
	*kinesis.GetRecordsOutput, error) {
	if p.calls++; p.empty > 0 && p.calls%(p.empty+1) != 0 {
		behind := int64(1_000_000 - p.calls)
		return &kinesis.GetRecordsOutput{NextShardIterator: in.ShardIterator, MillisBehindLatest: &behind}, nil
	}
	in.Limit = &p.size
	return p.shard.GetRecords(ctx, in, o...)
}

func TestRange_EmptyPagesAreNotItsEnd(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, ctx context.Context, s *shard) {
		s.put(t, "a", "b", "c")
		got, r := "", Reader{Shards: &paged{shard: s, size: 1, empty: 40}}
		_, err := r.Read(ctx, s.rng(1, 3), Progress{}, func(b *envelope.Batch) error {
			got += string(b.Records[0].Payload)
			return nil
		})
		if got != "abc" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestE2_TrimmedRecordsAreToldAsLostHoweverKinesisAnswers(t *testing.T) {
	for rule, name := range map[stream.Trimmed]string{stream.TrimmedReadsHead: "head", stream.TrimmedReadsEmpty: "empty",
		stream.TrimmedIsRefused: "refused"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, stream.Config{Trimmed: rule}, func(t *testing.T, _ context.Context, s *shard) {
				s.put(t, "a", "b")
				time.Sleep(time.Hour)
				s.put(t, "c", "d", "e", "f")
				time.Sleep(23*time.Hour + time.Minute)
				got, _, err := s.read(t.Context(), s.rng(1, 5), Progress{})
				if wantLost(t, err, 5, 3); got != "cde" {
					t.Errorf("partly trimmed: %q is left, want cde", got)
				}
				got, _, err = s.read(t.Context(), s.rng(1, 2), Progress{})
				if wantLost(t, err, 2, 0); got != "" {
					t.Errorf("trimmed: %q is handed over, which is not of the range", got)
				}
				time.Sleep(24 * time.Hour)
				got, _, err = s.read(t.Context(), s.rng(1, 5), Progress{})
				if wantLost(t, err, 5, 0); got != "" {
					t.Errorf("nothing left: %q", got)
				}
			})
		})
	}
}

func TestE2_AMissingHeadIsLostEvenWhereEnoughRecordsAreFound(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, _ context.Context, s *shard) {
		s.put(t, "a")
		time.Sleep(time.Hour)
		s.put(t, "b", "c", "d")
		of := s.rng(1, 4)
		of.Size = 2
		time.Sleep(23*time.Hour + time.Minute)
		_, _, err := s.read(t.Context(), of, Progress{})
		wantLost(t, err, 2, 3)
	})
}

func TestRange_AClosedShardEndsAndAForgottenOneIsLost(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, _ context.Context, s *shard) {
		s.put(t, "a", "b")
		of := s.rng(1, 2)
		beyond := of
		beyond.Size = 3
		if _, err := s.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: aws.String("flights"),
			ShardToSplit: aws.String(shardID), NewStartingHashKey: aws.String("99999999999999")}); err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.read(t.Context(), of, Progress{}); got != "ab" || err != nil {
			t.Errorf("closed: %q, %v", got, err)
		}
		_, _, err := s.read(t.Context(), beyond, Progress{})
		wantLost(t, err, 3, 2)
		// The end lies beyond what the closed shard has.
		beyond.Last += "0" // as a number; as text it might be the lower
		_, _, err = s.read(t.Context(), beyond, Progress{})
		wantLost(t, err, 3, 2)
		time.Sleep(25 * time.Hour)
		_, _, err = s.read(t.Context(), of, Progress{})
		wantLost(t, err, 2, 0)
	})
}

func TestRange_PacesItselfAndEndsBeforeItsDeadline(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, _ context.Context, s *shard) {
		for range 60 {
			s.put(t, "x")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r := Reader{Shards: &paged{shard: s, size: 1}}
		seen := map[string]bool{}
		use := func(b *envelope.Batch) error {
			for _, record := range b.Records {
				if seen[record.ID] {
					t.Errorf("record %s is handed over again", record.ID)
				}
				seen[record.ID] = true
			}
			return nil
		}
		p, err := r.Read(ctx, s.rng(1, 60), Progress{}, use)
		if !errors.Is(err, ErrUnfinished) || ctx.Err() != nil {
			t.Fatalf("%v, %v", err, ctx.Err())
		}
		if calls := len(s.calls); calls < 12 || calls > 30 {
			t.Errorf("%d calls in 17 s, want about one a second", calls)
		}
		if p, err = r.Read(t.Context(), s.rng(1, 60), p, use); err != nil || p.Found != 60 || len(seen) != 60 {
			t.Errorf("read on: %+v, %v, %d records", p, err, len(seen))
		}
	})
}

func TestRange_TriesAreBoundedAndWhatPatienceCannotCureIsNotRetried(t *testing.T) {
	for code, tries := range map[string]int{"ProvisionedThroughputExceededException": maxTries,
		"InternalFailure": maxTries, "AccessDeniedException": 1} {
		bubble(t, stream.Config{}, func(t *testing.T, ctx context.Context, s *shard) {
			s.put(t, "a")
			s.fault = func(string) wire.Fault { return wire.Fault{Before: wire.Errorf(code, "no")} }
			_, p, err := s.read(ctx, s.rng(1, 1), Progress{})
			_, lost := errors.AsType[*LostError](err)
			if err == nil || lost || len(s.calls) != tries || p != (Progress{}) {
				t.Errorf("%s: %v after %d calls, want %d", code, err, len(s.calls), tries)
			}
		})
	}
}

func TestRange_WhatUseRefusesIsNotPassed(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, ctx context.Context, s *shard) {
		s.put(t, "a", "b")
		broken := errors.New("broken")
		r := Reader{Shards: s}
		p, err := r.Read(ctx, s.rng(1, 2), Progress{}, func(*envelope.Batch) error { return broken })
		if !errors.Is(err, broken) || p != (Progress{}) {
			t.Errorf("%+v, %v", p, err)
		}
		got, _, err := s.read(ctx, s.rng(1, 2), p)
		if got != "ab" || err != nil {
			t.Errorf("read on: %q, %v", got, err)
		}
	})
}

// script is a shard whose one page has these sequence numbers.
type script []string

func (script) GetShardIterator(context.Context, *kinesis.GetShardIteratorInput, ...func(*kinesis.Options)) (
	*kinesis.GetShardIteratorOutput, error) {
	return &kinesis.GetShardIteratorOutput{ShardIterator: aws.String("i")}, nil
}

func (s script) GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (
	*kinesis.GetRecordsOutput, error) {
	out := &kinesis.GetRecordsOutput{NextShardIterator: aws.String("i")}
	for _, n := range s {
		out.Records = append(out.Records, types.Record{SequenceNumber: aws.String(n)})
	}
	return out, nil
}

func TestRange_NumbersAreComparedAsNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := []string{}
		r := Reader{Shards: script{"8", "9", "10", "11", "100"}}
		of := Range{Stream: streamARN, Shard: shardID, First: "9", Last: "11", Size: 3}
		_, err := r.Read(t.Context(), of, Progress{}, func(b *envelope.Batch) error {
			for _, record := range b.Records {
				got = append(got, record.ID)
			}
			return nil
		})
		if !slices.Equal(got, []string{"9", "10", "11"}) || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		got = got[:0]
		r.Shards = script{"8"}
		if _, err := r.Read(t.Context(), of, Progress{}, func(*envelope.Batch) error { return nil }); err == nil {
			t.Error("a shard that never comes to the range is taken for it")
		}
		r.Shards = script{"ten"}
		if _, err := r.Read(t.Context(), of, Progress{}, func(*envelope.Batch) error { return nil }); err == nil {
			t.Error("a record without a number is taken")
		}
	})
}
