package stream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"abacus/shared/local/loopback"
	"abacus/shared/local/stream"
)

// oracleVar names the endpoint of a second implementation of Kinesis; see shared/local/oracle.
const oracleVar = "ABACUS_ORACLE_KINESIS"

// kin is one implementation of Kinesis as the cases see it.
type kin struct {
	*kinesis.Client
	oracle bool
}

func client(http *http.Client, endpoint string) *kinesis.Client {
	return kinesis.New(kinesis.Options{Region: "us-east-1", BaseEndpoint: aws.String(endpoint), HTTPClient: http,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""), Retryer: aws.NopRetryer{}})
}

// standIn returns a client of a fresh server.
func standIn(config stream.Config) (*kin, *stream.Server) {
	server := stream.New(config)
	return &kin{Client: client(loopback.Client(server), "http://kinesis.local")}, server
}

// oracle returns a client of the second implementation, or skips the test.
func oracle(t *testing.T) *kin {
	t.Helper()
	endpoint := os.Getenv(oracleVar)
	if endpoint == "" && os.Getenv("ABACUS_ORACLE_REQUIRED") != "" {
		t.Fatalf("ABACUS_ORACLE_REQUIRED is set, but %s names no implementation", oracleVar)
	}
	if endpoint == "" {
		t.Skipf("%s is not set: start shared/local/oracle/run to compare with a second implementation", oracleVar)
	}
	return &kin{Client: client(http.DefaultClient, endpoint), oracle: true}
}

var serial atomic.Int64

// create makes a stream and waits until it is active.
func (k *kin) create(t *testing.T, shards int32) string {
	t.Helper()
	name := fmt.Sprintf("s%d-%d", time.Now().UnixNano(), serial.Add(1))
	_, err := k.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: &shards})
	if err != nil {
		t.Fatal(err)
	}
	k.active(t, name)
	return name
}

func (k *kin) active(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		described, err := k.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: &name})
		if err != nil {
			t.Fatal(err)
		}
		if described.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive {
			return
		}
		time.Sleep(10 * time.Millisecond) // only a second implementation is not active at once
	}
}

func (k *kin) shards(t *testing.T, name string) []types.Shard {
	t.Helper()
	listed, err := k.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return listed.Shards
}

func (k *kin) put(t *testing.T, name, key, data string) (number, shard string) {
	t.Helper()
	in := &kinesis.PutRecordInput{StreamName: &name, PartitionKey: &key, Data: []byte(data)}
	out, err := k.PutRecord(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.SequenceNumber, *out.ShardId
}

func (k *kin) iterator(t *testing.T, in kinesis.GetShardIteratorInput) string {
	t.Helper()
	out, err := k.GetShardIterator(t.Context(), &in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.ShardIterator
}

func (k *kin) read(t *testing.T, iterator string, limit int32) *kinesis.GetRecordsOutput {
	t.Helper()
	in := &kinesis.GetRecordsInput{ShardIterator: &iterator}
	if limit > 0 {
		in.Limit = &limit
	}
	out, err := k.GetRecords(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (k *kin) horizon(t *testing.T, name, shard string) string {
	t.Helper()
	in := kinesis.GetShardIteratorInput{StreamName: &name, ShardId: &shard, ShardIteratorType: "TRIM_HORIZON"}
	return k.iterator(t, in)
}

func data(out *kinesis.GetRecordsOutput) string {
	text := ""
	for _, r := range out.Records {
		text += string(r.Data)
	}
	return text
}

// code returns the service's error code, or "" for none.
func code(err error) string {
	if err == nil {
		return ""
	}
	var service smithy.APIError
	if errors.As(err, &service) {
		return service.ErrorCode()
	}
	return "not a service error: " + err.Error()
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("error code %q, want %q", got, want)
	}
}

// clock is a clock that a test drives.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 987654321, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
