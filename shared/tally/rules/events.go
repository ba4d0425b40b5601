package rules

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"abacus/shared/tally"
)

// separator divides a scope from an identity. It occurs in no scope, and may not occur in a source's identity.
const separator = '\x1f'

// Document is one JSON document of a source.
type Document struct {
	// Source is the source's own identity of the document: the same on every delivery, redelivery and replay, and no other
	// document's. Neither empty nor with the character U+001F.
	Source string
	// Serial becomes tally.Event.Serial.
	Serial string
	// Arrived is when the source took the document, the same on every delivery. It counts where a counter has no time.
	Arrived time.Time
	// JSON is the document: one object. It is not kept.
	JSON []byte
}

// ErrSource reports a Document without a usable Source. It is a fault of the caller: the document may be good.
var ErrSource = errors.New("a document has no usable identity of its source")

// Events appends to dst the events that the document gives, and returns the extended slice. A document that no rule
// matches gives none. expired says how many adds were left out because their bucket's retention was over at now; an
// event that is left with none is left out too.
//
// A *BadRecord is returned where the document breaks any rule that it matches: then nothing is appended, since a bad
// record is bad as a whole. Apart from expired adds and times too far ahead, the answer does not depend on now.
func (s *Set) Events(dst []tally.Event, doc Document, now time.Time) (events []tally.Event, expired int, err error) {
	if doc.Source == "" || strings.IndexByte(doc.Source, separator) >= 0 {
		return dst, 0, fmt.Errorf("rules: %w; give each document one, without control characters", ErrSource)
	}
	w := s.pool.Get().(*work)
	defer s.put(w)
	return w.events(dst, doc, now)
}

// put keeps w for a later call, unless this document made it large.
func (s *Set) put(w *work) {
	const most = 64 << 10
	if cap(w.text) <= most && cap(w.name) <= most {
		w.reset()
		s.pool.Put(w)
	}
}
