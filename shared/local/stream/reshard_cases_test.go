package stream_test

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// The middle and the end of the hash space.
const (
	middle = "170141183460469231731687303715884105728"
	last   = "340282366920938463463374607431768211455"
)

func (k *kin) split(t *testing.T, name string) {
	t.Helper()
	_, err := k.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: &name,
		ShardToSplit: aws.String("shardId-000000000000"), NewStartingHashKey: aws.String(middle)})
	if err != nil {
		t.Fatal(err)
	}
	k.active(t, name)
}

func split(t *testing.T, k *kin) {
	name, parent := k.create(t, 1), "shardId-000000000000"
	old, _ := k.put(t, name, "k", "a")
	k.split(t, name)
	shards := k.shards(t, name)
	if len(shards) != 3 || shards[0].SequenceNumberRange.EndingSequenceNumber == nil {
		t.Fatalf("shards after a split: %v", shards)
	}
	if end := *shards[0].SequenceNumberRange.EndingSequenceNumber; len(end) != 56 || end <= old {
		t.Errorf("the parent ends at %s, after %s", end, old)
	}
	for i, want := range [][2]string{{"0", "170141183460469231731687303715884105727"}, {middle, last}} {
		child := shards[i+1]
		got := [2]string{*child.HashKeyRange.StartingHashKey, *child.HashKeyRange.EndingHashKey}
		if *child.ParentShardId != parent || got != want {
			t.Errorf("child %v, want parent %s and range %v", child, parent, want)
		}
	}
	number, shard := k.put(t, name, "k", "b")
	if shard == parent || number <= old {
		t.Errorf("a put after the split went to %s with %s (before: %s)", shard, number, old)
	}
	out := k.read(t, k.horizon(t, name, parent), 0)
	if data(out) != "a" || out.NextShardIterator == nil {
		t.Fatalf("the closed parent gives %q, iterator %v; want its record and one read more",
			data(out), out.NextShardIterator)
	}
	if out = k.read(t, *out.NextShardIterator, 0); len(out.Records) != 0 || out.NextShardIterator != nil {
		t.Errorf("the end of the parent gives %v, iterator %v; want neither", out.Records, out.NextShardIterator)
	}
	if got := data(k.read(t, k.horizon(t, name, shard), 0)); got != "b" {
		t.Errorf("the child holds %q, want b", got)
	}
}

// splitSixteenth: the number of a shard above 15 starts with a lower hexadecimal digit than its parent's.
func splitSixteenth(t *testing.T, k *kin) {
	name, parent := k.create(t, 16), "shardId-000000000015"
	put := func() (number, shard string) {
		out, err := k.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("k"),
			Data: []byte("x"), ExplicitHashKey: aws.String(last)})
		if err != nil {
			t.Fatal(err)
		}
		return *out.SequenceNumber, *out.ShardId
	}
	before, shard := put()
	_, err := k.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: &name, ShardToSplit: &parent,
		NewStartingHashKey: aws.String("335000000000000000000000000000000000000")})
	if err != nil || shard != parent {
		t.Fatal(err, shard)
	}
	k.active(t, name)
	if after, child := put(); after <= before || child != "shardId-000000000017" {
		t.Errorf("the child %s gave %s, want a number above its parent's %s", child, after, before)
	}
}

func badSplit(t *testing.T, k *kin) {
	name := k.create(t, 2)
	for _, key := range []string{"0", "1", middle, last} {
		_, err := k.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: &name,
			ShardToSplit: aws.String("shardId-000000000000"), NewStartingHashKey: &key})
		wantCode(t, err, "InvalidArgumentException")
	}
}

func merge(t *testing.T, k *kin) {
	name := k.create(t, 2)
	_, err := k.MergeShards(t.Context(), &kinesis.MergeShardsInput{StreamName: &name,
		ShardToMerge: aws.String("shardId-000000000000"), AdjacentShardToMerge: aws.String("shardId-000000000001")})
	if err != nil {
		t.Fatal(err)
	}
	k.active(t, name)
	child := k.shards(t, name)[2]
	if *child.ParentShardId != "shardId-000000000000" || *child.AdjacentParentShardId != "shardId-000000000001" ||
		*child.HashKeyRange.StartingHashKey != "0" || *child.HashKeyRange.EndingHashKey != last {
		t.Errorf("child %v", child)
	}
	if _, shard := k.put(t, name, "k", "a"); shard != *child.ShardId {
		t.Errorf("a put went to %s, want the child", shard)
	}
}

func badMerge(t *testing.T, k *kin) {
	name := k.create(t, 3)
	_, err := k.MergeShards(t.Context(), &kinesis.MergeShardsInput{StreamName: &name,
		ShardToMerge: aws.String("shardId-000000000000"), AdjacentShardToMerge: aws.String("shardId-000000000002")})
	wantCode(t, err, "InvalidArgumentException")
}

func childShards(t *testing.T, k *kin) {
	name := k.create(t, 1)
	k.split(t, name)
	out := k.read(t, k.horizon(t, name, "shardId-000000000000"), 0)
	if len(out.ChildShards) != 2 || *out.ChildShards[1].ShardId != "shardId-000000000002" ||
		!slices.Equal(out.ChildShards[1].ParentShards, []string{"shardId-000000000000"}) ||
		*out.ChildShards[1].HashKeyRange.StartingHashKey != middle {
		t.Errorf("children %v", out.ChildShards)
	}
}

func behind(t *testing.T, k *kin) {
	name := k.create(t, 1)
	_, shard := k.put(t, name, "k", "a")
	k.put(t, name, "k", "b")
	out := k.read(t, k.horizon(t, name, shard), 1)
	if *out.MillisBehindLatest < 1 {
		t.Errorf("%d ms behind with a record left, want more than 0", *out.MillisBehindLatest)
	}
	if out = k.read(t, *out.NextShardIterator, 1); *out.MillisBehindLatest != 0 {
		t.Errorf("%d ms behind at the tip, want 0", *out.MillisBehindLatest)
	}
}

func byARN(t *testing.T, k *kin) {
	name := k.create(t, 1)
	_, shard := k.put(t, name, "k", "a")
	described, err := k.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &name})
	if err != nil {
		t.Fatal(err)
	}
	arn := described.StreamDescriptionSummary.StreamARN
	at := k.iterator(t, kinesis.GetShardIteratorInput{StreamARN: arn, ShardId: &shard,
		ShardIteratorType: "TRIM_HORIZON"})
	out, err := k.GetRecords(t.Context(), &kinesis.GetRecordsInput{StreamARN: arn, ShardIterator: &at})
	if err != nil || data(out) != "a" {
		t.Errorf("by ARN: %v %v", out, err)
	}
	if _, err = k.ListShards(t.Context(), &kinesis.ListShardsInput{StreamARN: arn}); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"arn:aws:kinesis:eu-west-1:000000000000:stream/" + name, *arn + "x"} {
		_, err = k.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamARN: &wrong})
		wantCode(t, err, "ResourceNotFoundException")
	}
}

func missing(t *testing.T, k *kin) {
	none := aws.String("no-such-stream")
	_, err := k.PutRecord(t.Context(),
		&kinesis.PutRecordInput{StreamName: none, PartitionKey: aws.String("k"), Data: []byte("x")})
	wantCode(t, err, "ResourceNotFoundException")
	_, err = k.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamName: none})
	wantCode(t, err, "ResourceNotFoundException")
	_, err = k.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: none})
	wantCode(t, err, "ResourceNotFoundException")
}

func deleted(t *testing.T, k *kin) {
	name := k.create(t, 1)
	if _, err := k.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: &name}); err != nil {
		t.Fatal(err)
	}
	_, err := k.PutRecord(t.Context(),
		&kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("k"), Data: []byte("x")})
	wantCode(t, err, "ResourceNotFoundException")
}

func retention(t *testing.T, k *kin) {
	name := k.create(t, 1)
	raise := func(hours int32) error {
		_, err := k.IncreaseStreamRetentionPeriod(t.Context(),
			&kinesis.IncreaseStreamRetentionPeriodInput{StreamName: &name, RetentionPeriodHours: &hours})
		return err
	}
	wantCode(t, raise(48), "")
	wantCode(t, raise(24), "InvalidArgumentException")
	described, err := k.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamName: &name})
	if err != nil || *described.StreamDescription.RetentionPeriodHours != 48 {
		t.Errorf("described %v %v, want 48 hours", described, err)
	}
	for _, c := range []struct {
		hours int32
		want  string
	}{{72, "InvalidArgumentException"}, {24, ""}} {
		_, err = k.DecreaseStreamRetentionPeriod(t.Context(),
			&kinesis.DecreaseStreamRetentionPeriodInput{StreamName: &name, RetentionPeriodHours: &c.hours})
		wantCode(t, err, c.want)
	}
}

func shardPages(t *testing.T, k *kin) {
	name := k.create(t, 5)
	out, err := k.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: &name, MaxResults: aws.Int32(2)})
	seen := 0
	for err == nil {
		seen += len(out.Shards)
		if out.NextToken == nil {
			break
		}
		out, err = k.ListShards(t.Context(), &kinesis.ListShardsInput{NextToken: out.NextToken, MaxResults: aws.Int32(2)})
	}
	if err != nil || seen != 5 {
		t.Errorf("pages gave %d shards and %v, want 5", seen, err)
	}
}
