package table

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"abacus/shared/local/wire"

	"github.com/go-json-experiment/json/jsontext"
)

// kind is the type of a value.
type kind uint8

const (
	kindS kind = iota + 1
	kindN
	kindB
	kindBool
	kindNull
	kindSS
	kindNS
	kindBS
	kindL
	kindM
)

var kindNames = [...]string{"", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}

// String returns the kind's name on the wire.
func (k kind) String() string { return kindNames[k] }

func kindOf(name string) (kind, bool) {
	i := slices.Index(kindNames[1:], name)
	return kind(i + 1), i >= 0
}

func (k kind) set() bool     { return k >= kindSS && k <= kindBS }
func (k kind) ordered() bool { return k >= kindS && k <= kindB }

// word is what messages call texts and binaries.
func (k kind) word() string {
	if k == kindB {
		return "binary"
	}
	return "string"
}

// element is the kind of a set's members.
func (k kind) element() kind { return k - kindSS + kindS }

// Value is one attribute value. It never changes once made: to change an item is to make another.
type Value struct {
	kind    kind
	flag    bool     // BOOL
	text    string   // S; N in canonical text; B as raw bytes
	members []string // SS, NS, BS: sorted, distinct, each as text has it
	list    []Value  // L
	attrs   Item     // M
}

// Item is a set of named attributes: an item of a table, its key, or the content of a map. It never changes once made.
type Item map[string]Value

func textValue(s string) Value   { return Value{kind: kindS, text: s} }
func numberValue(n number) Value { return Value{kind: kindN, text: string(n)} }

// numberOf returns a count as a value.
func numberOf(n int) Value { return numberValue(number(strconv.Itoa(n))) }

func (v Value) number() number { return number(v.text) }

// equal reports whether two values are the same in kind and content.
func (v Value) equal(w Value) bool {
	if v.kind != w.kind {
		return false
	}
	switch v.kind {
	case kindBool:
		return v.flag == w.flag
	case kindNull:
		return true
	case kindSS, kindNS, kindBS:
		return slices.Equal(v.members, w.members)
	case kindL:
		return slices.EqualFunc(v.list, w.list, Value.equal)
	case kindM:
		return v.attrs.equal(w.attrs)
	}
	return v.text == w.text
}

func (i Item) equal(j Item) bool {
	return maps.EqualFunc(i, j, Value.equal)
}

// compare orders two values of one ordered kind.
func (v Value) compare(w Value) int {
	if v.kind == kindN {
		return v.number().compare(w.number())
	}
	return strings.Compare(v.text, w.text)
}

// UnmarshalJSONFrom reads {"S": "text"} and the like. Errors are DynamoDB's own.
func (v *Value) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return v.read(dec, 0)
}

// UnmarshalJSONFrom reads an object of attribute values.
func (i *Item) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return i.read(dec, 0)
}

// MarshalJSON writes the item with its attributes sorted by name.
func (i Item) MarshalJSON() ([]byte, error) { return i.appendJSON(nil), nil }

// MarshalJSON writes the value as DynamoDB does.
func (v Value) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

func (i Item) appendJSON(b []byte) []byte {
	b = append(b, '{')
	var space [16]string
	names := slices.AppendSeq(space[:0], maps.Keys(i))
	slices.Sort(names)
	for n, name := range names {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendText(b, name)
		b = append(b, ':')
		b = i[name].appendJSON(b)
	}
	return append(b, '}')
}

func (v Value) appendJSON(b []byte) []byte {
	b = append(b, '{', '"')
	b = append(b, v.kind.String()...)
	b = append(b, '"', ':')
	switch v.kind {
	case kindS, kindN, kindB:
		b = appendScalar(b, v.kind, v.text)
	case kindBool:
		if v.flag {
			b = append(b, "true"...)
		} else {
			b = append(b, "false"...)
		}
	case kindNull:
		b = append(b, "true"...)
	case kindM:
		b = v.attrs.appendJSON(b)
	case kindL:
		b = appendList(b, v.list, func(b []byte, e Value) []byte { return e.appendJSON(b) })
	default:
		b = appendList(b, v.members, func(b []byte, m string) []byte { return appendScalar(b, v.kind.element(), m) })
	}
	return append(b, '}')
}

func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for n, e := range list {
		if n > 0 {
			b = append(b, ',')
		}
		b = one(b, e)
	}
	return append(b, ']')
}

func appendScalar(b []byte, k kind, text string) []byte {
	if k != kindB {
		return appendText(b, text)
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(text))
	return append(b, '"')
}

// appendText quotes s, which came out of JSON and so is UTF-8.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func malformed(format string, args ...any) *wire.Error {
	return wire.Errorf("SerializationException", format, args...)
}
