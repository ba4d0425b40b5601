package envelope

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeByTokens is the decoder that was measured against Decode and lost: the same fields through a token reader. It
// stays as a second opinion for the fuzzer and as a row of the benchmark.
func decodeByTokens(kind Kind, raw []byte) (Batch, error) {
	d := tokens{Decoder: jsontext.NewDecoder(bytes.NewReader(raw)), batch: Batch{Kind: kind}}
	err := d.object(func(name string) error {
		switch name {
		case "Records":
			d.listed = true
			return d.array(d.record)
		case "window":
			value, err := d.ReadValue()
			d.window = string(value) != "null"
			return err
		case "state":
			value, err := d.ReadValue()
			d.batch.State = bytes.Clone(value)
			return err
		}
		return d.SkipValue()
	})
	if err == nil {
		if _, err = d.ReadToken(); err == nil {
			err = errors.New("more than one value")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	switch {
	case err != nil:
		return Batch{}, err
	case !d.listed || len(d.batch.Records) == 0 && kind != Kinesis:
		return Batch{}, errors.New("no records")
	case !d.window:
		d.batch.State = nil
	case len(d.batch.State) == 0 || d.batch.State[0] != '{':
		d.batch.State = []byte("{}")
	}
	return d.batch, nil
}

type tokens struct {
	*jsontext.Decoder
	batch          Batch
	listed, window bool
}

func (d *tokens) object(member func(name string) error) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '{' {
		return errors.New("not an object")
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

func (d *tokens) array(element func() error) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '[' {
		return errors.New("not an array")
	}
	for d.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

func (d *tokens) text(to *string) error {
	token, err := d.ReadToken()
	if err == nil && token.Kind() == '"' {
		*to = token.String()
	} else if err == nil && token.Kind() != 'n' {
		err = errors.New("not a string")
	}
	return err
}

func (d *tokens) record() error {
	var r Record
	var source, arn, eventID, data, shard string
	if err := d.object(func(name string) error {
		switch {
		case name == "eventSource":
			return d.text(&source)
		case name == "eventSourceARN":
			return d.text(&arn)
		case name == "eventID" && d.batch.Kind == Kinesis:
			return d.text(&eventID)
		case name == "kinesis" && d.batch.Kind == Kinesis:
			return d.object(func(name string) error {
				switch name {
				case "sequenceNumber":
					return d.text(&r.ID)
				case "data":
					return d.text(&data)
				case "approximateArrivalTimestamp":
					value, err := d.ReadValue()
					r.Arrived = arrival(value)
					return err
				}
				return d.SkipValue()
			})
		case name == "messageId" && d.batch.Kind == SQS:
			return d.text(&r.ID)
		case name == "body" && d.batch.Kind == SQS:
			return d.text(&data)
		case name == "attributes" && d.batch.Kind == SQS && d.PeekKind() == '{':
			return d.object(func(name string) error {
				switch name {
				case "MessageGroupId":
					return d.text(&r.Group)
				case "SentTimestamp":
					value, err := d.ReadValue()
					r.Arrived = arrival(value)
					return err
				}
				return d.SkipValue()
			})
		}
		return d.SkipValue()
	}); err != nil {
		return err
	}
	if d.batch.Kind == Kinesis {
		payload, err := base64.StdEncoding.DecodeString(data)
		if err != nil || strings.ContainsAny(data, "\r\n") {
			return errors.New("not base64")
		}
		var ok bool
		if shard, ok = strings.CutSuffix(eventID, ":"+r.ID); !ok || shard == "" || !SequenceNumber(r.ID).Valid() {
			return errors.New("no position")
		}
		r.Payload, r.Identity = payload, KinesisIdentity(arn, shard, SequenceNumber(r.ID))
	} else {
		r.Payload, r.Identity = []byte(data), SQSIdentity(arn, r.ID)
	}
	if len(d.batch.Records) == 0 {
		d.batch.Source, d.batch.Shard = arn, shard
	}
	named := isName([]byte(r.ID)) && isName([]byte(arn)) && (shard == "" || isName([]byte(shard)))
	if source != string(d.batch.Kind) || !named || arn != d.batch.Source || shard != d.batch.Shard {
		return errors.New("not of the source")
	}
	d.batch.Records = append(d.batch.Records, r)
	return nil
}
