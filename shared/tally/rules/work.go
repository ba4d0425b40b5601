package rules

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"abacus/shared/tally"

	"github.com/go-json-experiment/json/jsontext"
)

// work is what one call of Events needs. It is used again by later calls, so that a document costs few allocations.
type work struct {
	set *Set
	reader
	environment environment
	list        cursor
	doc         Document
	now         time.Time

	text    []byte // identities and keys, cut into spans
	drafts  []draft
	adds    []draftAdd
	keys    []span // of the counter at hand
	expired int
	scratch [64]byte

	slab  []tally.Add     // room for the adds of further events
	texts strings.Builder // room for their text
}

// Room is made for the events of several documents at a time. What an event refers to is written once and then left
// alone, but keeps its neighbours' room alive.
const (
	slabAdds  = 64
	textBytes = 2 << 10
)

// span is a part of work.text.
type span struct{ from, to int }

func (s span) of(text string) string { return text[s.from:s.to] }

// draft is an event to be.
type draft struct {
	id   span // empty: the source's own identity
	adds int  // how many
	next int  // where in the events' common adds the next one goes
}

type draftAdd struct {
	event   int
	counter *counter
	key     span
	window  *window
	bucket  int64
	delta   int64
	expires int64
}

func newWork(s *Set) *work {
	w := &work{set: s}
	w.values = make([]value, s.slots)
	w.environment.values = map[string]any{}
	w.environment.left = MaxMatchValues
	return w
}

// reset forgets the document.
func (w *work) reset() {
	w.reader.reset()
	w.environment.reset()
	w.list.close()
	w.doc, w.expired = Document{}, 0
	w.text, w.drafts, w.adds = w.text[:0], w.drafts[:0], w.adds[:0]
}

// events is Set.Events for one document.
func (w *work) events(dst []tally.Event, doc Document, now time.Time) (events []tally.Event, expired int, err error) {
	w.doc, w.now = doc, now
	if err := w.read(w.set.root, doc.JSON); err != nil {
		return dst, 0, &BadRecord{Reason: "the document " + err.Error()}
	}
	for i := range w.set.counters {
		if bad := w.count(&w.set.counters[i]); bad != nil {
			return dst, 0, bad
		}
	}
	return w.emit(dst), w.expired, nil
}

// room returns room for the adds at hand, and their text as a string.
func (w *work) room() (slab []tally.Add, text string) {
	if n := len(w.adds); len(w.slab) < n {
		w.slab = make([]tally.Add, max(n, slabAdds))
	}
	if n := len(w.text); w.texts.Cap()-w.texts.Len() < n {
		w.texts = strings.Builder{}
		w.texts.Grow(max(n, textBytes))
	}
	from := w.texts.Len()
	w.texts.Write(w.text)
	slab, w.slab = w.slab[:len(w.adds)], w.slab[len(w.adds):]
	return slab, w.texts.String()[from:]
}

// emit appends the drafts to dst.
func (w *work) emit(dst []tally.Event) []tally.Event {
	if len(w.adds) == 0 {
		return dst
	}
	slab, text := w.room()
	next := 0
	for i := range w.drafts {
		w.drafts[i].next = next
		next += w.drafts[i].adds
	}
	for _, a := range w.adds {
		e := &w.drafts[a.event]
		slab[e.next] = tally.Add{
			Cell:  tally.Cell{Counter: a.counter.name, Key: a.key.of(text), Window: a.window.name, Bucket: a.bucket},
			Delta: a.delta, Expires: a.expires,
		}
		e.next++
	}
	for _, e := range w.drafts {
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

// count adds to the drafts what one counter makes of the document.
func (w *work) count(c *counter) *BadRecord {
	if matched, bad := w.matches(c); bad != nil || !matched {
		return bad
	}
	event, bad := w.event(c)
	if bad != nil {
		return bad
	}
	moment, bad := w.moment(c)
	if bad != nil {
		return bad
	}
	delta, bad := w.delta(c)
	if bad != nil {
		return bad
	}
	if bad := w.makeKeys(c); bad != nil {
		return bad
	}
	for _, key := range w.keys {
		for i := range c.windows {
			add := draftAdd{event: event, counter: c, key: key, window: &c.windows[i], delta: delta}
			add.bucket = add.window.BucketStart(moment)
			if add.window.retention != 0 {
				add.expires = add.window.BucketEnd(add.bucket) + int64(add.window.retention/time.Second)
				if add.expires <= w.now.Unix() {
					w.expired++
					continue
				}
			}
			w.adds = append(w.adds, add)
			w.drafts[event].adds++
		}
	}
	if w.drafts[event].adds > MaxAdds {
		return w.bad(c, "keys", c.keys[0].line, "", fmt.Sprintf("the record makes more than %d adds of one event; "+
			"use fewer keys or windows, or counters with an id and no common scope", MaxAdds))
	}
	return nil
}

func (w *work) bad(c *counter, member string, line int, path, reason string) *BadRecord {
	return &BadRecord{
		Counter: c.name, Rule: fmt.Sprintf("%s:%d", w.set.file, line), Member: member, Path: path, Reason: reason,
	}
}

func (w *work) matches(c *counter) (bool, *BadRecord) {
	if c.match == nil {
		return true, nil
	}
	if name, wrong := w.environment.load(c.match, w.values); wrong != "" {
		return false, w.bad(c, "match", c.match.line, name, wrong)
	}
	matched, err := w.environment.matches(c.match.program)
	if err != nil {
		return false, w.bad(c, "match", c.match.line, "", explainRun(err))
	}
	return matched, nil
}

// event returns the index of the draft that the counter's adds belong to.
func (w *work) event(c *counter) (int, *BadRecord) {
	from := len(w.text)
	if c.id != nil {
		if wrong := w.appendID(c.id); wrong != "" {
			return 0, w.bad(c, "id", c.id.line, c.id.path, wrong)
		}
	}
	for i, e := range w.drafts {
		if bytes.Equal(w.text[e.id.from:e.id.to], w.text[from:]) {
			w.text = w.text[:from]
			return i, nil
		}
	}
	w.drafts = append(w.drafts, draft{id: span{from, len(w.text)}})
	return len(w.drafts) - 1, nil
}

// appendID appends scope and identity, or nothing where the document has no identity for this counter.
func (w *work) appendID(id *identity) (wrong string) {
	v := w.values[id.slot]
	from := len(w.text)
	w.text = append(append(w.text, id.scope...), separator)
	start := len(w.text)
	switch v.kind {
	case jsontext.KindString:
		w.text = v.appendText(w.text)
	case jsontext.KindNumber:
		n, ok := parseNumber(v.raw), false
		if w.text, ok = n.appendTo(w.text, MaxKey); !ok || !n.integer() {
			return "is a number with a fraction or too many digits; send text or a whole number"
		}
	case absent, jsontext.KindNull:
	default:
		return v.describe() + "; send text or a whole number"
	}
	if len(bytes.TrimSpace(w.text[start:])) == 0 {
		w.text = w.text[:from]
		return ""
	}
	if len(w.text)-from > tally.MaxID {
		w.text = append(w.text[:from], tally.BoundID(string(w.text[from:]))...)
	}
	return ""
}

func (w *work) moment(c *counter) (time.Time, *BadRecord) {
	if c.clock != nil {
		moment, wrong := c.clock.read(w.values[c.clock.slot], w.now, w.scratch[:0])
		if wrong != "" {
			return moment, w.bad(c, "time", c.clock.line, c.clock.path, wrong)
		}
		return moment, nil
	}
	if c.timed && (w.doc.Arrived.Before(earliest) || w.doc.Arrived.After(latest)) {
		return w.doc.Arrived, w.bad(c, "time", c.line, "",
			"the source gave no arrival time within the years 1 to 9999; give the counter a time")
	}
	return w.doc.Arrived, nil
}

func (w *work) delta(c *counter) (int64, *BadRecord) {
	if c.add.path == "" {
		return c.add.constant, nil
	}
	v := w.values[c.add.slot]
	if v.kind != jsontext.KindNumber {
		return 0, w.bad(c, "add", c.add.line, c.add.path, v.describe()+"; send a number without quotes")
	}
	delta, flaw := parseNumber(v.raw).scaled(c.add.scale)
	switch {
	case flaw == tooBig:
		return 0, w.bad(c, "add", c.add.line, c.add.path, "is beyond 64 bits; send a smaller number")
	case flaw == fraction && c.add.scale == 0:
		return 0, w.bad(c, "add", c.add.line, c.add.path,
			"has a fraction; send a whole number, or say in the rule file how many decimals count, with scale")
	case flaw == fraction:
		return 0, w.bad(c, "add", c.add.line, c.add.path,
			fmt.Sprintf("has more than %d decimals; send fewer, or raise scale", c.add.scale))
	}
	return delta, nil
}
