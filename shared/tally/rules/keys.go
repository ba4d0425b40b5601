package rules

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

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
