package queue_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"abacus/shared/local/loopback"
	"abacus/shared/local/queue"
)

// oracleVar names the endpoint of a second implementation of SQS; see shared/local/oracle.
const oracleVar = "ABACUS_ORACLE_SQS"

// mail is one implementation of SQS as the cases see it.
type mail struct{ *sqs.Client }

func client(http *http.Client, endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(endpoint), HTTPClient: http,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""), Retryer: aws.NopRetryer{}})
}

func standIn(config queue.Config) mail {
	return mail{client(loopback.Client(queue.New(config)), "http://sqs.local:9324")}
}

func oracle(t *testing.T) mail {
	t.Helper()
	endpoint := os.Getenv(oracleVar)
	if endpoint == "" && os.Getenv("ABACUS_ORACLE_REQUIRED") != "" {
		t.Fatalf("ABACUS_ORACLE_REQUIRED is set, but %s names no implementation", oracleVar)
	}
	if endpoint == "" {
		t.Skipf("%s is not set: start shared/local/oracle/run to compare with a second implementation", oracleVar)
	}
	return mail{client(http.DefaultClient, endpoint)}
}

var serial atomic.Int64

// create makes a queue; attributes are name, value, name, value. A FIFO queue is made by FifoQueue true.
func (m mail) create(t *testing.T, attributes ...string) string {
	t.Helper()
	name, set := fmt.Sprintf("q%d-%d", time.Now().UnixNano(), serial.Add(1)), map[string]string{}
	for pair := range slices.Chunk(attributes, 2) {
		set[pair[0]] = pair[1]
	}
	if set["FifoQueue"] == "true" {
		name += ".fifo"
	}
	out, err := m.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: set})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func nameOf(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

func (m mail) attribute(t *testing.T, url string, name types.QueueAttributeName) string {
	t.Helper()
	out, err := m.GetQueueAttributes(t.Context(),
		&sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes[string(name)]
}

// withDead makes a queue whose messages go to the queue dead after n receives.
func (m mail) withDead(t *testing.T, dead string, n int, attributes ...string) string {
	t.Helper()
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, m.attribute(t, dead, "QueueArn"), n)
	return m.create(t, append(attributes, "RedrivePolicy", policy)...)
}

func (m mail) send(t *testing.T, url, body string) string {
	t.Helper()
	out, err := m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	if err != nil {
		t.Fatal(err)
	}
	return *out.MessageId
}

func (m mail) sendFIFO(t *testing.T, url, group, dedup, body string) *sqs.SendMessageOutput {
	t.Helper()
	out, err := m.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body,
		MessageGroupId:         &group,
		MessageDeduplicationId: &dedup})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// receive returns up to ten messages, with all their attributes, after a wait of up to wait.
func (m mail) receive(t *testing.T, url string, wait time.Duration) []types.Message {
	t.Helper()
	out, err := m.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10,
		WaitTimeSeconds: int32(wait / time.Second), MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

func (m mail) one(t *testing.T, url string) types.Message {
	t.Helper()
	messages := m.receive(t, url, 0)
	if len(messages) != 1 {
		t.Fatalf("received %q, want one message", bodies(messages))
	}
	return messages[0]
}

func bodies(messages []types.Message) string {
	out := []string{}
	for _, m := range messages {
		out = append(out, *m.Body)
	}
	return strings.Join(out, " ")
}

func (m mail) delete(url, handle string) func(*testing.T) error {
	return func(t *testing.T) error {
		_, err := m.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: &handle})
		return err
	}
}

func (m mail) hide(t *testing.T, url, handle string, seconds int32) error {
	_, err := m.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url,
		ReceiptHandle: &handle, VisibilityTimeout: seconds})
	return err
}

// code returns the service's error code without AWS's prefix of the query protocol, or "" for none.
func code(err error) string {
	if err == nil {
		return ""
	}
	service, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return "not a service error: " + err.Error()
	}
	return service.ErrorCode()[strings.LastIndexByte(service.ErrorCode(), '.')+1:]
}

func wantCode(t *testing.T, err error, want ...string) {
	t.Helper()
	if got := code(err); !slices.Contains(want, got) {
		t.Errorf("error code %q, want %q", got, want)
	}
}

func wantAttributes(t *testing.T, m types.Message, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if m.Attributes[name] != want[name] {
			t.Errorf("attribute %s of %s is %q, want %q", name, *m.Body, m.Attributes[name], want[name])
		}
	}
}
