package replay

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"abacus/shared/envelope"
)

const (
	streamARN = "arn:aws:kinesis:us-east-1:000000000000:stream/flights"
	sourceARN = "arn:aws:sqs:us-east-1:000000000000:flights"
	deadARN   = "arn:aws:sqs:us-east-1:000000000000:flights-dead"
	shardID   = "shardId-000000000000"
)

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func noticeText(r Range, extra string) string {
	return fmt.Sprintf(`{"requestContext":{"condition":"SomethingNew"},"version":"1.0","KinesisBatchInfo":{"shardId":%q,`+
		`"startSequenceNumber":%q,"endSequenceNumber":%q,"batchSize":%d,"streamArn":%q,"later":1}%s}`,
		r.Shard, r.First, r.Last, r.Size, r.Stream, extra)
}

func kinesisEvent(stream, shard string, payloads ...string) string {
	var records []string
	for i, p := range payloads {
		records = append(records, fmt.Sprintf(`{"kinesis":{"sequenceNumber":"%d","data":%q},"eventSource":"aws:kinesis",`+
			`"eventID":"%s:%d","eventSourceARN":%q}`, i+7, base64.StdEncoding.EncodeToString([]byte(p)), shard, i+7, stream))
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

func message(body string) Message {
	return Message{ID: "letter-1", Queue: deadARN, Body: body, Attributes: map[string]string{}}
}

var seven = Range{Stream: streamARN, Shard: shardID, First: "7", Last: "8", Size: 2}

func parkedOf(kind envelope.Kind, payload string) envelope.Parked {
	b := envelope.Batch{Kind: kind, Source: streamARN, Shard: shardID}
	r := envelope.Record{ID: "7", Identity: envelope.KinesisIdentity(streamARN, shardID, "7"), Payload: []byte(payload)}
	if kind == envelope.SQS {
		b.Source, b.Shard, r.ID, r.Identity = sourceARN, "", "m1", envelope.SQSIdentity(sourceARN, "m1")
	}
	b.Records = []envelope.Record{r}
	return envelope.Park(&b, 0, "bad record", "digest", time.Unix(1_700_000_000, 0).UTC())
}

func TestLetters_EveryFormKeepsTheIdentityOfItsSource(t *testing.T) {
	moved := message("hello")
	moved.Attributes = map[string]string{attributeSource: sourceARN, attributeSent: "1700000000500", attributeGroup: "g"}
	first := envelope.KinesisIdentity(streamARN, shardID, "7")
	for name, c := range map[string]struct {
		m        Message
		form     Form
		identity string
	}{
		"parked, Kinesis": {message(text(t, parkedOf(envelope.Kinesis, "x"))), Parked, first},
		"parked, SQS":     {message(text(t, parkedOf(envelope.SQS, "x"))), Parked, sourceARN + "|m1"},
		"document": {message(noticeText(seven, `,"payload":`+text(t, kinesisEvent(streamARN, shardID, "a", "b")))),
			Document, first},
		"moved":  {moved, Original, sourceARN + "|letter-1"},
		"mapped": {message(`{"Records":[1]}`), Original, sourceARN + "|letter-1"},
	} {
		got, err := Queues{Source: map[string]string{deadARN: sourceARN}}.Open(c.m)
		if err != nil || got.Form != c.form || len(got.Batch.Records) == 0 || got.Batch.Records[0].Identity != c.identity {
			t.Errorf("%s: %+v, %v; want form %d and identity %s", name, got, err, c.form, c.identity)
		}
	}
	got, err := Queues{}.Open(moved)
	r := got.Batch.Records[0]
	if err != nil || string(r.Payload) != "hello" || r.Group != "g" || r.Arrived.UnixMilli() != 1_700_000_000_500 ||
		got.Batch.Kind != envelope.SQS || got.Batch.Source != sourceARN {
		t.Errorf("moved: %+v, %v", got, err)
	}
}

func TestLetters_ANoticeSaysWhereItsRecordsAre(t *testing.T) {
	for _, extra := range []string{"", `,"responseContext":{"statusCode":200}`, `,"responseContext":null`,
		`,"payload":"{\"Records\":[]}"`, `,"payload":` + text(t, kinesisEvent(streamARN, shardID, "one of two"))} {
		got, err := Queues{}.Open(message(noticeText(seven, extra)))
		if err != nil || got.Form != Notice || got.Range != seven {
			t.Errorf("with %s: %+v, %v", extra, got, err)
		}
	}
}

func TestLetters_AnS3NotificationPointsAtDocumentsAlone(t *testing.T) {
	event := func(key string) Message {
		return message(`{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{"name":"b"},"object":{"key":"` + key + `"}}}]}`)
	}
	got, err := Queues{}.Open(event("aws/lambda/u/" + shardID + "/a%3Ab+c"))
	if err != nil || got.Form != Pointer || got.Objects[0] != (Object{"b", "aws/lambda/u/" + shardID + "/a:b c"}) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = Queues{Source: map[string]string{deadARN: sourceARN}}.Open(event("photos/1.jpg"))
	if err != nil || got.Form != Original {
		t.Errorf("a producer's notification: %+v, %v", got, err)
	}
}

func TestLetters_WhatAProducerSentIsNeverTakenForLambdasWord(t *testing.T) {
	m := message(noticeText(seven, ""))
	m.Attributes[attributeSource] = sourceARN
	if got, err := (Queues{}).Open(m); err != nil || got.Form != Original {
		t.Errorf("%+v, %v; want an original message", got, err)
	}
	// But what moved on from a queue of dead letters is a letter still.
	if got, err := (Queues{Letters: []string{sourceARN}}).Open(m); err != nil || got.Form != Notice {
		t.Errorf("%+v, %v; want a notice", got, err)
	}
}

func TestLetters_WhatCannotBeReplayedIsAnError(t *testing.T) {
	forged := parkedOf(envelope.Kinesis, "x")
	forged.Number = "8"
	wrong := seven
	wrong.First = "9"
	noStream := seven
	noStream.Stream = ""
	badSource := message("x")
	badSource.Attributes[attributeSource] = "arn:aws:sns:us-east-1:000000000000:topic"
	for name, m := range map[string]Message{
		"no source":           message("hello"),
		"not JSON":            message("{"),
		"unknown version":     message(`{"abacus":"parked-record/9"}`),
		"forged identity":     message(text(t, forged)),
		"numbers in disorder": message(noticeText(wrong, "")),
		"no stream":           message(noticeText(noStream, "")),
		"damaged notice":      message(`{"KinesisBatchInfo":7}`),
		"DynamoDB stream":     message(`{"DDBStreamBatchInfo":{}}`),
		"payload no event":    message(noticeText(seven, `,"payload":"{}"`)),
		"payload of another shard": message(noticeText(seven, `,"payload":`+
			text(t, kinesisEvent(streamARN, "shardId-000000000001", "a", "b")))),
		"moved by no queue": badSource,
		"S3 test message":   message(`{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`),
	} {
		if got, err := (Queues{}).Open(m); !errors.Is(err, ErrLetter) {
			t.Errorf("%s: %+v, %v; want ErrLetter", name, got, err)
		}
	}
	if _, err := OpenDocument([]byte(text(t, parkedOf(envelope.SQS, "x")))); !errors.Is(err, ErrLetter) {
		t.Errorf("an object that is no document: %v", err)
	}
}

func TestMessages_AnEventIsAllOrNothing(t *testing.T) {
	one := `{"messageId":"m1","body":"b","attributes":{"SentTimestamp":"1"},"eventSource":"aws:sqs","eventSourceARN":"` +
		deadARN + `"}`
	got, err := Messages([]byte(`{"Records":[` + one + `]}`))
	if err != nil || len(got) != 1 || got[0].ID != "m1" || got[0].Queue != deadARN || got[0].Body != "b" ||
		got[0].Attributes[attributeSent] != "1" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, event := range []string{``, `{}`, `{"Records":[]}`, `[]`, `{"Records":[` + one + `,{}]}`,
		strings.Replace(`{"Records":[`+one+`]}`, "aws:sqs", "aws:sns", 1)} {
		if _, err := Messages([]byte(event)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v, want ErrEvent", event, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(noticeText(seven, ""), "")
	f.Add(`{"abacus":"parked-record/1"}`, sourceARN)
	f.Add(`{"Records":[{"eventSource":"aws:s3"}]}`, "")
	f.Fuzz(func(t *testing.T, body, source string) {
		m := message(body)
		m.Attributes[attributeSource] = source
		got, err := Queues{}.Open(m)
		switch {
		case err != nil && !errors.Is(err, ErrLetter):
			t.Errorf("%v does not wrap ErrLetter", err)
		case err == nil && got.Form == 0:
			t.Error("a letter without a form")
		case err == nil && len(got.Batch.Records) == 0 && got.Form != Pointer && got.Range.check() != nil:
			t.Errorf("%+v has nothing to replay", got)
		}
		for _, r := range got.Batch.Records {
			if r.ID == "" || !strings.HasPrefix(r.Identity, got.Batch.Source) {
				t.Errorf("record %+v of %s", r, got.Batch.Source)
			}
		}
	})
}

func TestLetters_ANoticeOfAnOversizedRecordIsKept(t *testing.T) {
	notice, err := parkedOf(envelope.Kinesis, strings.Repeat("x", 2<<20)).Notice()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (Queues{}).Open(message(string(notice))); !errors.Is(err, ErrLetter) {
		t.Errorf("%+v, %v: it has the payload's beginning alone, and nothing must be counted by it", got.Form, err)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"Records":[{"messageId":"m","body":"b","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:r:1:q"}]}`))
	f.Add([]byte(`{"Records":[]}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		got, err := Messages(event)
		if (err == nil) != (len(got) > 0) || err != nil && !errors.Is(err, ErrEvent) {
			t.Errorf("%d messages, %v", len(got), err)
		}
		for _, m := range got {
			if m.ID == "" || m.Queue == "" {
				t.Errorf("message %+v has no name", m)
			}
		}
	})
}
