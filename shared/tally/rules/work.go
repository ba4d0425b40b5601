package rules

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"abacus/shared/tally"

	"github.com/go-json-experiment/json/jsontext"
)

// work is what one call of Events needs. It is used again by later calls, so that a document costs few allocations.
type work struct {
	reader
	file        string
	environment environment
	list        cursor
	doc         Document
	now         time.Time

	text    []byte // identities and keys, cut into spans
	events  []draft
	adds    []draftAdd
	keys    []span // of the counter at hand
	expired int
	scratch [64]byte
}

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
	w := &work{file: s.file}
	w.values = make([]value, s.slots)
	w.environment.values = map[string]any{}
	w.environment.left = MaxMatchValues
	return w
}

// reset forgets the document.
func (w *work) reset() {
	w.reader.reset()
	w.environment.reset()
	w.list.open(nil)
	w.doc, w.expired = Document{}, 0
	w.text, w.events, w.adds = w.text[:0], w.events[:0], w.adds[:0]
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
			w.events[event].adds++
		}
	}
	if w.events[event].adds > MaxAdds {
		return w.bad(c, "keys", c.keys[0].line, "", fmt.Sprintf("the record makes more than %d adds of one event; "+
			"use fewer keys or windows, or counters with an id and no common scope", MaxAdds))
	}
	return nil
}

func (w *work) bad(c *counter, member string, line int, path, reason string) *BadRecord {
	return &BadRecord{
		Counter: c.name, Rule: fmt.Sprintf("%s:%d", w.file, line), Member: member, Path: path, Reason: reason,
	}
}

func (w *work) matches(c *counter) (bool, *BadRecord) {
	if c.match == nil {
		return true, nil
	}
	if name, wrong := w.environment.load(c.match.reads, w.values); wrong != "" {
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
	for i, e := range w.events {
		if bytes.Equal(w.text[e.id.from:e.id.to], w.text[from:]) {
			w.text = w.text[:from]
			return i, nil
		}
	}
	w.events = append(w.events, draft{id: span{from, len(w.text)}})
	return len(w.events) - 1, nil
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

// makeKeys fills keys with the distinct keys of the counter.
func (w *work) makeKeys(c *counter) *BadRecord {
	w.keys = w.keys[:0]
	for i := range c.keys {
		t := &c.keys[i]
		var path, wrong string
		if t.list < 0 {
			path, wrong = w.makeKey(t, value{})
		} else {
			path, wrong = w.spread(t)
		}
		if wrong != "" {
			return w.bad(c, "keys", t.line, path, wrong)
		}
	}
	return nil
}

func (w *work) makeKey(t *template, element value) (path, wrong string) {
	from := len(w.text)
	if w.text, path, wrong = t.render(w.text, w.values, element); wrong != "" {
		return path, wrong
	}
	key := w.text[from:]
	if slices.ContainsFunc(w.keys, func(k span) bool { return bytes.Equal(w.text[k.from:k.to], key) }) {
		w.text = w.text[:from]
		return "", ""
	}
	if len(w.keys) == MaxAdds {
		return "", fmt.Sprintf("the record gives more than %d keys; send fewer", MaxAdds)
	}
	w.keys = append(w.keys, span{from, len(w.text)})
	return "", ""
}

// spread makes one key for each element of a list.
func (w *work) spread(t *template) (path, wrong string) {
	list := t.parts[t.list]
	v := w.values[list.slot]
	if v.kind != jsontext.KindBeginArray {
		return list.path, v.describe() + "; send a list, or leave such records out with match"
	}
	w.list.open(v.raw)
	_, _ = w.list.ReadToken()
	n := 0
	for kind := w.list.PeekKind(); kind != jsontext.KindEndArray; kind = w.list.PeekKind() {
		if n++; n > MaxList {
			return list.path, fmt.Sprintf("is a list of more than %d elements; send fewer", MaxList)
		}
		raw, _ := w.list.ReadValue() // valid: it was read before
		if path, wrong := w.makeKey(t, value{kind: kind, raw: raw}); wrong != "" {
			return path, wrong
		}
	}
	if n == 0 {
		return list.path, "is an empty list; send elements, or leave such records out with match, as in len(tags) > 0"
	}
	return "", ""
}
