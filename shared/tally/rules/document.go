package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// value is one JSON value of a document, not yet decoded.
type value struct {
	kind jsontext.Kind // absent, misplaced, or the kind of raw
	raw  []byte        // the literal, valid JSON; part of the document's bytes
}

// Kinds that JSON does not have.
const (
	absent    = jsontext.KindInvalid
	misplaced = jsontext.Kind('.') // the path goes through a value that has no members
)

// describe says what a value is, without saying which.
func (v value) describe() string {
	switch v.kind {
	case absent:
		return "is absent"
	case misplaced:
		return "goes through a value that is not an object"
	case jsontext.KindNull:
		return "is null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "is true or false"
	case jsontext.KindNumber:
		return "is a number"
	case jsontext.KindString:
		return "is text"
	case jsontext.KindBeginArray:
		return "is a list"
	default:
		return "is an object"
	}
}

// appendText appends what the string literal v says.
func (v value) appendText(dst []byte) []byte {
	if bytes.IndexByte(v.raw, '\\') < 0 {
		return append(dst, v.raw[1:len(v.raw)-1]...)
	}
	dst, _ = jsontext.AppendUnquote(dst, v.raw) // cannot fail: the literal was checked when it was read
	return dst
}

// text returns what the string literal v says.
func (v value) text() string {
	if bytes.IndexByte(v.raw, '\\') < 0 {
		return string(v.raw[1 : len(v.raw)-1])
	}
	return string(v.appendText(nil))
}

// cursor reads JSON text token by token. It copies nothing and is used again and again.
type cursor struct {
	jsontext.Decoder
	input bytes.Buffer
	used  bool
}

func (c *cursor) open(text []byte) {
	c.used = true
	c.input = *bytes.NewBuffer(text)
	c.Reset(&c.input)
}

// close forgets the text.
func (c *cursor) close() {
	if c.used {
		c.open(nil)
		c.used = false
	}
}

// reader reads the members that rules need out of documents, one document at a time, in one pass.
type reader struct {
	cursor   cursor
	document []byte
	values   []value // by slot
	name     []byte  // scratch
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// read fills values, which are absent before. The document must be one JSON object and nothing else: valid UTF-8, no
// member name twice in any of its objects, nested at most 10,000 deep. One byte order mark before it is skipped.
func (r *reader) read(root *member, document []byte) error {
	r.document = bytes.TrimPrefix(document, byteOrderMark)
	if r.flat(root) {
		return nil
	}
	r.cursor.open(r.document)
	if kind := r.cursor.PeekKind(); kind != jsontext.KindBeginObject && kind != absent {
		return errors.New("is not a JSON object; send one object for each event")
	}
	if err := r.object(root); err != nil {
		return r.explain(err)
	}
	if _, err := r.cursor.ReadToken(); err != io.EOF {
		return fmt.Errorf("goes on after its JSON object, at byte %d; send one object for each event", r.cursor.InputOffset())
	}
	return nil
}

// reset forgets the document.
func (r *reader) reset() {
	clear(r.values)
	r.document = nil
	r.cursor.close()
}

func (r *reader) object(m *member) error {
	if _, err := r.cursor.ReadToken(); err != nil {
		return err
	}
	for r.cursor.PeekKind() != jsontext.KindEndObject {
		name, err := r.cursor.ReadValue()
		if err != nil {
			return err
		}
		if child := r.find(m, name); child != nil {
			err = r.keep(child)
		} else {
			_, err = r.cursor.ReadValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := r.cursor.ReadToken()
	return err
}

func (r *reader) find(m *member, name []byte) *member {
	r.name = value{raw: name}.appendText(r.name[:0])
	return m.children[string(r.name)]
}

// keep reads one value into m's slot, and the members under it into theirs.
func (r *reader) keep(m *member) error {
	kind := r.cursor.PeekKind()
	from := r.cursor.InputOffset() // of the colon before the value
	if kind == jsontext.KindBeginObject && len(m.children) > 0 {
		if err := r.object(m); err != nil {
			return err
		}
		from += int64(bytes.IndexByte(r.document[from:], '{'))
	} else {
		raw, err := r.cursor.ReadValue()
		if err != nil {
			return err
		}
		from = r.cursor.InputOffset() - int64(len(raw))
	}
	m.hold(r.values, value{kind: kind, raw: r.document[from:r.cursor.InputOffset()]})
	return nil
}

// hold puts v into the member's slot, and says of those below it that they are not there to be had.
func (m *member) hold(values []value, v value) {
	if v.kind != jsontext.KindNull && v.kind != jsontext.KindBeginObject {
		for _, slot := range m.below {
			values[slot].kind = misplaced
		}
	}
	if m.slot >= 0 {
		values[m.slot] = v
	}
}

// explain replaces a decoder's error, which may quote the document, by one that does not.
func (r *reader) explain(err error) error {
	at := r.cursor.InputOffset()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at = syntax.ByteOffset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("has one member name twice in one object, at byte %d; send each name once", at)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("ends in the middle, at byte %d; send whole JSON objects", at)
	default:
		return fmt.Errorf("is not JSON at byte %d; send RFC 8259 JSON in UTF-8, nested at most 10000 deep", at)
	}
}
