package mapping_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
)

func TestStop_LetsAnInvocationEndAndStartsNoOther(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		numbers := w.put("k", "a b")
		f := &function{hold: 10 * time.Second}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 1})
		stop := w.start(m)
		time.Sleep(time.Second)
		before := time.Now()
		stop()
		if waited := time.Since(before); waited != 9*time.Second {
			t.Errorf("stopping took %v, want the 9s that the invocation had left", waited)
		}
		f.wantSeen(w.t, "a")
		if s := m.Stats(); s.Shards["shardId-000000000000"].Checkpoint != numbers[0] || s.Running != 0 ||
			s.FailedInvoke != 0 {
			t.Errorf("stats %+v, want the checkpoint at a", s)
		}
	})
}

func TestStop_CutsAnInvocationOffAtTheEndOfTheGrace(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a")
		url, arn := w.queue("failed")
		f := &function{hold: time.Hour}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, OnFailure: arn,
			Pace: mapping.Pace{Grace: 5 * time.Second}})
		stop := w.start(m)
		time.Sleep(time.Second)
		before := time.Now()
		stop()
		if waited := time.Since(before); waited != 5*time.Second {
			t.Errorf("stopping took %v, want the grace", waited)
		}
		if s := m.Stats(); s.Dropped != 0 || w.left(url) != "" || s.Shards["shardId-000000000000"].Outstanding != 1 {
			t.Errorf("stats %+v, want the record neither dropped nor done with", s)
		}
	})
}

func TestRun_SaysWhatDoesNotExist(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		f := &function{}
		err := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke}).Run(w.t.Context())
		if err == nil || !strings.Contains(err.Error(), "stream/s") {
			t.Errorf("without a stream: %v", err)
		}
		w.stream(1)
		arn := "arn:aws:sqs:us-east-1:000000000000:none"
		err = w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, OnFailure: arn}).Run(w.t.Context())
		if err == nil || !strings.Contains(err.Error(), arn) {
			t.Errorf("without a destination: %v", err)
		}
		none := "http://sqs.local/000000000000/none"
		err = w.fromSQS(none, mapping.SQSConfig{Invoke: f.invoke}).Run(w.t.Context())
		if err == nil || !strings.Contains(err.Error(), none) {
			t.Errorf("without a queue: %v", err)
		}
	})
}

func TestH1_AFunctionMayNotOutliveTheVisibilityTimeout(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q", "VisibilityTimeout", "30")
		f := &function{}
		err := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, FunctionTimeout: 31 * time.Second}).Run(w.t.Context())
		if err == nil || !strings.Contains(err.Error(), "six times") {
			t.Errorf("error %v, want one that says what to do", err)
		}
		w.start(w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, FunctionTimeout: 30 * time.Second}))
		synctest.Wait()
	})
}

func TestDrained_WaitsForWhatIsOutAndEndsWithItsContext(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(2)
		f := &function{hold: 5 * time.Second}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke})
		w.start(m)
		w.drained(m)
		for range 2 { // what was drained once must not look so again
			before := time.Now()
			w.put("k", "a")
			w.drained(m)
			if time.Since(before) < 5*time.Second {
				t.Error("drained with an invocation under way")
			}
		}
		w.put("k", "b")
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if err := m.Drained(ctx); err == nil {
			t.Error("drained with a record outstanding")
		}
	})
}

func TestStats_CountByAWSsNames(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b c")
		f := &function{answer: func(n int, words, ids []string) (string, error) {
			return failing(words, ids, map[int]string{1: "b"}[n]), nil
		}}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRetryAttempts: -1, ReportBatchItemFailures: true})
		w.start(m)
		w.drained(m)
		s := m.Stats()
		if s.Polled != 3 || s.Invoked != 5 || s.FailedInvoke != 2 || s.Invocations != 2 || s.Dropped != 0 ||
			s.Running != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestConfig_NamesEverythingThatIsWrong(t *testing.T) {
	_, err := mapping.NewKinesis(mapping.KinesisConfig{Stream: "s", StartingPosition: "x", BatchSize: 10_001,
		BatchingWindow: 301 * time.Second, ParallelizationFactor: 11, MaximumRetryAttempts: -2,
		MaximumRecordAge: 59 * time.Second,
		OnFailure:        "q"})
	for _, part := range []string{"arn:aws:kinesis", "Client", "StartingPosition", "BatchSize", "BatchingWindow",
		"ParallelizationFactor", "MaximumRetryAttempts", "MaximumRecordAge", "OnFailure", "arn:aws:sqs"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not tell of %s: %v", part, err)
		}
	}
	for _, c := range []mapping.SQSConfig{{Queue: "u", BatchSize: 11},
		{Queue: "u.fifo", BatchSize: 11, BatchingWindow: time.Second},
		{Queue: "u.fifo", BatchingWindow: time.Second}, {Queue: "u", MaximumConcurrency: 1},
		{Queue: "u", MaximumConcurrency: 1001}, {Queue: "u", BatchSize: 10_001, BatchingWindow: time.Second},
		{BatchSize: 1}, {Queue: "u", BatchingWindow: 301 * time.Second},
		{Queue: "u", BatchSize: -1}} {
		bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
			c.Client, c.Invoke = w.q, (&function{}).invoke
			if _, err := mapping.NewSQS(c); err == nil {
				t.Errorf("%+v was accepted", c)
			}
		})
	}
}
