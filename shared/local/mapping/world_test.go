package mapping_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"abacus/shared/local/loopback"
	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
)

// world is a Kinesis and an SQS behind real clients, at a fake clock.
type world struct {
	t       *testing.T
	streams *stream.Server
	k       *kinesis.Client
	q       *sqs.Client
}

// bubble runs test in a world of its own. In a bubble, where waiting costs nothing, the fake clock is time's own.
func bubble(t *testing.T, s stream.Config, q queue.Config, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, streams: stream.New(s)}
		keys := credentials.NewStaticCredentialsProvider("local", "local", "")
		w.k = kinesis.New(kinesis.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://kinesis.local"),
			HTTPClient: loopback.Client(w.streams), Credentials: keys, Retryer: aws.NopRetryer{}})
		w.q = sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"),
			HTTPClient: loopback.Client(queue.New(q)), Credentials: keys, Retryer: aws.NopRetryer{}})
		test(w)
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// stream makes a stream named s.
func (w *world) stream(shards int32) (arn string) {
	w.t.Helper()
	_, err := w.k.CreateStream(w.t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("s"),
		ShardCount: &shards})
	w.must(err)
	return w.streams.ARN("s")
}

// put puts a record for each word of text under one partition key.
func (w *world) put(key, text string) (numbers []string) {
	w.t.Helper()
	for part := range slices.Chunk(strings.Fields(text), 500) {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
		for _, word := range part {
			in.Records = append(in.Records, streamtypes.PutRecordsRequestEntry{PartitionKey: &key, Data: []byte(word)})
		}
		out, err := w.k.PutRecords(w.t.Context(), in)
		w.must(err)
		for _, r := range out.Records {
			numbers = append(numbers, *r.SequenceNumber)
		}
	}
	return numbers
}

// queue makes a queue; attributes are name, value, name, value.
func (w *world) queue(name string, attributes ...string) (url, arn string) {
	w.t.Helper()
	set := map[string]string{}
	for pair := range slices.Chunk(attributes, 2) {
		set[pair[0]] = pair[1]
	}
	out, err := w.q.CreateQueue(w.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: set})
	w.must(err)
	return *out.QueueUrl, "arn:aws:sqs:us-east-1:000000000000:" + name
}

// send sends a message for each word of text; to a FIFO queue in the group of the word's first letter.
func (w *world) send(url, text string) {
	w.t.Helper()
	for word := range strings.FieldsSeq(text) {
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(word)}
		if strings.HasSuffix(url, ".fifo") {
			in.MessageGroupId, in.MessageDeduplicationId = aws.String(word[:1]), aws.String(word)
		}
		_, err := w.q.SendMessage(w.t.Context(), in)
		w.must(err)
	}
}

// left returns what is in a queue and visible, sorted.
func (w *world) left(url string) string {
	w.t.Helper()
	var words []string
	for {
		out, err := w.q.ReceiveMessage(w.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
		w.must(err)
		if len(out.Messages) == 0 {
			slices.Sort(words)
			return strings.Join(words, " ")
		}
		for _, m := range out.Messages {
			words = append(words, *m.Body)
		}
	}
}

func (w *world) depth(url string) string {
	w.t.Helper()
	out, err := w.q.GetQueueAttributes(w.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url,
		AttributeNames: []types.QueueAttributeName{"All"}})
	w.must(err)
	return out.Attributes["ApproximateNumberOfMessages"] + "/" + out.Attributes["ApproximateNumberOfMessagesNotVisible"]
}

// runner is a mapping of either kind.
type runner interface {
	Run(context.Context) error
	Stats() mapping.Stats
	Drained(context.Context) error
}

// start runs m until the test ends or stop is called.
func (w *world) start(m runner) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the mapping ended with %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// drained waits, for an hour of the fake clock at most, until m has nothing left.
func (w *world) drained(m runner) {
	w.t.Helper()
	w.drainedWithin(time.Hour, m)
}

func (w *world) drainedWithin(d time.Duration, m runner) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	if err := m.Drained(ctx); err != nil {
		w.t.Fatalf("not drained: %v, %+v", err, m.Stats())
	}
}

// function records what it is invoked with: the words of each batch. answer decides about the nth invocation.
type function struct {
	mu      sync.Mutex
	batches []string
	raw     [][]byte
	running int
	most    int
	hold    time.Duration // how long an invocation takes
	answer  func(n int, words, ids []string) (string, error)
}

func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	words, ids := contents(event)
	f.mu.Lock()
	f.batches, f.raw = append(f.batches, strings.Join(words, "")), append(f.raw, event)
	n := len(f.batches)
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	if f.hold > 0 {
		select {
		case <-time.After(f.hold):
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	f.running--
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.answer == nil {
		return nil, nil
	}
	response, err := f.answer(n, words, ids)
	return []byte(response), err
}

// contents returns data and identifiers of an event of either kind.
func contents(event []byte) (words, ids []string) {
	var k events.KinesisEvent
	var q events.SQSEvent
	if json.Unmarshal(event, &k) == nil && len(k.Records) > 0 && k.Records[0].EventSource == "aws:kinesis" {
		for _, r := range k.Records {
			words, ids = append(words, string(r.Kinesis.Data)), append(ids, r.Kinesis.SequenceNumber)
		}
		return words, ids
	}
	if err := json.Unmarshal(event, &q); err != nil {
		panic(err)
	}
	for _, m := range q.Records {
		words, ids = append(words, m.Body), append(ids, m.MessageId)
	}
	return words, ids
}

func (f *function) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.batches, " ")
}

func (f *function) wantSeen(t *testing.T, want string) {
	t.Helper()
	if got := f.seen(); got != want {
		t.Errorf("invoked with %q, want %q", got, want)
	}
}

// failing names the identifiers of those words that are bad.
func failing(words, ids []string, bad ...string) string {
	items := []string{}
	for i, word := range words {
		if slices.Contains(bad, word) {
			items = append(items, fmt.Sprintf(`{"itemIdentifier":%q}`, ids[i]))
		}
	}
	return `{"batchItemFailures":[` + strings.Join(items, ",") + `]}`
}

// fromKinesis makes a mapping of the world's stream.
func (w *world) fromKinesis(c mapping.KinesisConfig) *mapping.Kinesis {
	w.t.Helper()
	c.Client, c.Queues, c.Stream = w.k, w.q, w.streams.ARN("s")
	c.Pace.PollInterval = cmp.Or(c.Pace.PollInterval, time.Second) // as AWS polls
	if c.StartingPosition == "" {
		c.StartingPosition = "TRIM_HORIZON"
	}
	m, err := mapping.NewKinesis(c)
	w.must(err)
	return m
}

// fromSQS makes a mapping of a queue.
func (w *world) fromSQS(url string, c mapping.SQSConfig) *mapping.SQS {
	w.t.Helper()
	c.Client, c.Queue = w.q, url
	c.Pace.PollInterval = cmp.Or(c.Pace.PollInterval, time.Second)
	m, err := mapping.NewSQS(c)
	w.must(err)
	return m
}

func decoded[T any](t *testing.T, text string) (out T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}
