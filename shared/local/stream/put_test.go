package stream

import (
	"errors"
	"slices"
	"testing"
	"time"

	"abacus/shared/local/wire"
)

// These requests are not sent over the wire: ten mebibytes of base64 take seconds under the race detector.

func wantRefusal(t *testing.T, err error, code string) {
	t.Helper()
	if refusal, ok := errors.AsType[*wire.Error](err); !ok || refusal.Code != code {
		t.Errorf("error %v, want %s", err, code)
	}
}

func TestPutRecords_TakesTenMebibytes(t *testing.T) {
	s := New(Config{})
	if _, err := s.createStream(createRequest{StreamName: "s", ShardCount: 1}); err != nil {
		t.Fatal(err)
	}
	request := putRecordsRequest{target: target{StreamName: "s"},
		Records: slices.Repeat([]entry{{Data: make([]byte, 10<<20/20-1), PartitionKey: "k"}}, 20)}
	if _, err := s.putRecords(request); err != nil {
		t.Errorf("10 MiB: %v", err)
	}
	request.Records = append(request.Records, entry{Data: []byte{}, PartitionKey: "k"})
	_, err := s.putRecords(request)
	wantRefusal(t, err, "InvalidArgumentException")
}

// filled returns a server at a clock that *now drives, whose one shard holds n records of 1 MiB, and an iterator at the
// first of them.
func filled(t *testing.T, n int, now *time.Time, throttle bool) (*Server, readRequest) {
	t.Helper()
	s := New(Config{Now: func() time.Time { return *now }, Throttle: throttle})
	if _, err := s.createStream(createRequest{StreamName: "s", ShardCount: 1}); err != nil {
		t.Fatal(err)
	}
	made := s.streams["s"]
	for range n {
		made.shards[0].append("k", make([]byte, 1<<20-1), *now)
	}
	at := iterator{Stream: "s", Created: made.created.UnixMilli(), Shard: made.shards[0].id, Next: 1,
		Issued: now.UnixMilli()}
	return s, readRequest{ShardIterator: at.text()}
}

func TestGetRecords_StopsAtTenMebibytes(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, request := filled(t, 11, &now, false)
	for _, want := range []int{10, 1} {
		out, err := s.getRecords(request)
		if err != nil {
			t.Fatal(err)
		}
		answer := out.(map[string]any)
		if records := answer["Records"].([]recordShape); len(records) != want {
			t.Errorf("a read has %d records of 1 MiB, want %d", len(records), want)
		}
		if behind := answer["MillisBehindLatest"].(int64); (behind > 0) != (want == 10) {
			t.Errorf("%d ms behind after %d records", behind, want)
		}
		request.ShardIterator = answer["NextShardIterator"].(string)
	}
}

func TestThrottle_ALargeReadBlocksTheSecondsItIsWorth(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, request := filled(t, 10, &now, true)
	if _, err := s.getRecords(request); err != nil {
		t.Fatal(err)
	}
	now = now.Add(5*time.Second - 1)
	_, err := s.getRecords(request)
	wantRefusal(t, err, "ProvisionedThroughputExceededException")
	now = now.Add(1)
	if _, err = s.getRecords(request); err != nil {
		t.Errorf("five seconds after a read of 10 MiB: %v", err)
	}
}
