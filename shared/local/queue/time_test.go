package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"abacus/shared/local/queue"
)

// The tests of this file run at a fake clock, in a bubble where waiting costs nothing.

func bubble(t *testing.T, test func(*testing.T, mail)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, standIn(queue.Config{})) })
}

func TestVisibility_EndsAfterTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t, "VisibilityTimeout", "60")
		m.send(t, url, "a")
		first := m.one(t, url).Attributes["ApproximateFirstReceiveTimestamp"]
		time.Sleep(time.Minute - time.Nanosecond)
		if got := m.receive(t, url, 0); len(got) != 0 {
			t.Errorf("received %q before the timeout ended", bodies(got))
		}
		time.Sleep(time.Nanosecond)
		wantAttributes(t, m.one(t, url), map[string]string{"ApproximateReceiveCount": "2",
			"ApproximateFirstReceiveTimestamp": first})
	})
}

func TestVisibility_IsChangedFromNowOnAndEndsTwelveHoursAfterTheReceive(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t)
		m.send(t, url, "a")
		handle := *m.one(t, url).ReceiptHandle
		time.Sleep(20 * time.Second)
		wantCode(t, m.hide(t, url, handle, 43_200), "InvalidParameterValue")
		wantCode(t, m.hide(t, url, handle, 43_180), "")
		time.Sleep(43_179 * time.Second)
		if got := m.receive(t, url, 0); len(got) != 0 {
			t.Errorf("received %q before the changed timeout ended", bodies(got))
		}
		time.Sleep(time.Second)
		wantCode(t, m.hide(t, url, handle, 5), "MessageNotInflight")
		m.one(t, url)
		wantCode(t, m.hide(t, url, handle, 5), "InvalidParameterValue")
	})
}

func TestLongPoll_ReturnsOnArrival(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		var later sync.WaitGroup
		defer later.Wait()
		url, start := m.create(t), time.Now()
		later.Go(func() {
			time.Sleep(7 * time.Second)
			m.send(t, url, "a")
		})
		if got := bodies(m.receive(t, url, 20*time.Second)); got != "a" || time.Since(start) != 7*time.Second {
			t.Errorf("received %q after %v, want a after 7s", got, time.Since(start))
		}
	})
}

func TestLongPoll_NoticesAMessageThatBecomesVisibleAgain(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		var later sync.WaitGroup
		defer later.Wait()
		url := m.create(t, "VisibilityTimeout", "5")
		m.send(t, url, "a")
		start := time.Now()
		m.one(t, url)
		got := m.receive(t, url, 20*time.Second)
		if bodies(got) != "a" || time.Since(start) != 5*time.Second {
			t.Errorf("received %q after %v, want a after 5s", bodies(got), time.Since(start))
		}
		later.Go(func() {
			time.Sleep(time.Second)
			wantCode(t, m.hide(t, url, *got[0].ReceiptHandle, 0), "")
		})
		if got := bodies(m.receive(t, url, 20*time.Second)); got != "a" || time.Since(start) != 6*time.Second {
			t.Errorf("received %q after %v, want a after 6s", got, time.Since(start))
		}
	})
}

func TestLongPoll_NoticesTheEndOfADelayAndOfAGroupsWait(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		var later sync.WaitGroup
		defer later.Wait()
		start, url := time.Now(), m.create(t, "DelaySeconds", "3")
		m.send(t, url, "a")
		if got := bodies(m.receive(t, url, 20*time.Second)); got != "a" || time.Since(start) != 3*time.Second {
			t.Errorf("received %q after %v, want a after 3s", got, time.Since(start))
		}
		fifo := m.create(t, "FifoQueue", "true")
		m.sendFIFO(t, fifo, "g", "1", "1")
		first := m.one(t, fifo)
		m.sendFIFO(t, fifo, "g", "2", "2")
		later.Go(func() {
			time.Sleep(time.Second)
			wantCode(t, m.delete(fifo, *first.ReceiptHandle)(t), "")
		})
		if got := bodies(m.receive(t, fifo, 20*time.Second)); got != "2" || time.Since(start) != 4*time.Second {
			t.Errorf("received %q after %v, want 2 after 4s", got, time.Since(start))
		}
	})
}

func TestLongPoll_ComesBackEmpty(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t, "ReceiveMessageWaitTimeSeconds", "4")
		for wait, want := range map[time.Duration]time.Duration{20 * time.Second: 20 * time.Second, 0: 4 * time.Second} {
			start := time.Now()
			if got := m.receive(t, url, wait); len(got) != 0 || time.Since(start) != want {
				t.Errorf("received %q after %v, want nothing after %v", bodies(got), time.Since(start), want)
			}
		}
	})
}

func TestLongPoll_OfAClientThatLeftTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want the client's deadline", err)
		}
		m.send(t, url, "a")
		synctest.Wait()
		wantAttributes(t, m.one(t, url), map[string]string{"ApproximateReceiveCount": "1"})
	})
}

func TestRetention_CountsFromTheFirstSendEvenInADeadLetterQueue(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		dead := m.create(t, "MessageRetentionPeriod", "120")
		url := m.withDead(t, dead, 1, "MessageRetentionPeriod", "600")
		m.send(t, url, "a")
		sent := m.one(t, url).Attributes["SentTimestamp"]
		time.Sleep(100 * time.Second)
		m.receive(t, url, 0)
		buried := m.one(t, dead)
		wantAttributes(t, buried, map[string]string{"SentTimestamp": sent})
		wantCode(t, m.hide(t, dead, *buried.ReceiptHandle, 0), "")
		time.Sleep(20*time.Second + time.Millisecond)
		if got := m.receive(t, dead, 0); len(got) != 0 {
			t.Errorf("received %q after its retention period", bodies(got))
		}
	})
}

func TestRetention_StartsAnewInAFIFODeadLetterQueue(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		dead := m.create(t, "FifoQueue", "true", "MessageRetentionPeriod", "120")
		url := m.withDead(t, dead, 1, "FifoQueue", "true", "MessageRetentionPeriod", "600")
		m.sendFIFO(t, url, "g", "d", "a")
		m.one(t, url)
		time.Sleep(100 * time.Second)
		m.receive(t, url, 0)
		time.Sleep(100 * time.Second)
		m.one(t, dead)
	})
}

func TestFIFO_DeduplicationEndsAfterFiveMinutes(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t, "FifoQueue", "true")
		first := m.sendFIFO(t, url, "g", "d", "a")
		wantCode(t, m.delete(url, *m.one(t, url).ReceiptHandle)(t), "")
		time.Sleep(5*time.Minute - time.Nanosecond)
		if again := m.sendFIFO(t, url, "g", "d", "a"); *again.MessageId != *first.MessageId ||
			len(m.receive(t, url, 0)) != 0 {
			t.Error("a deduplication id counted twice within five minutes")
		}
		time.Sleep(time.Nanosecond)
		if again := m.sendFIFO(t, url, "g", "d", "a"); *again.MessageId == *first.MessageId ||
			len(m.receive(t, url, 0)) != 1 {
			t.Error("a deduplication id did not count again after five minutes")
		}
	})
}

func TestFIFO_DeduplicationOfAGroupAlone(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t, "FifoQueue", "true", "DeduplicationScope", "messageGroup", "FifoThroughputLimit",
			"perMessageGroupId")
		for _, group := range []string{"g", "h", "g"} {
			m.sendFIFO(t, url, group, "d", group)
		}
		if got := bodies(m.receive(t, url, 0)); got != "g h" {
			t.Errorf("received %q, want g h", got)
		}
	})
}

func TestFIFO_AHandleEndsWithItsTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t, "FifoQueue", "true")
		m.sendFIFO(t, url, "g", "d", "a")
		handle := *m.one(t, url).ReceiptHandle
		time.Sleep(30 * time.Second)
		wantCode(t, m.delete(url, handle)(t), "InvalidParameterValue")
		m.one(t, url)
	})
}

func TestStandard_AHandleOutlivesItsTimeoutUntilTheNextReceive(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t)
		m.send(t, url, "a")
		handle := *m.one(t, url).ReceiptHandle
		time.Sleep(time.Hour)
		wantCode(t, m.delete(url, handle)(t), "")
		if got := m.receive(t, url, 0); len(got) != 0 {
			t.Errorf("%q is left", bodies(got))
		}
	})
}

func TestPurge_OncePerMinute(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t)
		for _, c := range []struct {
			wait time.Duration
			want string
		}{{0, ""}, {time.Minute - 1, "PurgeQueueInProgress"}, {1, ""}} {
			time.Sleep(c.wait)
			_, err := m.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url})
			wantCode(t, err, c.want)
		}
	})
}

func TestDelay_OfOneMessageOverridesTheQueues(t *testing.T) {
	bubble(t, func(t *testing.T, m mail) {
		url := m.create(t, "DelaySeconds", "9")
		_, err := m.SendMessage(t.Context(),
			&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("a"), DelaySeconds: 2})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		m.one(t, url)
	})
}
