package queue_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"abacus/shared/local/queue"
	"abacus/shared/local/wire"
)

func TestServer_AThousandMessagesReachSixteenConsumersOnceEach(t *testing.T) {
	server := httptest.NewServer(queue.New(queue.Config{}))
	defer server.Close()
	m := mail{client(server.Client(), server.URL)}
	url := m.create(t)
	for i := range 100 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for j := range 10 {
			id := fmt.Sprint(i*10 + j)
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &id})
		}
		if _, err := m.SendMessageBatch(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var consumers sync.WaitGroup
	for range 16 {
		consumers.Go(func() {
			for {
				messages := m.receive(t, url, 0)
				if len(messages) == 0 {
					return
				}
				in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
				mu.Lock()
				for i, one := range messages {
					seen[*one.Body]++
					id := fmt.Sprint(i)
					in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: one.ReceiptHandle})
				}
				mu.Unlock()
				if out, err := m.DeleteMessageBatch(t.Context(), in); err != nil || len(out.Failed) > 0 {
					t.Errorf("deleted %v %v", out, err)
				}
			}
		})
	}
	consumers.Wait()
	for body, n := range seen {
		if n != 1 {
			t.Errorf("message %s came %d times", body, n)
		}
	}
	if len(seen) != 1000 {
		t.Errorf("%d messages came, want 1000", len(seen))
	}
}

func TestServer_QueueURLsLeadBackToTheHostThatWasAsked(t *testing.T) {
	server := httptest.NewServer(queue.New(queue.Config{Account: "111122223333"}))
	defer server.Close()
	m := mail{client(server.Client(), server.URL)}
	url := m.create(t)
	if want := server.URL + "/111122223333/"; !strings.HasPrefix(url, want) {
		t.Errorf("queue URL %s, want one under %s", url, want)
	}
	m.send(t, strings.Replace(url, server.URL, "https://sqs.us-east-1.amazonaws.com", 1), "a")
	m.one(t, url)
}

func TestServer_RefusesWhatItDoesNotKnow(t *testing.T) {
	server := httptest.NewServer(queue.New(queue.Config{}))
	defer server.Close()
	m := mail{client(server.Client(), server.URL)}
	url := m.create(t)
	for _, c := range []struct{ target, body, want string }{
		{"AmazonSQS.TagQueue", `{}`, "UnknownOperationException"},
		{"AmazonSQS.ReceiveMessage", `{"QueueUrl":"` + url + `","ReceiveRequestAttemptId":"a"}`, "ValidationException"},
		{"AmazonSQS.SendMessage", `{"QueueUrl":"` + url + `","messagebody":"a"}`, "ValidationException"},
		{"AmazonSQS.SendMessage", `{"QueueUrl":7}`, "SerializationException"},
		{"AmazonSQS.ReceiveMessage", `{"QueueUrl":"` + url + `","AttributeNames":["Colour"]}`, "InvalidAttributeName"},
		{"AmazonSQS.SetQueueAttributes", `{"QueueUrl":"` + url + `","Attributes":{"Colour":"red"}}`,
			"InvalidAttributeName"},
		{"AmazonSQS.SetQueueAttributes", `{"QueueUrl":"` + url + `","Attributes":{"DelaySeconds":"901"}}`,
			"InvalidAttributeValue"},
		{"AmazonSQS.CreateQueue", `{"QueueName":"a","Attributes":{"FifoQueue":"false"}}`, "InvalidAttributeName"},
		{"AmazonSQS.CreateQueue", `{"QueueName":"a.fifo"}`, "InvalidParameterValue"},
		{"AmazonSQS.GetQueueAttributes", `{"QueueUrl":"` + url + `","AttributeNames":["Colour"]}`, "InvalidAttributeName"},
	} {
		request, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(c.body))
		request.Header.Set("X-Amz-Target", c.target)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 1000)
		n, _ := response.Body.Read(body)
		response.Body.Close()
		if response.StatusCode != 400 || !strings.Contains(string(body[:n]), `com.amazonaws.sqs#`+c.want+`"`) {
			t.Errorf("%s %s: %d %s, want 400 %s", c.target, c.body, response.StatusCode, body[:n], c.want)
		}
	}
}

func TestServer_InstancesShareNothing(t *testing.T) {
	url := standIn(queue.Config{}).create(t)
	_, err := standIn(queue.Config{}).SendMessage(t.Context(),
		&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x")})
	wantCode(t, err, "QueueDoesNotExist")
}

func TestE5_DeleteMessageBatchAnswers200WithFailedEntries(t *testing.T) {
	m := standIn(queue.Config{FailEntry: func(e queue.Entry) *queue.Failure {
		if e.Operation != "DeleteMessageBatch" {
			return nil
		}
		return map[string]*queue.Failure{"b": {Code: "InternalError"}, "c": {Code: "InternalError", Applied: true}}[e.ID]
	}})
	url := m.create(t, "VisibilityTimeout", "0")
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for _, id := range []string{"a", "b", "c"} {
		m.send(t, url, id)
	}
	for _, one := range m.receive(t, url, 0) {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: one.Body,
			ReceiptHandle: one.ReceiptHandle})
	}
	out, err := m.DeleteMessageBatch(t.Context(), in)
	if err != nil || len(out.Successful) != 1 || len(out.Failed) != 2 || out.Failed[0].SenderFault {
		t.Fatalf("deleted %+v %v, want one success and two failures", out, err)
	}
	if left := bodies(m.receive(t, url, 0)); left != "b" {
		t.Errorf("left %q, want b: c was deleted though reported failed", left)
	}
}

func TestFault_ALostReceiveHidesItsMessages(t *testing.T) {
	lose := true
	m := standIn(queue.Config{Fault: func(c wire.Call) wire.Fault {
		return wire.Fault{Lose: c.Name == "ReceiveMessage" && lose}
	}})
	url := m.create(t)
	m.send(t, url, "a")
	if _, err := m.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}); err == nil {
		t.Fatal("the reply was not lost")
	}
	lose = false
	hidden := m.attribute(t, url, "ApproximateNumberOfMessagesNotVisible")
	if got := m.receive(t, url, 0); len(got) != 0 || hidden != "1" {
		t.Errorf("received %q after a lost reply, want it hidden", bodies(got))
	}
}

func TestRedriveAllowPolicy_Holds(t *testing.T) {
	m := standIn(queue.Config{})
	for policy, allowed := range map[string]bool{
		`{"redrivePermission":"allowAll"}`: true, `{"redrivePermission":"denyAll"}`: false,
		`{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:src"]}`:   true,
		`{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:other"]}`: false,
	} {
		dead := m.create(t, "RedriveAllowPolicy", policy)
		_, err := m.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("src"),
			Attributes: map[string]string{
				"RedrivePolicy": `{"maxReceiveCount":"3","deadLetterTargetArn":"` + m.attribute(t, dead, "QueueArn") + `"}`}})
		if (err == nil) != allowed {
			t.Errorf("%s: error %v, want one: %v", policy, err, !allowed)
		}
		url := "http://x/000000000000/src"
		_, _ = m.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url})
	}
}

func TestMessageAttributes_AreChecked(t *testing.T) {
	m := standIn(queue.Config{})
	url := m.create(t, "MaximumMessageSize", "1024")
	text := func(value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	bad := map[string]map[string]types.MessageAttributeValue{
		"reserved name": {"AWS.x": text("a")}, "dots": {"a..b": text("a")}, "letters": {"a b": text("a")},
		"no value": {"a": {DataType: aws.String("String")}}, "no such type": {"a": {DataType: aws.String("Text"),
			StringValue: aws.String("a")}},
		"empty value": {"a": text("")}, "wrong kind": {"a": {DataType: aws.String("Binary"), StringValue: aws.String("a")}},
		"size": {"a": text(strings.Repeat("x", 1024-1-6-1+1))}, "characters": {"a": text("\x01")}, "number": {},
	}
	for i := range 11 {
		bad["number"][fmt.Sprint("n", i)] = text("a")
	}
	for what, attributes := range bad {
		_, err := m.SendMessage(t.Context(),
			&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"), MessageAttributes: attributes})
		if got := code(err); got != "InvalidParameterValue" && (what != "characters" || got != "InvalidMessageContents") {
			t.Errorf("%s: error code %q", what, got)
		}
	}
	_, err := m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"),
		MessageAttributes: map[string]types.MessageAttributeValue{"a": text(strings.Repeat("x", 1024-1-6-1))}})
	wantCode(t, err, "")
}

func FuzzRequests(f *testing.F) {
	operations := []string{"SendMessage", "ReceiveMessage", "DeleteMessage", "CreateQueue", "SetQueueAttributes",
		"SendMessageBatch"}
	f.Add(0, `{"QueueUrl":"http://x/000000000000/q","MessageBody":"a"}`)
	f.Add(1, `{"QueueUrl":"http://x/000000000000/q","WaitTimeSeconds":0}`)
	f.Add(2, `{"QueueUrl":"http://x/000000000000/q","ReceiptHandle":"cS9hLzE="}`)
	f.Add(3, `{"QueueName":"p","Attributes":{"RedrivePolicy":"{\"maxReceiveCount\":1}"}}`)
	f.Add(4, `{"QueueUrl":"http://x/000000000000/q","Attributes":{"RedriveAllowPolicy":"{}"}}`)
	f.Fuzz(func(t *testing.T, n int, body string) {
		gone, leave := context.WithCancel(t.Context())
		leave() // a long poll does not wait for a client that has left
		server := queue.New(queue.Config{})
		for _, call := range [][2]string{{"CreateQueue", `{"QueueName":"q"}`},
			{operations[uint(n)%uint(len(operations))], body}} {
			request := httptest.NewRequestWithContext(gone, http.MethodPost, "/", strings.NewReader(call[1]))
			request.Header.Set("X-Amz-Target", "AmazonSQS."+call[0])
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, request)
			if answer.Code != 200 && answer.Code != 400 {
				t.Errorf("%s %s: status %d", call[0], call[1], answer.Code)
			}
		}
	})
}
