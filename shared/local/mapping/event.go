package mapping

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	kinesis "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	sqs "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// seconds is a time as Lambda writes arrival: a number of Unix seconds with milliseconds.
type seconds time.Time

// MarshalJSON writes t.
func (t seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Time(t).Round(time.Millisecond).UnixMilli())/1000, 'f', -1, 64), nil
}

// kinesisEvent and sqsEvent are records of Lambda's events
// (https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html,
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html).
type kinesisEvent struct {
	Kinesis struct {
		SchemaVersion  string  `json:"kinesisSchemaVersion"`
		PartitionKey   string  `json:"partitionKey"`
		SequenceNumber string  `json:"sequenceNumber"`
		Data           []byte  `json:"data"`
		Arrival        seconds `json:"approximateArrivalTimestamp"`
	} `json:"kinesis"`
	EventSource       string `json:"eventSource"`
	EventVersion      string `json:"eventVersion"`
	EventID           string `json:"eventID"`
	EventName         string `json:"eventName"`
	InvokeIdentityARN string `json:"invokeIdentityArn"`
	Region            string `json:"awsRegion"`
	EventSourceARN    string `json:"eventSourceARN"`
}

type sqsEvent struct {
	MessageID              string                  `json:"messageId"`
	ReceiptHandle          string                  `json:"receiptHandle"`
	Body                   string                  `json:"body"`
	Attributes             map[string]string       `json:"attributes"`
	MessageAttributes      map[string]sqsAttribute `json:"messageAttributes"`
	MD5OfMessageAttributes string                  `json:"md5OfMessageAttributes,omitempty"`
	MD5OfBody              string                  `json:"md5OfBody"`
	EventSource            string                  `json:"eventSource"`
	EventSourceARN         string                  `json:"eventSourceARN"`
	Region                 string                  `json:"awsRegion"`
}

type sqsAttribute struct {
	StringValue      *string  `json:"stringValue,omitempty"`
	BinaryValue      []byte   `json:"binaryValue,omitempty"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues [][]byte `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

// arn is what the name of a stream or a queue says.
type arn struct{ text, region, account, resource string }

func parseARN(text, service string) (arn, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != service || parts[3] == "" || parts[5] == "" {
		return arn{}, fmt.Errorf("%q is not an ARN of %s; give arn:aws:%s:REGION:ACCOUNT:NAME", text, service, service)
	}
	return arn{text: text, region: parts[3], account: parts[4], resource: parts[5]}, nil
}

// encodeKinesis writes one record of an event.
func encodeKinesis(r kinesis.Record, stream arn, shard, role string) []byte {
	e := kinesisEvent{EventSource: "aws:kinesis", EventVersion: "1.0", EventName: "aws:kinesis:record",
		EventID: shard + ":" + aws.ToString(r.SequenceNumber), InvokeIdentityARN: role, Region: stream.region,
		EventSourceARN: stream.text}
	e.Kinesis.SchemaVersion, e.Kinesis.Data = "1.0", r.Data
	e.Kinesis.PartitionKey, e.Kinesis.SequenceNumber = aws.ToString(r.PartitionKey), aws.ToString(r.SequenceNumber)
	e.Kinesis.Arrival = seconds(aws.ToTime(r.ApproximateArrivalTimestamp))
	text, _ := json.Marshal(e) // strings, bytes and a number: cannot fail
	return text
}

// encodeSQS writes one record of an event.
func encodeSQS(m sqs.Message, queue arn) []byte {
	e := sqsEvent{MessageID: aws.ToString(m.MessageId), ReceiptHandle: aws.ToString(m.ReceiptHandle),
		Body: aws.ToString(m.Body), Attributes: m.Attributes, MessageAttributes: map[string]sqsAttribute{},
		MD5OfMessageAttributes: aws.ToString(m.MD5OfMessageAttributes), MD5OfBody: aws.ToString(m.MD5OfBody),
		EventSource: "aws:sqs", EventSourceARN: queue.text, Region: queue.region}
	for name, a := range m.MessageAttributes {
		e.MessageAttributes[name] = sqsAttribute{StringValue: a.StringValue, BinaryValue: a.BinaryValue,
			StringListValues: []string{}, BinaryListValues: [][]byte{}, DataType: aws.ToString(a.DataType)}
	}
	text, _ := json.Marshal(e)
	return text
}

const eventHead, eventTail = `{"Records":[`, `]}`

// event joins encoded records.
func event(records [][]byte) []byte {
	out := []byte(eventHead)
	for i, r := range records {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, r...)
	}
	return append(out, eventTail...)
}

// fitting returns how many of the records fit into one event: 0 if not even the first does.
func fitting(records [][]byte) int {
	size := len(eventHead) + len(eventTail)
	for i, r := range records {
		if size += len(r) + 1; size > maxPayload+1 { // the first needs no comma
			return i
		}
	}
	return len(records)
}
