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
// matches gives none. expired says how many adds were left out because their bucket's retention was over at now; an event
// that is left with none is left out too.
//
// A *BadRecord is returned where the document breaks any rule that it matches: then nothing is appended, since a bad
// record is bad as a whole. Apart from expired adds and times too far ahead, the answer does not depend on now.
func (s *Set) Events(dst []tally.Event, doc Document, now time.Time) (events []tally.Event, expired int, err error) {
	if doc.Source == "" || strings.IndexByte(doc.Source, separator) >= 0 {
		return dst, 0, fmt.Errorf("rules: %w; give each document one, without control characters", ErrSource)
	}
	w := s.pool.Get().(*work)
	defer s.put(w)
	w.doc, w.now = doc, now
	if err := w.read(s.root, doc.JSON); err != nil {
		return dst, 0, &BadRecord{Reason: "the document " + err.Error()}
	}
	for i := range s.counters {
		if bad := w.count(&s.counters[i]); bad != nil {
			return dst, 0, bad
		}
	}
	return w.emit(dst), w.expired, nil
}

// put keeps w for a later call, unless this document made it large.
func (s *Set) put(w *work) {
	const most = 64 << 10
	if cap(w.text) <= most && cap(w.name) <= most {
		w.reset()
		s.pool.Put(w)
	}
}

// emit appends the drafts to dst, with one allocation for all text and one for all adds.
func (w *work) emit(dst []tally.Event) []tally.Event {
	if len(w.adds) == 0 {
		return dst
	}
	text := string(w.text)
	slab := make([]tally.Add, len(w.adds))
	next := 0
	for i := range w.events {
		w.events[i].next = next
		next += w.events[i].adds
	}
	for _, a := range w.adds {
		e := &w.events[a.event]
		slab[e.next] = tally.Add{
			Cell:  tally.Cell{Counter: a.counter.name, Key: a.key.of(text), Window: a.window.name, Bucket: a.bucket},
			Delta: a.delta, Expires: a.expires,
		}
		e.next++
	}
	for _, e := range w.events {
		if e.adds == 0 {
			continue
		}
		id := e.id.of(text)
		if id == "" {
			id = tally.BoundID(w.doc.Source)
		}
		dst = append(dst, tally.Event{ID: id, Serial: w.doc.Serial, Adds: slab[e.next-e.adds : e.next : e.next]})
	}
	return dst
}
