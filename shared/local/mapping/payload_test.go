package mapping

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEvent_ArrivalKeepsItsMillisecondThroughFloatingPoint(t *testing.T) {
	for at, want := range map[time.Time]string{
		time.Unix(1545084650, 986999988): "1545084650.987", // what floating point makes of .987
		time.Unix(1545084650, 0):         "1545084650",
		time.Unix(4102444800, 1e6):       "4102444800.001",
	} {
		if got, err := json.Marshal(seconds(at)); err != nil || string(got) != want {
			t.Errorf("%v is written %s, %v; want %s", at, got, err, want)
		}
	}
}

func TestPayload_FitsSixMegabytesToTheByte(t *testing.T) {
	head := len(eventHead) + len(eventTail)
	half := make([]byte, (maxPayload-head-1)/2) // two of them and a comma
	full := [][]byte{half, make([]byte, maxPayload-head-1-len(half))}
	if n := fitting(full); n != 2 || len(event(full)) != maxPayload {
		t.Errorf("%d records of %d bytes fit, want 2", n, len(event(full)))
	}
	full[1] = append(full[1], 0)
	if n := fitting(full); n != 1 {
		t.Errorf("%d records of one byte more fit, want 1", n)
	}
	if n := fitting([][]byte{make([]byte, maxPayload-head)}); n != 1 {
		t.Error("one record of 6 MB does not fit")
	}
	if n := fitting([][]byte{make([]byte, maxPayload-head+1)}); n != 0 {
		t.Error("one record of 6 MB and a byte fits")
	}
}

func TestPayload_ClosesABatchAndAnOversizedRecordIsGivenUp(t *testing.T) {
	var batches []int
	k := &Kinesis{c: KinesisConfig{BatchSize: 100, MaximumRetryAttempts: -1, Pace: Pace{}.complete(),
		Invoke: func(_ context.Context, event []byte) ([]byte, error) {
			batches = append(batches, bytes.Count(event, []byte("record")))
			return nil, nil
		}}}
	k.stats.Shards = map[string]ShardStats{}
	l := &lane{d: &shard{k: k, id: "shardId-000000000000"}, in: make(chan []*record, 1)}
	sized := func(size int) *record {
		return &record{text: append([]byte("record"), bytes.Repeat([]byte("."), size)...)}
	}
	l.in <- []*record{sized(2.5e6), sized(2.5e6), sized(2.5e6), sized(7e6), sized(1)}
	close(l.in)
	l.run(t.Context(), t.Context())
	if !slices.Equal(batches, []int{2, 1, 1}) || k.stats.Dropped != 1 {
		t.Errorf("batches %v, %d dropped; want 2 1 1 and one", batches, k.stats.Dropped)
	}
}

func TestJudge_OnlyNamesOfTheBatchFail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[0-9]{1,3}`), 1, 6, rapid.ID).Draw(t, "ids")
		named := rapid.SliceOf(rapid.SampledFrom(ids)).Draw(t, "named")
		var r struct {
			Failures []map[string]string `json:"batchItemFailures"`
		}
		for _, id := range named {
			r.Failures = append(r.Failures, map[string]string{"itemIdentifier": id})
		}
		text, _ := json.Marshal(r)
		v := judge(text, ids, true)
		for _, id := range ids {
			if v.err != nil || v.failed[id] != slices.Contains(named, id) {
				t.Fatalf("%s of %s: %v", id, text, v)
			}
		}
	})
}

func FuzzJudge(f *testing.F) {
	for _, seed := range []string{``, `null`, `{}`, `{"batchItemFailures":`,
		`{"batchItemFailures":[{"itemIdentifier":"1"}]}`,
		`{"batchItemFailures":[null]}`, `[[`, `{"batchItemFailures":[{"itemIdentifier":"\ud800"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		v := judge(response, []string{"1", "2"}, true)
		for id := range v.failed {
			if id != "1" && id != "2" {
				t.Errorf("%q names %q, which is not of the batch", response, id)
			}
		}
		if v.err != nil && v.failed != nil {
			t.Errorf("%q fails whole and in part", response)
		}
	})
}
