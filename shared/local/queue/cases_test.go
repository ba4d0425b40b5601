package queue_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"abacus/shared/local/queue"
)

// aCase is one behaviour of SQS. lacks says why a second implementation (moto 5) is not asked; where the two differ,
// AWS's documentation decides.
type aCase struct {
	name  string
	lacks string
	run   func(*testing.T, mail)
}

func TestCases_StandIn(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, standIn(queue.Config{})) })
	}
}

func TestCases_SecondImplementation(t *testing.T) {
	m := oracle(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.lacks != "" {
				t.Skip("moto: " + c.lacks)
			}
			c.run(t, m)
		})
	}
}

var cases = []aCase{
	{name: "a name is taken by other attributes alone", run: takenName},
	{name: "queues are found by name and listed by prefix", run: found},
	{name: "a message comes with its digests and attributes", run: received},
	{name: "message attributes are chosen by name and prefix", run: chosenAttributes},
	{name: "a message made visible comes again under a new handle", run: comesAgain},
	{name: "an old handle deletes nothing", run: oldHandle, lacks: "refuses an old handle and a second delete"},
	{name: "a handle that is none", run: badHandle},
	{name: "batches answer entry by entry", run: batches},
	{name: "batches are bounded", run: batchLimits},
	{name: "what no message may hold", run: badMessages, lacks: "takes any character"},
	{name: "a delayed message waits", run: delayed},
	{name: "FIFO: a group is in order and held back while one of it is out", run: groups,
		lacks: "gives random sequence numbers"},
	{name: "FIFO: a deduplication id counts once", run: dedup, lacks: "answers a repeat with a new id"},
	{name: "redrive keeps the id and the receive count", run: redrive,
		lacks: "does not tell the source of a buried message"},
	{name: "FIFO: redrive makes the id the deduplication id", run: redriveFIFO, lacks: "keeps the deduplication id"},
	{name: "a redrive policy is checked", run: badRedrive, lacks: "lets a standard queue bury in a FIFO one"},
	{name: "sources of a dead-letter queue", run: sources},
	{name: "a move task makes new messages", run: moveTask, lacks: "knows no move tasks"},
	{name: "purge", run: purge},
	{name: "counts", run: counts},
	{name: "what does not exist", run: missing},
}

func takenName(t *testing.T, m mail) {
	url := m.create(t, "VisibilityTimeout", "7")
	for value, want := range map[string]string{"7": "", "8": "QueueNameExists"} {
		_, err := m.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(nameOf(url)),
			Attributes: map[string]string{"VisibilityTimeout": value}})
		if want == "" {
			wantCode(t, err, "")
		} else {
			wantCode(t, err, want, "QueueAlreadyExists")
		}
	}
}

func found(t *testing.T, m mail) {
	url := m.create(t)
	out, err := m.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(nameOf(url))})
	if err != nil || *out.QueueUrl != url {
		t.Errorf("URL %v %v, want %s", out, err, url)
	}
	listed, err := m.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String(nameOf(url))})
	if err != nil || len(listed.QueueUrls) != 1 || listed.QueueUrls[0] != url {
		t.Errorf("listed %v %v, want %s", listed, err, url)
	}
}

func hexMD5(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// mixed are attributes of every kind; their digest was worked out by hand from AWS's description.
var mixed = map[string]types.MessageAttributeValue{
	"b.bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2, 3}},
	"a.text":  {DataType: aws.String("String"), StringValue: aws.String("é")},
	"a.n":     {DataType: aws.String("Number.int"), StringValue: aws.String("42")},
}

// mixedDigest encodes: each of name, type, value after its length in four bytes; 1 before a text, 2 before bytes.
var mixedDigest = hexMD5("\x00\x00\x00\x03a.n" + "\x00\x00\x00\x0aNumber.int" + "\x01\x00\x00\x00\x0242" +
	"\x00\x00\x00\x06a.text" + "\x00\x00\x00\x06String" + "\x01\x00\x00\x00\x02é" +
	"\x00\x00\x00\x07b.bytes" + "\x00\x00\x00\x06Binary" + "\x02\x00\x00\x00\x03\x01\x02\x03")

func received(t *testing.T, m mail) {
	url, body := m.create(t), "Test message. é"
	sent, err := m.SendMessage(t.Context(),
		&sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageAttributes: mixed})
	if err != nil || *sent.MD5OfMessageBody != hexMD5(body) || *sent.MD5OfMessageAttributes != mixedDigest {
		t.Fatalf("sent %v %v, want digests %s and %s", sent, err, hexMD5(body), mixedDigest)
	}
	got := m.one(t, url)
	if *got.MessageId != *sent.MessageId || *got.Body != body || *got.MD5OfBody != hexMD5(body) ||
		aws.ToString(got.MD5OfMessageAttributes) != mixedDigest || len(got.MessageAttributes) != 3 {
		t.Errorf("received %+v", got)
	}
	wantAttributes(t, got, map[string]string{"ApproximateReceiveCount": "1", "MessageGroupId": "", "SequenceNumber": ""})
	for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
		if len(got.Attributes[name]) != 13 {
			t.Errorf("%s is %q, want milliseconds", name, got.Attributes[name])
		}
	}
	if got.Attributes["SenderId"] == "" {
		t.Error("no SenderId")
	}
	if again := m.receive(t, url, 0); len(again) != 0 {
		t.Errorf("received %q while it is out", bodies(again))
	}
}

func chosenAttributes(t *testing.T, m mail) {
	url := m.create(t, "VisibilityTimeout", "0")
	_, err := m.SendMessage(t.Context(),
		&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"), MessageAttributes: mixed})
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{"All": 3, ".*": 3, "a.*": 2, "a.text": 1, "a": 0, "": 0} {
		in := &sqs.ReceiveMessageInput{QueueUrl: &url}
		if want != "" {
			in.MessageAttributeNames = []string{want}
		}
		out, err := m.ReceiveMessage(t.Context(), in)
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("asked for %q: %v %v", want, out, err)
		}
		if got := out.Messages[0]; len(got.MessageAttributes) != n || len(got.Attributes) != 0 {
			t.Errorf("asked for %q: %v, want %d message attributes and no others", want, got, n)
		}
	}
}

func comesAgain(t *testing.T, m mail) {
	url := m.create(t)
	m.send(t, url, "a")
	first := m.one(t, url)
	wantCode(t, m.hide(t, url, *first.ReceiptHandle, 0), "")
	second := m.one(t, url)
	wantAttributes(t, second, map[string]string{"ApproximateReceiveCount": "2",
		"ApproximateFirstReceiveTimestamp": first.Attributes["ApproximateFirstReceiveTimestamp"]})
	if *second.MessageId != *first.MessageId || *second.ReceiptHandle == *first.ReceiptHandle {
		t.Errorf("came again as %s under %s", *second.MessageId, *second.ReceiptHandle)
	}
	wantCode(t, m.hide(t, url, *second.ReceiptHandle, 43_201), "InvalidParameterValue", "InvalidParameterValueException")
}

func oldHandle(t *testing.T, m mail) {
	url := m.create(t)
	m.send(t, url, "a")
	first := m.one(t, url)
	wantCode(t, m.hide(t, url, *first.ReceiptHandle, 0), "")
	second := m.one(t, url)
	wantCode(t, m.delete(url, *first.ReceiptHandle)(t), "")
	wantCode(t, m.hide(t, url, *second.ReceiptHandle, 0), "")
	third := m.one(t, url)
	for range 2 {
		wantCode(t, m.delete(url, *third.ReceiptHandle)(t), "")
	}
	if left := m.receive(t, url, 0); len(left) != 0 {
		t.Errorf("%q is left", bodies(left))
	}
}

func badHandle(t *testing.T, m mail) {
	url := m.create(t)
	wantCode(t, m.delete(url, "no-handle")(t), "ReceiptHandleIsInvalid")
	wantCode(t, m.hide(t, url, "no-handle", 1), "ReceiptHandleIsInvalid")
}

func batches(t *testing.T, m mail) {
	url := m.create(t, "MaximumMessageSize", "1024")
	two := []types.SendMessageBatchRequestEntry{{Id: aws.String("one"), MessageBody: aws.String("1")},
		{Id: aws.String("two"), MessageBody: aws.String("2")}}
	out, err := m.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: two})
	if err != nil || len(out.Successful) != 2 || len(out.Failed) != 0 || *out.Successful[1].Id != "two" ||
		*out.Successful[1].MD5OfMessageBody != hexMD5("2") {
		t.Fatalf("sent %+v %v", out, err)
	}
	messages := m.receive(t, url, 0)
	if bodies(messages) != "1 2" {
		t.Fatalf("received %q", bodies(messages))
	}
	gone, err := m.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &url,
		Entries: []types.DeleteMessageBatchRequestEntry{{Id: aws.String("a"), ReceiptHandle: messages[0].ReceiptHandle},
			{Id: aws.String("b"), ReceiptHandle: aws.String("none")}}})
	if err != nil || len(gone.Successful) != 1 || len(gone.Failed) != 1 || *gone.Failed[0].Id != "b" ||
		*gone.Failed[0].Code != "ReceiptHandleIsInvalid" || !gone.Failed[0].SenderFault {
		t.Errorf("deleted %+v %v, want a gone and b refused", gone, err)
	}
	shown, err := m.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url,
		Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("b"), ReceiptHandle: messages[1].ReceiptHandle}}})
	if err != nil || len(shown.Successful) != 1 || bodies(m.receive(t, url, 0)) != "2" {
		t.Errorf("shown %+v %v, want 2 back", shown, err)
	}
}

func batchLimits(t *testing.T, m mail) {
	url := m.create(t)
	send := func(ids ...string) error {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{}}
		for _, id := range ids {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(id),
				MessageBody: aws.String("x")})
		}
		_, err := m.SendMessageBatch(t.Context(), in)
		return err
	}
	many := strings.Split("0 1 2 3 4 5 6 7 8 9 10", " ")
	wantCode(t, send(many[:10]...), "")
	wantCode(t, send(many...), "TooManyEntriesInBatchRequest")
	wantCode(t, send(), "EmptyBatchRequest")
	wantCode(t, send("a", "a"), "BatchEntryIdsNotDistinct")
	wantCode(t, send("a b"), "InvalidBatchEntryId")
	for _, n := range []int32{11, -1} {
		_, err := m.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: n})
		wantCode(t, err, "InvalidParameterValue")
	}
}

func badMessages(t *testing.T, m mail) {
	url := m.create(t, "MaximumMessageSize", "1024")
	m.send(t, url, strings.Repeat("x", 1024))
	m.send(t, url, "\t\n\r \U0010FFFF\uFFFD")
	for want, body := range map[string]string{"InvalidParameterValue": strings.Repeat("x", 1025),
		"InvalidMessageContents": "\x0b"} {
		_, err := m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
		wantCode(t, err, want)
	}
}

func delayed(t *testing.T, m mail) {
	url := m.create(t)
	_, err := m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"),
		DelaySeconds: 900})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.receive(t, url, 0); len(got) != 0 || m.attribute(t, url, "ApproximateNumberOfMessagesDelayed") != "1" {
		t.Errorf("received %q, %s delayed", bodies(got), m.attribute(t, url, "ApproximateNumberOfMessagesDelayed"))
	}
	_, err = m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"),
		DelaySeconds: 901})
	wantCode(t, err, "InvalidParameterValue")
}

func purge(t *testing.T, m mail) {
	url := m.create(t)
	m.send(t, url, "a")
	m.one(t, url)
	m.send(t, url, "b")
	if _, err := m.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []types.QueueAttributeName{"ApproximateNumberOfMessages",
		"ApproximateNumberOfMessagesNotVisible"} {
		if n := m.attribute(t, url, name); n != "0" {
			t.Errorf("%s is %s after a purge", name, n)
		}
	}
}

func counts(t *testing.T, m mail) {
	url := m.create(t)
	for i := range 3 {
		m.send(t, url, fmt.Sprint(i))
	}
	out, err := m.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("without a maximum: %v %v, want one message", out, err)
	}
	for name, want := range map[types.QueueAttributeName]string{"ApproximateNumberOfMessages": "2",
		"ApproximateNumberOfMessagesNotVisible": "1", "ApproximateNumberOfMessagesDelayed": "0", "VisibilityTimeout": "30",
		"MessageRetentionPeriod": "345600"} {
		if got := m.attribute(t, url, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func missing(t *testing.T, m mail) {
	url := m.create(t) + "-none"
	_, err := m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x")})
	wantCode(t, err, "QueueDoesNotExist", "NonExistentQueue")
	_, err = m.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	wantCode(t, err, "QueueDoesNotExist", "NonExistentQueue")
}
