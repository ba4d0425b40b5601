package stream_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
)

func TestServer_WritersOnARealSocketGetUniqueGrowingNumbers(t *testing.T) {
	server := httptest.NewServer(stream.New(stream.Config{}))
	defer server.Close()
	k := &kin{Client: client(server.Client(), server.URL)}
	name := k.create(t, 2)
	var mu sync.Mutex
	seen := map[string]bool{}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			last := map[string]string{}
			for i := range 50 {
				number, shard := k.put(t, name, fmt.Sprint(w, i), "x")
				mu.Lock()
				if seen[number] || number <= last[shard] {
					t.Errorf("number %s came after %s, or twice", number, last[shard])
				}
				seen[number], last[shard] = true, number
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	if len(seen) != 400 {
		t.Errorf("%d numbers, want 400", len(seen))
	}
}

func TestServer_InstancesShareNothing(t *testing.T) {
	one, _ := standIn(stream.Config{})
	other, _ := standIn(stream.Config{})
	name := one.create(t, 1)
	_, err := other.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamName: &name})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestServer_RefusesWhatItDoesNotKnow(t *testing.T) {
	server := httptest.NewServer(stream.New(stream.Config{}))
	defer server.Close()
	for _, c := range []struct{ target, body, want string }{
		{"Kinesis_20131202.SubscribeToShard", `{}`, "UnknownOperationException"},
		{"DynamoDB_20120810.PutRecord", `{}`, "UnknownOperationException"},
		{"Kinesis_20131202.PutRecord", `{"StreamName":"s","DryRun":true}`, "ValidationException"},
		{"Kinesis_20131202.PutRecord", `{"streamname":"s"}`, "ValidationException"},
		{"Kinesis_20131202.PutRecord", `{"StreamName":"s"`, "SerializationException"},
		{"Kinesis_20131202.GetRecords", `{"ShardIterator":7}`, "SerializationException"},
	} {
		request, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(c.body))
		request.Header.Set("X-Amz-Target", c.target)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 1000)
		n, _ := response.Body.Read(body)
		response.Body.Close()
		if response.StatusCode != 400 || !strings.Contains(string(body[:n]), `"`+c.want+`"`) {
			t.Errorf("%s %s: %d %s, want 400 %s", c.target, c.body, response.StatusCode, body[:n], c.want)
		}
	}
}

func TestE5_PutRecordsAnswers200WithFailedEntries(t *testing.T) {
	k, _ := standIn(stream.Config{FailRecord: func(_, key string, _ []byte) string {
		return map[string]string{"slow": "ProvisionedThroughputExceededException", "lost": "InternalFailure"}[key]
	}})
	name := k.create(t, 1)
	var in []types.PutRecordsRequestEntry
	for _, key := range []string{"a", "slow", "b", "lost"} {
		in = append(in, types.PutRecordsRequestEntry{PartitionKey: aws.String(key), Data: []byte(key)})
	}
	out, err := k.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: &name, Records: in})
	if err != nil || *out.FailedRecordCount != 2 {
		t.Fatalf("%v %v, want 2 failed entries and no error", out, err)
	}
	for i, want := range []string{"", "ProvisionedThroughputExceededException", "", "InternalFailure"} {
		if r := out.Records[i]; aws.ToString(r.ErrorCode) != want || (r.SequenceNumber == nil) != (want != "") {
			t.Errorf("entry %d: %v, want code %q", i, r, want)
		}
	}
	if got := data(k.read(t, k.horizon(t, name, "shardId-000000000000"), 0)); got != "ab" {
		t.Errorf("stored %q, want ab", got)
	}
}

func TestFault_ALostReplyStillWrites(t *testing.T) {
	k, _ := standIn(stream.Config{Fault: func(c wire.Call) wire.Fault { return wire.Fault{Lose: c.Name == "PutRecord"} }})
	name := k.create(t, 1)
	_, err := k.PutRecord(t.Context(),
		&kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("k"), Data: []byte("a")})
	if err == nil {
		t.Fatal("the reply was not lost")
	}
	if got := data(k.read(t, k.horizon(t, name, "shardId-000000000000"), 0)); got != "a" {
		t.Errorf("stored %q, want a", got)
	}
}

func TestFault_ThroughputExceededIsInjectable(t *testing.T) {
	throttle := wire.Errorf("ProvisionedThroughputExceededException", "slow down")
	k, _ := standIn(stream.Config{Fault: func(c wire.Call) wire.Fault {
		if c.Name == "GetRecords" {
			return wire.Fault{Before: throttle}
		}
		return wire.Fault{}
	}})
	name := k.create(t, 1)
	at := k.horizon(t, name, "shardId-000000000000")
	_, err := k.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &at})
	if _, typed := errors.AsType[*types.ProvisionedThroughputExceededException](err); !typed {
		t.Errorf("error %v, want the SDK's typed one", err)
	}
}

func TestStream_ANewOneOfTheSameNameIsAnother(t *testing.T) {
	clock := newClock()
	k, _ := standIn(stream.Config{Now: clock.Now})
	name := k.create(t, 1)
	at := k.horizon(t, name, "shardId-000000000000")
	number, _ := k.put(t, name, "k", "a")
	if _, err := k.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: &name}); err != nil {
		t.Fatal(err)
	}
	clock.advance(2_000_000_000)
	_, err := k.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: aws.Int32(1)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &at})
	wantCode(t, err, "ResourceNotFoundException")
	for range 5 {
		k.put(t, name, "k", "b")
	}
	_, err = k.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{StreamName: &name,
		ShardId: aws.String("shardId-000000000000"), ShardIteratorType: "AT_SEQUENCE_NUMBER",
		StartingSequenceNumber: &number})
	wantCode(t, err, "InvalidArgumentException")
}
