package rules

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// maxFlat is how many members a flat document has at most: each name is compared with all before it.
const maxFlat = 32

// plain are the bytes that stand for themselves in a JSON string: printable ASCII without quote and backslash.
var plain = func() (is [256]bool) {
	for c := ' '; c <= '~'; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// flat reads a document whose members are all scalars of plain text, as most are, several times as fast as a decoder of
// any JSON. It reports false, and leaves no value, for whatever else the document may be, valid or not: it refuses
// nothing and guesses nothing.
func (r *reader) flat(root *member) bool {
	f := flat{doc: r.document}
	if f.members(r, root) {
		return true
	}
	clear(r.values)
	return false
}

// flat is a place in a document. Its methods report false where the document is not what they look for.
type flat struct {
	doc   []byte
	at    int
	names [maxFlat][]byte
	n     int
}

func (f *flat) space() {
	for f.at < len(f.doc) && (f.doc[f.at] == ' ' || f.doc[f.at] == '\n' || f.doc[f.at] == '\t' || f.doc[f.at] == '\r') {
		f.at++
	}
}

// next passes white space, and reports whether c comes then, which it passes too.
func (f *flat) next(c byte) bool {
	f.space()
	if f.at == len(f.doc) || f.doc[f.at] != c {
		return false
	}
	f.at++
	return true
}

func (f *flat) members(r *reader, root *member) bool {
	if !f.next('{') {
		return false
	}
	for more := !f.next('}'); more; more = !f.next('}') {
		if f.n > 0 && !f.next(',') || !f.next('"') {
			return false
		}
		from := f.at
		if !f.text() || !f.fresh(f.doc[from:f.at-1]) || !f.next(':') {
			return false
		}
		kind, raw := f.scalar()
		if kind == absent {
			return false
		}
		if m := root.children[string(f.names[f.n-1])]; m != nil {
			m.hold(r.values, value{kind: kind, raw: raw})
		}
	}
	f.space()
	return f.at == len(f.doc)
}

// fresh notes a name, unless it was there before.
func (f *flat) fresh(name []byte) bool {
	for _, before := range f.names[:f.n] {
		if bytes.Equal(before, name) {
			return false
		}
	}
	if f.n == maxFlat {
		return false
	}
	f.names[f.n] = name
	f.n++
	return true
}

// text passes plain text and the quote behind it.
func (f *flat) text() bool {
	for f.at < len(f.doc) && plain[f.doc[f.at]] {
		f.at++
	}
	if f.at == len(f.doc) || f.doc[f.at] != '"' {
		return false
	}
	f.at++
	return true
}

// scalar passes a value and returns it; absent if it is none that is read here.
func (f *flat) scalar() (kind jsontext.Kind, raw []byte) {
	f.space()
	from, ok := f.at, false
	switch c := f.peek(); {
	case c == '"':
		f.at++
		kind, ok = jsontext.KindString, f.text()
	case c == '-' || c >= '0' && c <= '9':
		kind, ok = jsontext.KindNumber, f.number()
	case c == 't':
		kind, ok = jsontext.KindTrue, f.word("true")
	case c == 'f':
		kind, ok = jsontext.KindFalse, f.word("false")
	case c == 'n':
		kind, ok = jsontext.KindNull, f.word("null")
	}
	if !ok {
		return absent, nil
	}
	return kind, f.doc[from:f.at:f.at]
}

func (f *flat) peek() byte {
	if f.at < len(f.doc) {
		return f.doc[f.at]
	}
	return 0
}

func (f *flat) word(word string) bool {
	if !bytes.HasPrefix(f.doc[f.at:], []byte(word)) {
		return false
	}
	f.at += len(word)
	return true
}

func (f *flat) number() bool {
	if f.peek() == '-' {
		f.at++
	}
	if f.peek() == '0' {
		f.at++
	} else if !f.digits() {
		return false
	}
	if f.peek() == '.' {
		if f.at++; !f.digits() {
			return false
		}
	}
	if c := f.peek(); c == 'e' || c == 'E' {
		if f.at++; f.peek() == '+' || f.peek() == '-' {
			f.at++
		}
		return f.digits()
	}
	return true
}

// digits passes one or more of them.
func (f *flat) digits() bool {
	from := f.at
	for c := f.peek(); c >= '0' && c <= '9'; c = f.peek() {
		f.at++
	}
	return f.at > from
}
