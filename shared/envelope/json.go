package envelope

import (
	"bytes"
	"fmt"

	"abacus/shared/tally"
)

var byteOrderMark = []byte("\uFEFF")

// json walks the values of a payload that is wrapped no further.
func (w *walk) json(payload []byte) error {
	s := scanner{src: bytes.TrimPrefix(payload, byteOrderMark)}
	if s.peek(); s.at == len(s.src) {
		s.fail("is empty")
	}
	var inside error
	for s.peek(); s.at < len(s.src) && inside == nil; s.peek() {
		if s.src[s.at] != '[' {
			inside = w.object(&s)
			continue
		}
		s.open('[')
		for first := true; s.err == nil && inside == nil && !s.take(']'); first = false {
			if !first {
				s.expect(',')
			}
			inside = w.object(&s)
		}
		s.depth--
	}
	if inside == nil && s.err != nil {
		inside = fmt.Errorf("%w: it %w; send JSON objects, one or an array or one a line", ErrPayload, s.err)
	}
	return inside
}

// object walks the object that comes next: a document, or a wrapping that is told by its members. A fault of its JSON is
// left to s.
func (w *walk) object(s *scanner) error {
	if s.peek() != '{' {
		s.fail("has something else than an object at byte %d", s.at)
		return nil
	}
	text, marks := s.marked()
	if s.err != nil {
		return nil
	}
	if marks&w.opens != 0 {
		for _, l := range w.objects {
			if marks&l.name == 0 {
				continue
			}
			if is, err := l.open(w, text); is {
				return err
			}
		}
	}
	return w.emit(Document{JSON: text})
}

// marked consumes an object and returns its text, and the wrappings that it may be by the name of one of its members.
func (s *scanner) marked() (text []byte, marks tally.Envelopes) {
	src, from := s.src, s.at
	s.open('{')
	for first := true; s.err == nil && !s.take('}'); first = false {
		if !first {
			s.expect(',')
		}
		name, _ := s.span()
		marks |= mark(name)
		s.expect(':')
		s.skip()
	}
	s.depth--
	if s.err != nil {
		return nil, 0
	}
	return src[from:s.at], marks
}

// mark tells by the name of a member which wrapping an object may be.
func mark(name []byte) tally.Envelopes {
	switch string(name) {
	case "TopicArn":
		return tally.SNS
	case "detail-type":
		return tally.EventBridge
	case "Records", "Event":
		return tally.S3
	case "logEvents":
		return tally.Logs
	}
	return 0
}

// members finds the members of an object that names lists: the text of each one's value, nil where it is absent. It
// reports false where one comes twice.
func members(object []byte, names []string, values [][]byte) bool {
	s := scanner{src: object}
	s.object(names, func(i int) { values[i] = s.skip() })
	return s.err == nil
}

// said returns what the JSON text of a string says; false for any other value, and for half a surrogate pair.
func said(value []byte) (text []byte, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return nil, false
	}
	s := scanner{src: value}
	text = s.quoted()
	return text, s.err == nil
}

// says reports whether value is the JSON text of that string.
func says(value []byte, text string) bool {
	got, ok := said(value)
	return ok && string(got) == text
}

func isText(value []byte) bool { _, ok := said(value); return ok }
