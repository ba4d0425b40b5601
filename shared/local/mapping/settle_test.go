package mapping_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
)

// notices returns the documents in the on-failure queue, as "first-last x size condition tries".
func (w *world) notices(url string) string {
	w.t.Helper()
	var out []string
	for _, n := range w.documents(url) {
		out = append(out, fmt.Sprintf("%s-%s x %d %s after %d", n.Batch.Start, n.Batch.End, n.Batch.Size, n.Request.Condition,
			n.Request.Count))
	}
	return strings.Join(out, "; ")
}

type document struct {
	Request struct {
		Condition string `json:"condition"`
		Count     int    `json:"approximateInvokeCount"`
	} `json:"requestContext"`
	Response map[string]any `json:"responseContext"`
	Batch    struct {
		Start string `json:"startSequenceNumber"`
		End   string `json:"endSequenceNumber"`
		Size  int    `json:"batchSize"`
	} `json:"KinesisBatchInfo"`
	raw string
}

func (w *world) documents(url string) (out []document) {
	w.t.Helper()
	got, err := w.q.ReceiveMessage(w.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
	w.must(err)
	for _, m := range got.Messages {
		out = append(out, decoded[document](w.t, *m.Body))
		out[len(out)-1].raw = *m.Body
	}
	return out
}

// poison fails every batch that holds one of the bad words: as a whole, or by naming them.
func poison(reports bool, bad ...string) func(int, []string, []string) (string, error) {
	return func(_ int, words, ids []string) (string, error) {
		if !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(bad, word) }) {
			return "", nil
		}
		if !reports {
			return "", errors.New("poison")
		}
		return failing(words, ids, bad...), nil
	}
}

// TestH4 simulates a record b of a, b, c, d that always fails, in every combination of settings.
func TestH4_APoisonRecordEndsInANotice(t *testing.T) {
	for _, c := range []struct {
		name   string
		config mapping.KinesisConfig
		seen   string // batches
		notice string // first and last word, size
		tries  int
	}{
		{"whole batch", mapping.KinesisConfig{MaximumRetryAttempts: 2}, "abcd abcd abcd", "ad4", 3},
		{"explicit 0", mapping.KinesisConfig{MaximumRetryAttempts: 0}, "abcd", "ad4", 1},
		{"bisect", mapping.KinesisConfig{MaximumRetryAttempts: 1, BisectBatchOnFunctionError: true},
			"abcd ab a b b cd", "bb1", 4},
		{"bisect without a retry", mapping.KinesisConfig{MaximumRetryAttempts: 0, BisectBatchOnFunctionError: true},
			"abcd ab a b cd", "bb1", 3},
		{"partial", mapping.KinesisConfig{MaximumRetryAttempts: 2, ReportBatchItemFailures: true},
			"abcd bcd bcd", "bd3", 3},
		{"partial, bisect, given up together", mapping.KinesisConfig{MaximumRetryAttempts: 2, ReportBatchItemFailures: true,
			BisectBatchOnFunctionError: true}, "abcd bcd bcd bcd", "bd3", 4},
		{"partial, bisect, given up alone", mapping.KinesisConfig{MaximumRetryAttempts: 1, ReportBatchItemFailures: true,
			BisectBatchOnFunctionError: true, SplitStuck: true}, "abcd bcd b b cd", "bb1", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
				w.stream(1)
				numbers := w.put("k", "a b c d")
				at := func(word byte) string { return numbers[word-'a'] }
				url, arn := w.queue("failed")
				f := &function{answer: poison(c.config.ReportBatchItemFailures, "b")}
				c.config.Invoke, c.config.OnFailure = f.invoke, arn
				m := w.fromKinesis(c.config)
				w.start(m)
				w.drained(m)
				f.wantSeen(w.t, c.seen)
				size := int64(c.notice[2] - '0')
				want := fmt.Sprintf("%s-%s x %d RetryAttemptsExhausted after %d", at(c.notice[0]), at(c.notice[1]), size, c.tries)
				if got := w.notices(url); got != want {
					t.Errorf("notices %s\nwant    %s", got, want)
				}
				s := m.Stats()
				if s.Dropped != size || s.DestinationDelivered != size || s.Shards["shardId-000000000000"].Checkpoint != at('d') {
					t.Errorf("stats %+v, want %d dropped and told, and the checkpoint at d", s, size)
				}
			})
		})
	}
}

func TestBisect_SplitsAtTheReturnedSequenceNumberWithoutUsingUpRetries(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b c d e")
		f := &function{answer: func(n int, words, ids []string) (string, error) {
			return failing(words, ids, []string{"b", "d", "e", ""}[min(n, 4)-1]), nil
		}}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, ReportBatchItemFailures: true,
			BisectBatchOnFunctionError: true})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "abcde bcde de e")
		if s := m.Stats(); s.Dropped != 0 || s.FailedInvoke != 4+2+1 || s.Invoked != 5+4+2+1 {
			t.Errorf("stats %+v, want nothing dropped", s)
		}
	})
}

func TestRetries_WithoutEndGoOn(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a")
		f := &function{answer: func(n int, _, _ []string) (string, error) {
			if n < 200 {
				return "", errors.New("down")
			}
			return "", nil
		}}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRetryAttempts: -1})
		w.start(m)
		w.drained(m)
		if s := m.Stats(); s.Invocations != 200 || s.Dropped != 0 {
			t.Errorf("stats %+v, want 200 invocations and nothing dropped", s)
		}
	})
}

func TestRetries_AThrottledInvocationIsNoAttempt(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a")
		f := &function{answer: func(n int, _, _ []string) (string, error) {
			if n < 9 {
				return "", fmt.Errorf("no concurrency left: %w", mapping.ErrThrottled)
			}
			return "", nil
		}}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRetryAttempts: 0})
		w.start(m)
		w.drained(m)
		if s := m.Stats(); s.Invocations != 9 || s.Dropped != 0 {
			t.Errorf("stats %+v, want 9 invocations and nothing dropped", s)
		}
	})
}

func TestRecordAge_EndsRetries(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		numbers := w.put("k", "a")
		time.Sleep(40 * time.Second)
		numbers = append(numbers, w.put("k", "b")...)
		url, arn := w.queue("failed")
		f := &function{answer: poison(false, "a")}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRetryAttempts: -1,
			MaximumRecordAge: time.Minute, OnFailure: arn})
		w.start(m)
		w.drained(m)
		notices := w.documents(url)
		if len(notices) != 1 || notices[0].Batch.Start != numbers[0] || notices[0].Batch.Size != 1 ||
			notices[0].Request.Condition != "RecordAgeExceeded" || notices[0].Response == nil {
			t.Fatalf("notices %+v, want one for a, whose response is known", notices)
		}
		if seen := f.seen(); !strings.HasSuffix(seen, "ab b") || m.Stats().Dropped != 1 {
			t.Errorf("invoked with %s, %d dropped, want b after a was dropped", seen[max(0, len(seen)-20):], m.Stats().Dropped)
		}
	})
}

func TestRecordAge_ARecordTooOldAtItsReadIsNeverInvokedWith(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a")
		time.Sleep(time.Minute + time.Millisecond)
		w.put("k", "b")
		url, arn := w.queue("failed")
		f := &function{}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRecordAge: time.Minute, OnFailure: arn})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "b")
		notices := w.documents(url)
		if len(notices) != 1 || notices[0].Request.Count != 0 || notices[0].Response != nil {
			t.Errorf("notices %+v, want one without a response", notices)
		}
	})
}

func TestNotice_IsAWSsDocumentToTheLetter(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		time.Sleep(4835 * time.Millisecond)
		numbers := w.put("k", "a")
		time.Sleep(745 * time.Millisecond)
		numbers = append(numbers, w.put("k", "b")...)
		url, arn := w.queue("failed")
		f := &function{answer: poison(false, "a")}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, OnFailure: arn,
			Function: "arn:aws:lambda:us-east-1:000000000000:function:f"})
		w.start(m)
		w.drained(m)
		raw := w.documents(url)[0].raw
		request := decoded[struct {
			Context struct{ RequestID string } `json:"requestContext"`
		}](w.t, raw).Context.RequestID
		wantJSON(w.t, []byte(raw), `{"requestContext":{"requestId":"`+request+`",
			"functionArn":"arn:aws:lambda:us-east-1:000000000000:function:f",
			"condition":"RetryAttemptsExhausted","approximateInvokeCount":1},
			"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},
			"version":"1.0","timestamp":"2000-01-01T00:00:05.580Z",
			"KinesisBatchInfo":{"shardId":"shardId-000000000000","startSequenceNumber":"`+numbers[0]+`",
			"endSequenceNumber":"`+numbers[1]+`","approximateArrivalOfFirstRecord":"2000-01-01T00:00:04.835Z",
			"approximateArrivalOfLastRecord":"2000-01-01T00:00:05.580Z","batchSize":2,
			"streamArn":"arn:aws:kinesis:us-east-1:000000000000:stream/s"}}`)
		if len(request) != 36 {
			t.Errorf("request id %q", request)
		}
	})
}

func TestNotice_ForS3HoldsTheEvent(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b")
		var key, doc string
		f := &function{answer: poison(true, "a")}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, ReportBatchItemFailures: true,
			OnFailureObject: func(k string, d []byte) error { key, doc = k, string(d); return nil }})
		w.start(m)
		w.drained(m)
		got := decoded[struct {
			Response map[string]any `json:"responseContext"`
			Payload  string         `json:"payload"`
		}](w.t, doc)
		if words, _ := contents([]byte(got.Payload)); strings.Join(words, "") != "ab" {
			t.Errorf("payload %s", got.Payload)
		}
		if _, named := got.Response["functionError"]; named {
			t.Errorf("a partial failure has the function error %v", got.Response)
		}
		parts := strings.Split(key, "/")
		if len(parts) != 8 || parts[0] != "aws" || len(parts[2]) != 36 || parts[3] != "shardId-000000000000" ||
			parts[4] != "2000" || !strings.HasPrefix(parts[7], "2000-01-01T00.00.00-") {
			t.Errorf("key %s", key)
		}
	})
}

func TestNotice_ThatCannotBeSentIsCountedAndTheShardGoesOn(t *testing.T) {
	down := queue.Config{Fault: func(c wire.Call) wire.Fault { return wire.Fault{Refuse: c.Name == "SendMessage"} }}
	bubble(t, stream.Config{}, down, func(w *world) {
		w.stream(1)
		w.put("k", "a")
		_, arn := w.queue("failed")
		f := &function{answer: poison(false, "a")}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, OnFailure: arn})
		w.start(m)
		w.drained(m)
		w.put("k", "b")
		w.drained(m)
		f.wantSeen(w.t, "a b")
		if s := m.Stats(); s.Dropped != 1 || s.DestinationFailed != 1 || s.DestinationDelivered != 0 || s.LastError == "" {
			t.Errorf("stats %+v, want one record lost", s)
		}
	})
}
