package mapping_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
)

func TestKinesis_BatchesCloseOnTheirSize(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b c d e f g")
		f := &function{}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 3})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "abc def g")
	})
}

func TestKinesis_AWindowGathersUntilItEnds(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		f := &function{}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 4, BatchingWindow: 10 * time.Second,
			Pace: mapping.Pace{PollInterval: 100 * time.Millisecond}})
		w.start(m)
		for _, word := range []string{"a", "b"} {
			w.put("k", word)
			time.Sleep(4 * time.Second)
		}
		f.wantSeen(w.t, "")
		time.Sleep(3 * time.Second)
		f.wantSeen(w.t, "ab")
		w.put("k", "c d e f g")
		time.Sleep(time.Second)
		f.wantSeen(w.t, "ab cdef")
		w.drained(m)
		f.wantSeen(w.t, "ab cdef g")
	})
}

func TestKinesis_ShardsAreReadSideBySideAndEachInOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(4)
		f := &function{hold: time.Second}
		done := map[string][]string{} // by key: what was processed, in the order of processing
		f.answer = func(_ int, words, ids []string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			fails := len(words)
			switch chance.IntN(4) {
			case 0:
				return "", errors.New("down")
			case 1:
				fails = chance.IntN(len(words))
			}
			for _, word := range words[:fails] {
				key, n, _ := strings.Cut(word, ".")
				done[key] = append(done[key], n)
			}
			if fails == len(words) {
				return "", nil
			}
			return failing(words, ids, words[fails:]...), nil
		}
		for i := range 40 {
			key := fmt.Sprint("k", i%8)
			w.put(key, fmt.Sprintf("%s.%02d", key, i/8))
		}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 4, MaximumRetryAttempts: -1,
			ReportBatchItemFailures: true, BisectBatchOnFunctionError: true})
		w.start(m)
		w.drained(m)
		for key, got := range done {
			if strings.Join(got, " ") != "00 01 02 03 04" {
				t.Errorf("%s was processed in the order %v", key, got)
			}
		}
		if len(done) != 8 || f.most < 2 || f.most > 4 {
			t.Errorf("%d keys, %d invocations at once, want 8 and 2 to 4", len(done), f.most)
		}
	})
}

func TestParallelizationFactor_KeepsOrderByPartitionKeyAlone(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		f := &function{hold: time.Second}
		last := map[string]string{}
		var mu sync.Mutex
		f.answer = func(_ int, words, _ []string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, word := range words {
				key, n, _ := strings.Cut(word, ".")
				if n <= last[key] {
					t.Errorf("%s came after %s.%s", word, key, last[key])
				}
				last[key] = n
			}
			return "", nil
		}
		numbers := []string{}
		for i := range 100 {
			key := fmt.Sprint("k", i%20)
			numbers = append(numbers, w.put(key, fmt.Sprintf("%s.%d", key, i/20))...)
		}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 5, ParallelizationFactor: 4})
		w.start(m)
		w.drained(m)
		if f.most != 4 || len(last) != 20 {
			t.Errorf("%d invocations at once, %d keys, want 4 and 20", f.most, len(last))
		}
		if s := m.Stats().Shards["shardId-000000000000"]; s.Checkpoint != numbers[99] || s.Outstanding != 0 {
			t.Errorf("shard %+v, want the checkpoint at the last record", s)
		}
	})
}

func TestParallelizationFactor_TheCheckpointWaitsForTheSlowestLane(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		first := w.put("k0", "bad")[0]
		for i := range 20 {
			w.put(fmt.Sprint("k", i), "x")
		}
		f := &function{answer: poison(false, "bad")}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 1, ParallelizationFactor: 10,
			MaximumRetryAttempts: -1})
		w.start(m)
		time.Sleep(time.Minute)
		if s := m.Stats().Shards["shardId-000000000000"]; s.Checkpoint != "" || s.Outstanding == 0 {
			t.Errorf("shard %+v while %s is not done with, want no checkpoint", s, first)
		}
	})
}

func (w *world) split() {
	w.t.Helper()
	_, err := w.k.SplitShard(w.t.Context(), &kinesis.SplitShardInput{StreamName: aws.String("s"),
		ShardToSplit:       aws.String("shardId-000000000000"),
		NewStartingHashKey: aws.String("170141183460469231731687303715884105728")})
	w.must(err)
}

func TestReshard_ParentsComeBeforeTheirChildren(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b c")
		w.split()
		w.put("k", "d e")
		_, err := w.k.MergeShards(w.t.Context(), &kinesis.MergeShardsInput{StreamName: aws.String("s"),
			ShardToMerge: aws.String("shardId-000000000001"), AdjacentShardToMerge: aws.String("shardId-000000000002")})
		w.must(err)
		w.put("k", "f")
		f := &function{hold: time.Second, answer: func(n int, _, _ []string) (string, error) {
			if n%2 == 1 {
				return "", errors.New("down")
			}
			return "", nil
		}}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRetryAttempts: -1, BatchSize: 2})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "ab ab c c de de f f")
		s := m.Stats().Shards
		if len(s) != 4 || !s["shardId-000000000000"].Done || !s["shardId-000000000002"].Done ||
			s["shardId-000000000003"].Done {
			t.Errorf("shards %+v, want all but the last done", s)
		}
	})
}

func TestReshard_WhileRunningLosesNothing(t *testing.T) {
	for _, start := range []string{"TRIM_HORIZON", "LATEST"} {
		slow := nth("ListShards", 2, wire.Fault{Lose: true}) // the children stay unknown for a while
		bubble(t, stream.Config{Fault: slow}, queue.Config{}, func(w *world) {
			w.stream(1)
			f := &function{}
			m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, StartingPosition: start})
			w.start(m)
			w.drained(m)
			w.put("k", "a")
			w.drained(m)
			w.split()
			w.put("k", "b")
			w.drained(m) // between the end of the parent and the sight of its children nothing is drained
			f.wantSeen(w.t, "a b")
		})
	}
}

func TestStartingPosition(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a")
		time.Sleep(time.Minute)
		at := time.Now()
		w.put("k", "b")
		for _, c := range []struct {
			start string
			at    time.Time
			want  string
		}{{"TRIM_HORIZON", time.Time{}, "ab"}, {"AT_TIMESTAMP", at, "b"}, {"LATEST", time.Time{}, ""}} {
			f := &function{}
			m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, StartingPosition: c.start,
				StartingPositionTimestamp: c.at})
			stop := w.start(m)
			w.drained(m)
			f.wantSeen(w.t, c.want)
			stop()
		}
	})
}

func TestStartingPosition_LatestLeavesClosedShardsAlone(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a")
		w.split()
		f := &function{}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, StartingPosition: "LATEST"})
		w.start(m)
		w.drained(m)
		w.put("k", "b")
		w.drained(m)
		f.wantSeen(w.t, "b")
		if s := m.Stats().Shards; len(s) != 2 {
			t.Errorf("shards %+v were read, want the two open ones", s)
		}
	})
}

// nth returns a fault that makes the nth call of an operation go wrong, from 1.
func nth(operation string, n int, fault wire.Fault) func(wire.Call) wire.Fault {
	seen := 0
	var mu sync.Mutex
	return func(c wire.Call) wire.Fault {
		mu.Lock()
		defer mu.Unlock()
		if c.Name != operation {
			return wire.Fault{}
		}
		if seen++; seen != n {
			return wire.Fault{}
		}
		return fault
	}
}

func TestE2_TroubleWithReadsLosesAndRepeatsNothing(t *testing.T) {
	for name, fault := range map[string]wire.Fault{
		"expired":   {Before: wire.Errorf("ExpiredIteratorException", "too late")},
		"throttled": {Before: wire.Errorf("ProvisionedThroughputExceededException", "slow down")},
		"lost":      {Lose: true},
		"refused":   {Refuse: true},
		"after":     {After: &wire.Error{Code: "InternalFailure", Status: 500}},
		"hang":      {Hang: true},
	} {
		for n := range 3 {
			t.Run(fmt.Sprint(name, " at read ", n+1), func(t *testing.T) {
				bubble(t, stream.Config{Fault: nth("GetRecords", n+1, fault)}, queue.Config{}, func(w *world) {
					w.stream(1)
					w.put("k", strings.Repeat("a ", 100)+strings.Repeat("b ", 100)+"c")
					f := &function{}
					m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke})
					w.start(m)
					w.drained(m)
					f.wantSeen(w.t, strings.Repeat("a", 100)+" "+strings.Repeat("b", 100)+" c")
					if m.Stats().LastError == "" {
						t.Error("the fault left no trace")
					}
				})
			})
		}
	}
}

func TestE2_TroubleWithListsAndIteratorsIsRetried(t *testing.T) {
	for _, operation := range []string{"ListShards", "GetShardIterator"} {
		bubble(t, stream.Config{Fault: nth(operation, 1, wire.Fault{Lose: true})}, queue.Config{}, func(w *world) {
			w.stream(1)
			w.put("k", "a")
			f := &function{}
			m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke})
			w.start(m)
			w.drained(m)
			f.wantSeen(w.t, "a")
		})
	}
}

func TestE2_AnIteratorThatExpiresWhileAFunctionIsDownIsReplaced(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", strings.Repeat("a ", 450))
		f := &function{answer: func(n int, _, _ []string) (string, error) {
			if n == 1 {
				time.Sleep(6 * time.Minute)
				return "", errors.New("down")
			}
			return "", nil
		}}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRetryAttempts: -1})
		w.start(m)
		w.drained(m)
		a := strings.Repeat("a", 100)
		f.wantSeen(w.t, strings.Join([]string{a, a, a, a, a, a[:50]}, " "))
		if m.Stats().LastError == "" {
			t.Error("no iterator expired: this test proves nothing")
		}
	})
}

func TestE2_ALatestIteratorThatExpiresUnusedMissesNothing(t *testing.T) {
	start := time.Time{}
	hang := func(c wire.Call) wire.Fault { // no read works for ten minutes
		if c.Name == "GetRecords" && time.Since(start) < 10*time.Minute {
			return wire.Fault{Refuse: true}
		}
		return wire.Fault{}
	}
	bubble(t, stream.Config{Fault: hang}, queue.Config{}, func(w *world) {
		start = time.Now()
		w.stream(1)
		w.put("k", "a")
		time.Sleep(time.Second)
		f := &function{}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, StartingPosition: "LATEST"})
		w.start(m)
		synctest.Wait()
		w.put("k", "b")
		w.drained(m)
		f.wantSeen(w.t, "b")
	})
}

func TestE2_ATrimmedPositionGoesOnWithWhatIsLeft(t *testing.T) {
	for rule := range 3 {
		bubble(t, stream.Config{Trimmed: stream.Trimmed(rule)}, queue.Config{}, func(w *world) {
			w.stream(1)
			w.put("k", "a")
			release := make(chan struct{})
			f := &function{answer: func(n int, _, _ []string) (string, error) {
				if n == 1 {
					<-release
				}
				return "", nil
			}}
			m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, Pace: mapping.Pace{PollInterval: 30 * time.Hour}})
			w.start(m)
			synctest.Wait()
			w.put("k", "b")
			time.Sleep(29 * time.Hour) // b is gone before the next read
			w.put("k", "c")
			close(release)
			if rule == int(stream.TrimmedReadsEmpty) {
				return // such a reader stands still: MillisBehindLatest tells
			}
			w.drainedWithin(100*time.Hour, m)
			f.wantSeen(w.t, "a c")
		})
	}
}
