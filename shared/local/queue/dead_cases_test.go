package queue_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func groups(t *testing.T, m mail) {
	url := m.create(t, "FifoQueue", "true")
	last := ""
	for _, body := range []string{"g1", "g2", "h1", "g3"} {
		out := m.sendFIFO(t, url, body[:1], body, body)
		if n := *out.SequenceNumber; len(n) != 20 || n <= last {
			t.Errorf("sequence number %s after %s", n, last)
		}
		last = *out.SequenceNumber
	}
	in := &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 1}
	first, err := m.ReceiveMessage(t.Context(), in)
	if err != nil || bodies(first.Messages) != "g1" {
		t.Fatalf("first %v %v", first, err)
	}
	rest := m.receive(t, url, 0)
	if bodies(rest) != "h1" {
		t.Errorf("with g1 out: %q, want h1", bodies(rest))
	}
	wantAttributes(t, rest[0], map[string]string{"MessageGroupId": "h", "MessageDeduplicationId": "h1"})
	if len(rest[0].Attributes["SequenceNumber"]) != 20 {
		t.Errorf("sequence number %q", rest[0].Attributes["SequenceNumber"])
	}
	wantCode(t, m.delete(url, *first.Messages[0].ReceiptHandle)(t), "")
	if got := bodies(m.receive(t, url, 0)); got != "g2 g3" {
		t.Errorf("with g1 deleted: %q, want g2 g3", got)
	}
}

func dedup(t *testing.T, m mail) {
	url := m.create(t, "FifoQueue", "true", "ContentBasedDeduplication", "true")
	first := m.sendFIFO(t, url, "g", "d", "a")
	again := m.sendFIFO(t, url, "g", "d", "b")
	if *again.MessageId != *first.MessageId || *again.SequenceNumber != *first.SequenceNumber {
		t.Errorf("the second answer is %s %s, want the first's", *again.MessageId, *again.SequenceNumber)
	}
	for range 2 {
		_, err := m.SendMessage(t.Context(),
			&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("c"), MessageGroupId: aws.String("h")})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := bodies(m.receive(t, url, 0)); got != "a c" {
		t.Errorf("received %q, want a c", got)
	}
	_, err := m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("c")})
	wantCode(t, err, "MissingParameter", "MissingParameterException")
}

// fail receives what is visible n times and gives it back each time.
func (m mail) fail(t *testing.T, url string, n int) {
	t.Helper()
	for range n {
		wantCode(t, m.hide(t, url, *m.one(t, url).ReceiptHandle, 0), "")
	}
}

func redrive(t *testing.T, m mail) {
	dead := m.create(t)
	url := m.withDead(t, dead, 2)
	id := m.send(t, url, "a")
	m.fail(t, url, 2)
	if got := m.receive(t, url, 0); len(got) != 0 {
		t.Fatalf("received %q a third time", bodies(got))
	}
	got := m.one(t, dead)
	if *got.MessageId != id || *got.Body != "a" {
		t.Errorf("buried %s %q, want %s a", *got.MessageId, *got.Body, id)
	}
	wantAttributes(t, got, map[string]string{"ApproximateReceiveCount": "3",
		"DeadLetterQueueSourceArn": m.attribute(t, url, "QueueArn")})
}

func redriveFIFO(t *testing.T, m mail) {
	dead := m.create(t, "FifoQueue", "true")
	url := m.withDead(t, dead, 1, "FifoQueue", "true")
	id := *m.sendFIFO(t, url, "g", "d", "a").MessageId
	m.sendFIFO(t, url, "g", "e", "b")
	one, err := m.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 1})
	if err != nil || len(one.Messages) != 1 {
		t.Fatal(one, err)
	}
	wantCode(t, m.hide(t, url, *one.Messages[0].ReceiptHandle, 0), "")
	if got := bodies(m.receive(t, url, 0)); got != "b" {
		t.Errorf("with a buried: %q, want b", got)
	}
	wantAttributes(t, m.one(t, dead), map[string]string{"MessageGroupId": "g", "MessageDeduplicationId": id,
		"ApproximateReceiveCount": "2"})
}

func badRedrive(t *testing.T, m mail) {
	fifo := m.create(t, "FifoQueue", "true")
	for _, policy := range []string{
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:none","maxReceiveCount":3}`,
		`{"deadLetterTargetArn":"` + m.attribute(t, fifo, "QueueArn") + `","maxReceiveCount":3}`,
		`{"maxReceiveCount":3}`, `x`,
	} {
		_, err := m.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("with-bad-redrive"),
			Attributes: map[string]string{"RedrivePolicy": policy}})
		if err == nil {
			t.Errorf("policy %s was accepted", policy)
		}
	}
}

func sources(t *testing.T, m mail) {
	dead := m.create(t)
	url := m.withDead(t, dead, 3)
	out, err := m.ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead})
	if err != nil || len(out.QueueUrls) != 1 || out.QueueUrls[0] != url {
		t.Errorf("sources %v %v, want %s", out, err, url)
	}
}

func moveTask(t *testing.T, m mail) {
	dead := m.create(t)
	url := m.withDead(t, dead, 1)
	id := m.send(t, url, "a")
	m.fail(t, url, 1)
	m.receive(t, url, 0)
	arn := m.attribute(t, dead, "QueueArn")
	out, err := m.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &arn})
	if err != nil || *out.TaskHandle == "" {
		t.Fatalf("started %v %v", out, err)
	}
	got := m.one(t, url)
	if *got.Body != "a" || *got.MessageId == id {
		t.Errorf("moved %q as %s, want a under another id than %s", *got.Body, *got.MessageId, id)
	}
	wantAttributes(t, got, map[string]string{"ApproximateReceiveCount": "1", "DeadLetterQueueSourceArn": ""})
	tasks, err := m.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: &arn})
	if err != nil || len(tasks.Results) != 1 || *tasks.Results[0].Status != "COMPLETED" ||
		tasks.Results[0].ApproximateNumberOfMessagesMoved != 1 {
		t.Errorf("tasks %+v %v, want one that moved one", tasks, err)
	}
	plain := m.attribute(t, url, "QueueArn")
	_, err = m.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &plain})
	wantCode(t, err, "InvalidParameterValue")
}
