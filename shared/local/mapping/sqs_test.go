package mapping_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
)

func TestSQS_WhatIsProcessedIsDeletedAndTheRestComesAgain(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q", "VisibilityTimeout", "60")
		w.send(url, "a b c")
		start := time.Now()
		f := &function{answer: func(n int, words, ids []string) (string, error) {
			if n == 2 && time.Since(start) != time.Minute {
				t.Errorf("came again after %v, want the visibility timeout", time.Since(start))
			}
			return failing(words, ids, map[int]string{1: "b"}[n]), nil
		}}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, ReportBatchItemFailures: true})
		w.start(m)
		time.Sleep(time.Second)
		if got := w.depth(url); got != "0/1" {
			t.Errorf("the queue holds %s, want b alone, hidden", got)
		}
		w.drained(m)
		f.wantSeen(w.t, "abc b")
		if s := m.Stats(); s.Polled != 4 || s.Invoked != 4 || s.FailedInvoke != 1 || s.Deleted != 3 || s.DeleteFailed != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestC8_AFunctionThatTimesOutGetsItsWholeBatchAgain(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q")
		w.send(url, "0 1 2 3 4 5 6 7 8 9")
		f := &function{hold: 1500 * time.Millisecond, answer: func(n int, _, _ []string) (string, error) {
			if n == 1 {
				return "", errors.New("task timed out after 1.50 seconds")
			}
			return `{"batchItemFailures":[]}`, nil
		}}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, ReportBatchItemFailures: true})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "0123456789 0123456789")
	})
}

func TestSQS_APoisonMessageEndsInTheDeadLetterQueueAlone(t *testing.T) {
	for _, reports := range []bool{true, false} {
		bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
			dead, arn := w.queue("dead")
			url, _ := w.queue("q", "RedrivePolicy", `{"maxReceiveCount":"5","deadLetterTargetArn":"`+arn+`"}`,
				"VisibilityTimeout", "2")
			f := &function{answer: poison(reports, "b")}
			m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, ReportBatchItemFailures: reports, BatchSize: 1})
			w.start(m)
			w.send(url, "a b c")
			w.drained(m)
			if n := strings.Count(f.seen(), "b"); n != 5 || w.left(dead) != "b" {
				t.Errorf("b came %d times and the dead-letter queue holds %q, want 5 and b", n, w.left(dead))
			}
		})
	}
}

func TestE5_OnlyWhatFailedToBeDeletedIsTriedAgain(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{} // by entry id
	calls := 0
	fail := queue.Config{FailEntry: func(e queue.Entry) *queue.Failure {
		mu.Lock()
		defer mu.Unlock()
		if e.Operation != "DeleteMessageBatch" {
			return nil
		}
		calls++
		if asked[e.Message]++; asked[e.Message] > 1 {
			return nil
		}
		return map[string]*queue.Failure{"3": {Code: "InternalError"}, "4": {Code: "InternalError", Applied: true},
			"5": {Code: "ReceiptHandleIsInvalid", SenderFault: true}}[e.ID]
	}}
	bubble(t, stream.Config{}, fail, func(w *world) {
		url, _ := w.queue("q")
		w.send(url, "0 1 2 3 4 5 6 7 8 9")
		f := &function{}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke})
		w.start(m)
		time.Sleep(10 * time.Second)
		if got := w.depth(url); got != "0/1" || calls != 12 {
			t.Errorf("the queue holds %s after %d entries were sent, want the sender's fault alone after 12", got, calls)
		}
		if s := m.Stats(); s.Deleted != 9 || s.DeleteFailed != 1 {
			t.Errorf("stats %+v", s)
		}
		w.drained(m)
		f.wantSeen(w.t, "0123456789 5") // harmless: it only comes again
	})
}

func TestE5_ADeleteThatNeverWorksIsGivenUp(t *testing.T) {
	down := queue.Config{Fault: func(c wire.Call) wire.Fault { return wire.Fault{Refuse: c.Name == "DeleteMessageBatch"} }}
	bubble(t, stream.Config{}, down, func(w *world) {
		url, _ := w.queue("q", "VisibilityTimeout", "600")
		w.send(url, "a")
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: (&function{}).invoke})
		w.start(m)
		time.Sleep(time.Minute)
		if s := m.Stats(); s.DeleteFailed != 1 || s.Running != 0 || s.LastError == "" {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestFIFO_NoSecondBatchOfAGroupWhileOneIsOut(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q.fifo", "FifoQueue", "true")
		w.send(url, "a1 a2 b1 a3 b2 c1 a4")
		var mu sync.Mutex
		out, order := map[string]bool{}, map[string]string{}
		failed := false
		f := &function{answer: func(_ int, words, ids []string) (string, error) {
			mu.Lock()
			groups := map[string]bool{}
			for _, word := range words {
				groups[word[:1]] = true
			}
			for g := range groups {
				if out[g] {
					t.Errorf("%v was invoked with while another batch of group %s was out", words, g)
				}
				out[g] = true
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			for g := range groups {
				delete(out, g)
			}
			if at := slices.Index(words, "a2"); at >= 0 && !failed { // it and all after it failed
				failed = true
				for _, word := range words[:at] {
					order[word[:1]] += word
				}
				return failing(words, ids, words[at:]...), nil
			}
			for _, word := range words {
				order[word[:1]] += word
			}
			return "", nil
		}}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, BatchSize: 2, ReportBatchItemFailures: true})
		w.start(m)
		w.drained(m)
		if got := order["a"] + " " + order["b"] + " " + order["c"]; got != "a1a2a3a4 b1b2 c1" {
			t.Errorf("processed %s", got)
		}
		if !failed {
			t.Error("a2 never failed: this test proves nothing")
		}
	})
}

func TestSQS_MaximumConcurrencyBounds(t *testing.T) {
	for most, want := range map[int]int{0: 5, 2: 2, 7: 7} {
		bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
			url, _ := w.queue("q")
			w.send(url, strings.Repeat("a ", 20))
			f := &function{hold: time.Second}
			m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, BatchSize: 1, MaximumConcurrency: most})
			w.start(m)
			w.drained(m)
			if f.most != want {
				t.Errorf("%d invocations at once, want %d", f.most, want)
			}
		})
	}
}

func TestSQS_AWindowGathersBeyondTen(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q")
		f := &function{}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, BatchSize: 25, BatchingWindow: 5 * time.Second,
			MaximumConcurrency: 2})
		w.send(url, strings.Repeat("a ", 25))
		w.start(m)
		w.drained(m)
		total := strings.Count(f.seen(), "a")
		if total != 25 || !slices.ContainsFunc(strings.Fields(f.seen()), func(b string) bool { return len(b) > 10 }) {
			t.Errorf("batches %q, want 25 messages and one batch above ten", f.seen())
		}
	})
}

func TestSQS_AWindowEnds(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q")
		f := &function{}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, BatchSize: 10, BatchingWindow: 7 * time.Second})
		w.start(m)
		w.send(url, "a")
		time.Sleep(7*time.Second - time.Millisecond)
		f.wantSeen(w.t, "")
		time.Sleep(2 * time.Millisecond)
		f.wantSeen(w.t, "a")
	})
}

func TestSQS_StoppingDeletesWhatEndsAndGivesBackTheRest(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q", "VisibilityTimeout", "600")
		w.send(url, "a b c")
		f := &function{hold: 10 * time.Second}
		cut := mapping.Pace{Chaos: func(mapping.Delivery) mapping.Twist { return mapping.Twist{Cut: 1} }}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, Pace: cut})
		stop := w.start(m)
		time.Sleep(time.Second)
		stop()
		if got := w.left(url); got != "b c" || f.seen() != "a" {
			t.Errorf("invoked with %q and %q is visible, want a, and b c", f.seen(), got)
		}
	})
}

func TestSQS_AnIdleMappingStopsAtOnce(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q")
		stop := w.start(w.fromSQS(url, mapping.SQSConfig{Invoke: (&function{}).invoke}))
		time.Sleep(time.Second)
		before := time.Now()
		stop()
		if time.Since(before) != 0 {
			t.Errorf("stopping took %v", time.Since(before))
		}
		synctest.Wait()
		w.send(url, "a")
		if got := w.left(url); got != "a" {
			t.Errorf("%q is visible, want a: a poller still took messages", got)
		}
	})
}

func TestSQS_ALostReceiveCostsAVisibilityTimeoutAlone(t *testing.T) {
	var receives atomic.Int64
	lost := queue.Config{Fault: func(c wire.Call) wire.Fault { // the first of each poller: one of them takes the message
		return wire.Fault{Lose: c.Name == "ReceiveMessage" && receives.Add(1) <= 2}
	}}
	bubble(t, stream.Config{}, lost, func(w *world) {
		url, _ := w.queue("q")
		w.send(url, "a")
		start := time.Now()
		f := &function{}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, MaximumConcurrency: 2})
		w.start(m)
		w.drained(m)
		if f.wantSeen(w.t, "a"); time.Since(start) < 30*time.Second {
			t.Errorf("came after %v, before its visibility timeout", time.Since(start))
		}
	})
}

func TestSQS_FailuresSlowPollingUnlessReported(t *testing.T) {
	for reports, want := range map[bool]bool{true: false, false: true} {
		bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
			url, _ := w.queue("q", "VisibilityTimeout", "0")
			w.send(url, "a")
			f := &function{answer: func(n int, _, _ []string) (string, error) {
				if n < 100 {
					return "", errors.New("down")
				}
				return "", nil
			}}
			start := time.Now()
			m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, ReportBatchItemFailures: reports})
			w.start(m)
			for len(strings.Fields(f.seen())) < 100 {
				time.Sleep(time.Millisecond)
			}
			if slow := time.Since(start) > time.Second; slow != want {
				t.Errorf("reports %v: a hundred failures took %v", reports, time.Since(start))
			}
		})
	}
}

func TestSQS_AThousandMessagesOnARealSocketAreProcessedOnceEach(t *testing.T) {
	server := httptest.NewServer(queue.New(queue.Config{}))
	t.Cleanup(server.Close)
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	w := &world{t: t, q: client}
	url, _ := w.queue("q")
	for i := range 100 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for j := range 10 {
			id := fmt.Sprint(i*10 + j)
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &id})
		}
		_, err := client.SendMessageBatch(t.Context(), in)
		w.must(err)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	f := &function{answer: func(_ int, words, _ []string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, word := range words {
			seen[word]++
		}
		return "", nil
	}}
	m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, MaximumConcurrency: 16})
	w.start(m)
	w.drained(m)
	for word, n := range seen {
		if n != 1 {
			t.Errorf("message %s came %d times", word, n)
		}
	}
	if len(seen) != 1000 || m.Stats().Deleted != 1000 {
		t.Errorf("%d messages came and %d were deleted, want 1000", len(seen), m.Stats().Deleted)
	}
}
