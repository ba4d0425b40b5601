package replay

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"abacus/shared/envelope"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrLetter reports a message that is none of the forms that can be replayed, or a damaged one. It is kept.
var ErrLetter = errors.New("not a dead letter that can be replayed")

// Form is what a dead letter is.
type Form uint8

// The forms of dead letters; see the package comment.
const (
	Parked   Form = iota + 1 // Batch has its one record
	Notice                   // Range says where its records are
	Document                 // Batch has the whole event
	Pointer                  // Objects say where documents are
	Original                 // Batch has the message as its source queue delivered it
)

// Letter is one opened message of a dead-letter queue. Its records have the identities that they had at their source,
// never the dead letter's own.
type Letter struct {
	Form    Form
	Batch   envelope.Batch // Parked, Document, Original
	Range   Range          // Notice, Document
	Objects []Object       // Pointer
	// Parked has the rounds that a parked record has been through; History what was said of it, the oldest first.
	Parked  envelope.Parked
	History []Round
}

// Object names an object of S3.
type Object struct{ Bucket, Key string }

// objectPrefix begins the key of every on-failure document
// (https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html).
const objectPrefix = "aws/lambda/"

// Queues say where the messages of a dead-letter queue come from.
type Queues struct {
	// Source gives the ARN of the queue whose messages a dead-letter queue, by ARN, takes. It stands in where a message
	// does not say so itself, and is not needed where it does.
	Source map[string]string
	// Letters are ARNs of queues that hold dead letters and have a dead-letter queue of their own. What comes from one is
	// a letter still, and not an original message of that queue.
	Letters []string
}

// Open recognises a message. What SQS itself says it moved is an original message whatever it says, so that nobody who
// can write to a source queue can pass for Lambda; anything else is told by its content. An error wraps ErrLetter.
func (q Queues) Open(m Message) (Letter, error) {
	source := m.Attributes[attributeSource]
	if source != "" && !slices.Contains(q.Letters, source) {
		return original(m, source)
	}
	letter, err := open([]byte(m.Body))
	if err != nil || letter.Form != 0 {
		return letter, err
	}
	if source = q.Source[m.Queue]; source == "" && m.Attributes[attributeSource] != "" {
		source = q.Source[m.Attributes[attributeSource]]
	}
	if source == "" {
		return Letter{}, fmt.Errorf("%w: it is of no known form, and neither the message nor a setting says which queue "+
			"it came from; name the source of queue %s", ErrLetter, m.Queue)
	}
	return original(m, source)
}

// body is what tells the forms apart; members of no interest are skipped.
type body struct {
	Abacus  *string      `json:"abacus"`
	Batch   *kinesisInfo `json:"KinesisBatchInfo"`
	DDB     any          `json:"DDBStreamBatchInfo"`
	Payload string       `json:"payload"`
	Records []struct {
		Source string `json:"eventSource"`
		S3     struct {
			Bucket struct {
				Name string `json:"name"`
			} `json:"bucket"`
			Object struct {
				Key string `json:"key"`
			} `json:"object"`
		} `json:"s3"`
	} `json:"Records"`
}

type kinesisInfo struct {
	Shard  string                  `json:"shardId"`
	First  envelope.SequenceNumber `json:"startSequenceNumber"`
	Last   envelope.SequenceNumber `json:"endSequenceNumber"`
	Size   int                     `json:"batchSize"`
	Stream string                  `json:"streamArn"`
}

// open returns the letter that a text is by its content, or one without a form.
func open(text []byte) (Letter, error) {
	var marks map[string]jsontext.Value
	if json.Unmarshal(text, &marks) != nil || !marked(marks) {
		return Letter{}, nil
	}
	if _, ok := marks["abacus"]; ok {
		return parked(text)
	}
	var b body
	if err := json.Unmarshal(text, &b); err != nil {
		if _, ok := marks["Records"]; ok {
			return Letter{}, nil // a producer's own Records
		}
		return Letter{}, fmt.Errorf("%w: a damaged notice", ErrLetter)
	}
	switch {
	case b.Batch != nil:
		return notice(b)
	case b.DDB != nil:
		return Letter{}, fmt.Errorf("%w: it is of a DynamoDB stream, which Abacus does not count", ErrLetter)
	}
	return pointer(b), nil
}

func marked(marks map[string]jsontext.Value) bool {
	for _, name := range []string{"abacus", "KinesisBatchInfo", "DDBStreamBatchInfo", "Records"} {
		if _, ok := marks[name]; ok {
			return true
		}
	}
	return false
}

// parked opens a parked record. Its identity must be the one that its source gives, so that no document can pass for
// another record.
func parked(text []byte) (Letter, error) {
	p, err := envelope.ParseParked(text)
	if err != nil {
		return Letter{}, fmt.Errorf("%w: %w", ErrLetter, err)
	}
	r := envelope.Record{Identity: p.Identity, Payload: p.Payload, Arrived: p.Arrived}
	identity := ""
	switch {
	case p.Kind == envelope.Kinesis && p.Number.Valid() && plain(p.Source, p.Shard):
		r.ID, identity = string(p.Number), envelope.KinesisIdentity(p.Source, p.Shard, p.Number)
	case p.Kind == envelope.SQS && p.Shard == "" && plain(p.Source, p.Message):
		r.ID, identity = p.Message, envelope.SQSIdentity(p.Source, p.Message)
	}
	if identity == "" || identity != p.Identity || p.Round < 0 {
		return Letter{}, fmt.Errorf("%w: the parked record's identity is not that of its source and position", ErrLetter)
	}
	var more struct {
		History []Round `json:"history"`
	}
	if err := json.Unmarshal(text, &more); err != nil {
		return Letter{}, fmt.Errorf("%w: the parked record's history is damaged", ErrLetter)
	}
	batch := envelope.Batch{Kind: p.Kind, Source: p.Source, Shard: p.Shard, Records: []envelope.Record{r}}
	return Letter{Form: Parked, Batch: batch, Parked: p, History: more.History}, nil
}

// notice opens an on-failure notice, with the event in it or not. Condition and response are for people: their values
// are open, and a batch that was never taken by the function has none.
func notice(b body) (Letter, error) {
	r := Range{Stream: b.Batch.Stream, Shard: b.Batch.Shard, First: b.Batch.First, Last: b.Batch.Last, Size: b.Batch.Size}
	if err := r.check(); err != nil {
		return Letter{}, fmt.Errorf("%w: a damaged notice: %w", ErrLetter, err)
	}
	if b.Payload == "" {
		return Letter{Form: Notice, Range: r}, nil
	}
	batch, err := envelope.Decode(envelope.Kinesis, []byte(b.Payload))
	if err != nil {
		return Letter{}, fmt.Errorf("%w: the event in the document: %w", ErrLetter, err)
	}
	if len(batch.Records) < r.Size { // not the whole event: the shard has the rest
		return Letter{Form: Notice, Range: r}, nil
	}
	if batch.Source != streamOf(r.Stream) || batch.Shard != r.Shard {
		return Letter{}, fmt.Errorf("%w: the event in the document is not of the shard that the document names", ErrLetter)
	}
	return Letter{Form: Document, Batch: batch, Range: r}, nil
}

// streamOf cuts the ARN of an enhanced fan-out consumer back to its stream, as package envelope does in identities.
func streamOf(arn string) string {
	stream, _, _ := strings.Cut(arn, "/consumer/")
	return stream
}

// pointer opens an S3 notification, if all of it is of on-failure documents
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html: keys are URL-encoded).
func pointer(b body) Letter {
	var objects []Object
	for _, r := range b.Records {
		key, err := url.QueryUnescape(r.S3.Object.Key)
		if err != nil || r.Source != "aws:s3" || r.S3.Bucket.Name == "" || !strings.HasPrefix(key, objectPrefix) {
			return Letter{}
		}
		objects = append(objects, Object{r.S3.Bucket.Name, key})
	}
	if len(objects) == 0 {
		return Letter{}
	}
	return Letter{Form: Pointer, Objects: objects}
}

// OpenDocument opens an object's content, which must be an on-failure document. An error wraps ErrLetter.
func OpenDocument(text []byte) (Letter, error) {
	letter, err := open(text)
	if err == nil && letter.Form != Document && letter.Form != Notice {
		err = fmt.Errorf("%w: the object is not an on-failure document", ErrLetter)
	}
	return letter, err
}

// original opens a message that a redrive policy moved from source: it is that queue's message as it was.
func original(m Message, source string) (Letter, error) {
	if !plain(source, m.ID) || !strings.Contains(source, ":sqs:") {
		return Letter{}, fmt.Errorf("%w: no message id, or no queue's ARN as its source", ErrLetter)
	}
	r := envelope.Record{ID: m.ID, Identity: envelope.SQSIdentity(source, m.ID), Payload: []byte(m.Body),
		Group: m.Attributes[attributeGroup]}
	if sent, err := strconv.ParseInt(m.Attributes[attributeSent], 10, 64); err == nil && sent > 0 {
		r.Arrived = time.UnixMilli(sent).UTC()
	}
	batch := envelope.Batch{Kind: envelope.SQS, Source: source, Records: []envelope.Record{r}}
	return Letter{Form: Original, Batch: batch}, nil
}

// plain reports whether names are such as AWS gives: printable ASCII without the marks of an identity.
func plain(names ...string) bool {
	for _, name := range names {
		bad := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '|' || r == '#' })
		if bad || name == "" {
			return false
		}
	}
	return true
}
