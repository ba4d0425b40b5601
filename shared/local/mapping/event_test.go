package mapping_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
)

func wantJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("document differs (-want +got):\n%s", diff)
	}
}

func TestKinesis_EventIsLambdasToTheLetter(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		time.Sleep(2987 * time.Millisecond)
		number := w.put("a<b>é", "Hello")[0]
		_, err := w.k.PutRecord(w.t.Context(),
			&kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte{}})
		w.must(err)
		f := &function{}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 1, Role: "arn:aws:iam::123456789012:role/r"})
		w.start(m)
		w.drained(m)
		wantJSON(t, f.raw[0], `{"Records":[{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":"a<b>é",
			"sequenceNumber":"`+number+`","data":"SGVsbG8=","approximateArrivalTimestamp":946684802.987},
			"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":"shardId-000000000000:`+number+`",
			"eventName":"aws:kinesis:record","invokeIdentityArn":"arn:aws:iam::123456789012:role/r",
			"awsRegion":"us-east-1","eventSourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s"}]}`)
		if raw := string(f.raw[0]); !strings.Contains(raw, `"approximateArrivalTimestamp":946684802.987`) {
			t.Errorf("arrival is not a plain number with milliseconds: %s", raw)
		}
		if raw := string(f.raw[1]); !strings.Contains(raw, `"data":""`) {
			t.Errorf("a record without data: %s", raw)
		}
	})
}

func TestSQS_EventIsLambdasToTheLetter(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q.fifo", "FifoQueue", "true")
		sent, err := w.q.SendMessage(w.t.Context(), &sqs.SendMessageInput{QueueUrl: &url,
			MessageBody:    aws.String("Test message."),
			MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"text": {DataType: aws.String("String"), StringValue: aws.String("v")}}})
		w.must(err)
		f := &function{}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke})
		w.start(m)
		w.drained(m)
		var got struct{ Records []map[string]any }
		w.must(json.Unmarshal(f.raw[0], &got))
		receipt, _ := got.Records[0]["receiptHandle"].(string)
		wantJSON(t, f.raw[0], `{"Records":[{"messageId":"`+*sent.MessageId+`","receiptHandle":"`+receipt+`",
			"body":"Test message.","attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"946684800000",
			"SenderId":"AIDALOCALSTANDIN00000","ApproximateFirstReceiveTimestamp":"946684800000",
			"SequenceNumber":"`+*sent.SequenceNumber+`","MessageGroupId":"g","MessageDeduplicationId":"d"},
			"messageAttributes":{"text":{"stringValue":"v","stringListValues":[],"binaryListValues":[],"dataType":"String"}},
			"md5OfMessageAttributes":"`+*sent.MD5OfMessageAttributes+`","md5OfBody":"`+*sent.MD5OfMessageBody+`",
			"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:q.fifo","awsRegion":"us-east-1"}]}`)
	})
}
