package stream_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"abacus/shared/local/stream"
)

func TestIterator_LivesFiveMinutes(t *testing.T) {
	clock := newClock()
	k, _ := standIn(stream.Config{Now: clock.Now})
	name := k.create(t, 1)
	_, shard := k.put(t, name, "k", "a")
	at := k.horizon(t, name, shard)
	clock.advance(5 * time.Minute)
	next := k.read(t, at, 0).NextShardIterator
	clock.advance(time.Millisecond)
	_, err := k.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &at})
	wantCode(t, err, "ExpiredIteratorException")
	if out := k.read(t, *next, 0); len(out.Records) != 0 {
		t.Errorf("the next iterator read %q again", data(out))
	}
}

func TestMillisBehindLatest_IsTheAgeOfTheFirstUnreadRecord(t *testing.T) {
	clock := newClock()
	k, _ := standIn(stream.Config{Now: clock.Now})
	name := k.create(t, 1)
	_, shard := k.put(t, name, "k", "a")
	clock.advance(2 * time.Second)
	k.put(t, name, "k", "b")
	clock.advance(3 * time.Second)
	if got := *k.read(t, k.horizon(t, name, shard), 1).MillisBehindLatest; got < 3000 || got > 3001 {
		t.Errorf("behind by %d ms, want 3000", got)
	}
}

// trimmedStream returns a stream whose records a and b are trimmed and c is not, and b's number.
func trimmedStream(t *testing.T, rule stream.Trimmed) (k *kin, clock *clock, name, shard, number string) {
	clock = newClock()
	k, _ = standIn(stream.Config{Now: clock.Now, Trimmed: rule})
	name = k.create(t, 1)
	k.put(t, name, "k", "a")
	number, shard = k.put(t, name, "k", "b")
	clock.advance(time.Hour)
	k.put(t, name, "k", "c")
	clock.advance(23*time.Hour + time.Millisecond)
	return k, clock, name, shard, number
}

func TestTrim_RetentionEndsRecordsForGood(t *testing.T) {
	k, _, name, shard, _ := trimmedStream(t, stream.TrimmedReadsHead)
	if got := data(k.read(t, k.horizon(t, name, shard), 0)); got != "c" {
		t.Errorf("left over: %q, want c", got)
	}
	_, err := k.IncreaseStreamRetentionPeriod(t.Context(),
		&kinesis.IncreaseStreamRetentionPeriodInput{StreamName: &name, RetentionPeriodHours: aws.Int32(48)})
	if got := data(k.read(t, k.horizon(t, name, shard), 0)); got != "c" || err != nil {
		t.Errorf("after raising retention: %q %v, want c", got, err)
	}
}

func TestTrim_StartAtATrimmedNumberGoesAsConfigured(t *testing.T) {
	for _, kind := range []string{"AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"} {
		for rule, want := range map[stream.Trimmed]string{stream.TrimmedReadsHead: "c", stream.TrimmedReadsEmpty: "",
			stream.TrimmedIsRefused: "InvalidArgumentException"} {
			k, _, name, shard, number := trimmedStream(t, rule)
			if kind == "AFTER_SEQUENCE_NUMBER" {
				// After b, the last trimmed record, nothing is missing: only a start after a is too old.
				number = firstNumber(t, number)
			}
			out, err := k.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{StreamName: &name, ShardId: &shard,
				ShardIteratorType: "AT_SEQUENCE_NUMBER", StartingSequenceNumber: &number})
			if rule == stream.TrimmedIsRefused {
				wantCode(t, err, want)
				continue
			}
			read := k.read(t, *out.ShardIterator, 0)
			if data(read) != want {
				t.Errorf("%s under rule %d reads %q, want %q", kind, rule, data(read), want)
			}
			if lag := *read.MillisBehindLatest; rule == stream.TrimmedReadsEmpty && lag != (24*time.Hour).Milliseconds() {
				t.Errorf("an empty read is %d ms behind, want the retention period", lag)
			}
		}
	}
}

func firstNumber(t *testing.T, number string) string {
	t.Helper()
	first, err := stream.NumberAt(number, 1)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

func TestTrim_AfterTheLastTrimmedRecordNothingIsMissing(t *testing.T) {
	for _, rule := range []stream.Trimmed{stream.TrimmedReadsHead, stream.TrimmedReadsEmpty, stream.TrimmedIsRefused} {
		k, _, name, shard, number := trimmedStream(t, rule)
		at := k.iterator(t, kinesis.GetShardIteratorInput{StreamName: &name, ShardId: &shard,
			ShardIteratorType: "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber: &number})
		if got := data(k.read(t, at, 0)); got != "c" {
			t.Errorf("rule %d: %q, want c", rule, got)
		}
	}
}

func TestTrim_ClosedShardExpires(t *testing.T) {
	clock := newClock()
	k, _ := standIn(stream.Config{Now: clock.Now})
	name := k.create(t, 1)
	at := k.horizon(t, name, "shardId-000000000000")
	k.split(t, name)
	clock.advance(24*time.Hour + time.Second)
	if shards := k.shards(t, name); len(shards) != 2 {
		t.Errorf("%d shards listed, want the two open ones", len(shards))
	}
	_, err := k.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &at})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestThrottle_FiveReadsASecondAShard(t *testing.T) {
	clock := newClock()
	k, _ := standIn(stream.Config{Now: clock.Now, Throttle: true})
	name := k.create(t, 1)
	at := k.horizon(t, name, "shardId-000000000000")
	read := func() error {
		_, err := k.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &at})
		return err
	}
	for range 5 {
		wantCode(t, read(), "")
	}
	wantCode(t, read(), "ProvisionedThroughputExceededException")
	clock.advance(time.Second)
	wantCode(t, read(), "")
}

func TestThrottle_AThousandRecordsASecondAShard(t *testing.T) {
	clock := newClock()
	k, _ := standIn(stream.Config{Now: clock.Now, Throttle: true})
	name := k.create(t, 1)
	put := func() int32 {
		out, err := k.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: &name, Records: entries(500, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return *out.FailedRecordCount
	}
	for i, want := range []int32{0, 0, 500} {
		if got := put(); got != want {
			t.Errorf("call %d: %d records failed, want %d", i, got, want)
		}
	}
	clock.advance(time.Second)
	if got := put(); got != 0 {
		t.Errorf("a second later %d records failed, want 0", got)
	}
}
