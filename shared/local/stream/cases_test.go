package stream_test

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"abacus/shared/local/stream"
)

// aCase is one behaviour of Kinesis. lacks says why a second implementation (kinesalite 3.3.3) is not asked; where the
// two differ, AWS's documentation decides.
type aCase struct {
	name  string
	lacks string
	run   func(*testing.T, *kin)
}

func TestCases_StandIn(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k, _ := standIn(stream.Config{})
			c.run(t, k)
		})
	}
}

func TestCases_SecondImplementation(t *testing.T) {
	k := oracle(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.lacks != "" {
				t.Skip("kinesalite: " + c.lacks)
			}
			c.run(t, k)
		})
	}
}

var cases = []aCase{
	{name: "shards share the hash space evenly", run: evenShards},
	{name: "a taken name is refused", run: takenName},
	{name: "MD5 of the partition key routes", run: md5Routing},
	{name: "ExplicitHashKey routes", run: explicitHashKey},
	{name: "sequence numbers have 56 digits and grow", run: sequenceNumbers},
	{name: "PutRecords takes 500 records", run: entryLimit},
	{name: "a record may have 1 MiB", run: recordLimit},
	{name: "the partition key counts towards 1 MiB", run: recordLimitWithKey, lacks: "measures the data alone"},
	{name: "iterator types", run: iteratorTypes},
	{name: "AT_TIMESTAMP", run: atTimestamp},
	{name: "bad starts are refused", run: badStarts},
	{name: "an iterator reads the same again", run: sameAgain},
	{name: "Limit pages", run: paging},
	{name: "a bad iterator is refused", run: badIterator},
	{name: "arrival has milliseconds", run: arrival},
	{name: "split", run: split},
	{name: "numbers of a child are above its parent's", run: splitSixteenth},
	{name: "split refuses a bad hash key", run: badSplit},
	{name: "merge", run: merge},
	{name: "merge refuses what is not adjacent", run: badMerge},
	{name: "children are told at a shard's end", run: childShards, lacks: "gives no ChildShards"},
	{name: "MillisBehindLatest", run: behind, lacks: "always answers 0"},
	{name: "a stream goes by its ARN", run: byARN, lacks: "knows no StreamARN"},
	{name: "what does not exist", run: missing},
	{name: "a deleted stream is gone", run: deleted},
	{name: "retention moves within bounds", run: retention},
	{name: "ListShards pages", run: shardPages, lacks: "ignores MaxResults"},
}

func evenShards(t *testing.T, k *kin) {
	shards := k.shards(t, k.create(t, 3))
	want := []string{"0", "113427455640312821154458202477256070484", "113427455640312821154458202477256070485",
		"226854911280625642308916404954512140969", "226854911280625642308916404954512140970",
		"340282366920938463463374607431768211455"}
	var got []string
	for i, s := range shards {
		got = append(got, *s.HashKeyRange.StartingHashKey, *s.HashKeyRange.EndingHashKey)
		if id := fmt.Sprintf("shardId-%012d", i); *s.ShardId != id {
			t.Errorf("shard %d is called %s, want %s", i, *s.ShardId, id)
		}
		numbers := s.SequenceNumberRange
		if len(*numbers.StartingSequenceNumber) != 56 || numbers.EndingSequenceNumber != nil {
			t.Errorf("an open shard has the sequence number range %v", s.SequenceNumberRange)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("ranges\n%v\nwant\n%v", got, want)
	}
}

func takenName(t *testing.T, k *kin) {
	name := k.create(t, 1)
	_, err := k.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: aws.Int32(1)})
	wantCode(t, err, "ResourceInUseException")
}

func md5Routing(t *testing.T, k *kin) {
	name := k.create(t, 4)
	shards := k.shards(t, name)
	for i := range 40 {
		key := fmt.Sprintf("key-%d-é", i)
		sum := md5.Sum([]byte(key))
		place := new(big.Int).SetBytes(sum[:])
		at := slices.IndexFunc(shards, func(s types.Shard) bool {
			from, _ := new(big.Int).SetString(*s.HashKeyRange.StartingHashKey, 10)
			to, _ := new(big.Int).SetString(*s.HashKeyRange.EndingHashKey, 10)
			return from.Cmp(place) <= 0 && place.Cmp(to) <= 0
		})
		if _, shard := k.put(t, name, key, "x"); shard != *shards[at].ShardId {
			t.Errorf("%s went to %s, want %s", key, shard, *shards[at].ShardId)
		}
	}
}

func explicitHashKey(t *testing.T, k *kin) {
	name := k.create(t, 2)
	for key, want := range map[string]string{"0": "shardId-000000000000",
		"170141183460469231731687303715884105727": "shardId-000000000000",
		"170141183460469231731687303715884105728": "shardId-000000000001",
		"340282366920938463463374607431768211455": "shardId-000000000001"} {
		out, err := k.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("k"),
			Data: []byte("x"), ExplicitHashKey: &key})
		if err != nil || *out.ShardId != want {
			t.Errorf("hash key %s: %v %v, want %s", key, out, err, want)
		}
	}
	_, err := k.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("k"),
		Data: []byte("x"), ExplicitHashKey: aws.String("340282366920938463463374607431768211456")})
	wantCode(t, err, "InvalidArgumentException")
}

func sequenceNumbers(t *testing.T, k *kin) {
	name, last := k.create(t, 1), new(big.Int)
	for i := range 20 {
		number, _ := k.put(t, name, fmt.Sprint(i), "x")
		n, _ := new(big.Int).SetString(number, 10)
		if len(number) != 56 || n.Cmp(last) <= 0 {
			t.Fatalf("sequence number %s after %v", number, last)
		}
		last = n
	}
}

func entries(n, size int) []types.PutRecordsRequestEntry {
	one := types.PutRecordsRequestEntry{Data: bytes.Repeat([]byte("x"), size), PartitionKey: aws.String("k")}
	return slices.Repeat([]types.PutRecordsRequestEntry{one}, n)
}

func entryLimit(t *testing.T, k *kin) {
	name := k.create(t, 1)
	out, err := k.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: &name, Records: entries(500, 1)})
	if err != nil || *out.FailedRecordCount != 0 || len(out.Records) != 500 {
		t.Fatalf("500 records: %v %v", out, err)
	}
	_, err = k.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: &name, Records: entries(501, 1)})
	wantCode(t, err, "ValidationException")
}

func recordLimit(t *testing.T, k *kin) {
	name := k.create(t, 1)
	k.put(t, name, "k", strings.Repeat("x", 1<<20-1))
	_, err := k.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("k"),
		Data: make([]byte, 1<<20+1)})
	wantCode(t, err, "ValidationException")
}

func recordLimitWithKey(t *testing.T, k *kin) {
	name := k.create(t, 1)
	k.put(t, name, "kk", strings.Repeat("x", 1<<20-2))
	_, err := k.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("kk"),
		Data: make([]byte, 1<<20-1)})
	wantCode(t, err, "ValidationException")
}

func iteratorTypes(t *testing.T, k *kin) {
	name := k.create(t, 1)
	a, shard := k.put(t, name, "k", "a")
	b, _ := k.put(t, name, "k", "b")
	k.put(t, name, "k", "c")
	for _, c := range []struct {
		kind   types.ShardIteratorType
		number *string
		want   string
	}{{"TRIM_HORIZON", nil, "abc"}, {"LATEST", nil, ""},
		{"AT_SEQUENCE_NUMBER", &a, "abc"}, {"AT_SEQUENCE_NUMBER", &b, "bc"},
		{"AFTER_SEQUENCE_NUMBER", &a, "bc"}, {"AFTER_SEQUENCE_NUMBER", &b, "c"}} {
		at := k.iterator(t, kinesis.GetShardIteratorInput{StreamName: &name, ShardId: &shard, ShardIteratorType: c.kind,
			StartingSequenceNumber: c.number})
		if got := data(k.read(t, at, 0)); got != c.want {
			t.Errorf("%s %s reads %q, want %q", c.kind, aws.ToString(c.number), got, c.want)
		}
	}
	at := k.iterator(t, kinesis.GetShardIteratorInput{StreamName: &name, ShardId: &shard, ShardIteratorType: "LATEST"})
	k.put(t, name, "k", "d")
	if got := data(k.read(t, at, 0)); got != "d" {
		t.Errorf("LATEST read %q after a put, want d", got)
	}
}

func atTimestamp(t *testing.T, k *kin) {
	name := k.create(t, 1)
	_, shard := k.put(t, name, "k", "a")
	k.put(t, name, "k", "b")
	first := *k.read(t, k.horizon(t, name, shard), 1).Records[0].ApproximateArrivalTimestamp
	at := func(when time.Time) (string, error) {
		out, err := k.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{StreamName: &name, ShardId: &shard,
			ShardIteratorType: "AT_TIMESTAMP", Timestamp: &when})
		if err != nil {
			return "", err
		}
		return data(k.read(t, *out.ShardIterator, 0)), nil
	}
	for _, when := range []time.Time{first.Add(-time.Hour), first} {
		if got, err := at(when); err != nil || got != "ab" {
			t.Errorf("at %v: %q %v, want ab", when, got, err)
		}
	}
	_, err := at(time.Now().Add(time.Hour))
	wantCode(t, err, "InvalidArgumentException")
}

func badStarts(t *testing.T, k *kin) {
	name := k.create(t, 2)
	for i := range 20 { // both shards hold some
		k.put(t, name, fmt.Sprint(i), "x")
	}
	number, shard := k.put(t, name, "k", "a")
	wrong := "shardId-000000000001"
	if shard == wrong {
		wrong = "shardId-000000000000"
	}
	start := func(name, shard, number string, kind types.ShardIteratorType) error {
		in := kinesis.GetShardIteratorInput{StreamName: &name, ShardId: &shard, ShardIteratorType: kind}
		if number != "" {
			in.StartingSequenceNumber = &number
		}
		_, err := k.GetShardIterator(t.Context(), &in)
		return err
	}
	early := *k.read(t, k.horizon(t, name, shard), 1).Records[0].SequenceNumber
	for _, elsewhere := range []string{number, early} {
		wantCode(t, start(name, wrong, elsewhere, "AT_SEQUENCE_NUMBER"), "InvalidArgumentException")
	}
	wantCode(t, start(name, shard, "", "AT_SEQUENCE_NUMBER"), "InvalidArgumentException")
	wantCode(t, start(name, shard, "", "AFTER_SEQUENCE_NUMBER"), "InvalidArgumentException")
	wantCode(t, start(name, shard, number, "TRIM_HORIZON"), "InvalidArgumentException")
	wantCode(t, start(name, shard, number, "LATEST"), "InvalidArgumentException")
	wantCode(t, start(name, shard, number+"0", "AT_SEQUENCE_NUMBER"), "InvalidArgumentException")
	wantCode(t, start(name, "shardId-000000000007", "", "LATEST"), "ResourceNotFoundException")
}

func sameAgain(t *testing.T, k *kin) {
	name := k.create(t, 1)
	_, shard := k.put(t, name, "k", "a")
	k.put(t, name, "k", "b")
	at := k.horizon(t, name, shard)
	for range 3 {
		if got := data(k.read(t, at, 1)); got != "a" {
			t.Errorf("the iterator read %q, want a", got)
		}
	}
}

func paging(t *testing.T, k *kin) {
	name, shard := k.create(t, 1), "shardId-000000000000"
	for i := range 7 {
		k.put(t, name, "k", fmt.Sprint(i))
	}
	at, got := k.horizon(t, name, shard), ""
	for range 4 {
		out := k.read(t, at, 3)
		got += data(out) + "|"
		at = *out.NextShardIterator
	}
	if got != "012|345|6||" {
		t.Errorf("pages %s", got)
	}
	_, err := k.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &at, Limit: aws.Int32(10_001)})
	wantCode(t, err, "ValidationException")
}

func badIterator(t *testing.T, k *kin) {
	_, err := k.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: aws.String("AAAAAAAAAAGgarbage")})
	wantCode(t, err, "InvalidArgumentException")
}

func arrival(t *testing.T, k *kin) {
	name, before := k.create(t, 1), time.Now().Truncate(time.Millisecond)
	_, shard := k.put(t, name, "k", "a")
	after := time.Now()
	got := *k.read(t, k.horizon(t, name, shard), 0).Records[0].ApproximateArrivalTimestamp
	if got = got.Round(time.Millisecond); got.Before(before) || got.After(after) {
		t.Errorf("arrival %v, want between %v and %v", got, before, after)
	}
}
