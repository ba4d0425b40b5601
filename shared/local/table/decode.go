package table

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"abacus/shared/local/wire"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting is how deep lists and maps may lie in each other
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-attributes).
const maxNesting = 32

// decode reads a request strictly: a member that this stand-in does not know is refused, since to ignore it could hide
// that a caller's wish was not met.
func decode(body []byte, request any) error {
	err := json.Unmarshal(body, request, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var modelled *wire.Error
	if errors.As(err, &modelled) {
		return modelled
	}
	if errors.Is(err, json.ErrUnknownName) {
		return invalid("this stand-in does not know a member of the request: %v; leave it out", err)
	}
	return malformed("%v", err)
}

func (i *Item) read(dec *jsontext.Decoder, depth int) error {
	switch token, err := dec.ReadToken(); {
	case err != nil:
		return err
	case token.Kind() == 'n':
		*i = nil
		return nil
	case token.Kind() != '{':
		return malformed("Unexpected value type in payload")
	}
	item := make(Item)
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		var v Value
		if err := v.read(dec, depth); err != nil {
			return err
		}
		item[name] = v
	}
	*i = item
	_, err := dec.ReadToken()
	return err
}

// read reads a value that lies in depth lists and maps.
func (v *Value) read(dec *jsontext.Decoder, depth int) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '{' {
		return malformed("Unexpected value type in payload")
	}
	if dec.PeekKind() != '"' {
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		return invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	}
	if token, err = dec.ReadToken(); err != nil {
		return err
	}
	name := token.String()
	k, known := kindOf(name)
	if !known {
		return malformed("%s is not a type of attribute value; use one of S, N, B, BOOL, NULL, SS, NS, BS, L, M", name)
	}
	v.kind = k
	if err := v.readContent(dec, depth); err != nil {
		return err
	}
	if token, err = dec.ReadToken(); err != nil {
		return err
	}
	if token.Kind() != '}' {
		return invalid("Supplied AttributeValue has more than one datatypes set, " +
			"must contain exactly one of the supported datatypes")
	}
	return nil
}

func (v *Value) readContent(dec *jsontext.Decoder, depth int) error {
	if v.kind >= kindL && depth == maxNesting {
		return invalid("Nesting Levels have exceeded supported limits")
	}
	switch v.kind {
	case kindL:
		return v.readList(dec, depth+1)
	case kindM:
		return v.attrs.read(dec, depth+1)
	case kindSS, kindNS, kindBS:
		return v.readSet(dec)
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch v.kind {
	case kindBool, kindNull:
		if token.Kind() != 't' && token.Kind() != 'f' {
			return malformed("Unexpected token received from parser")
		}
		v.flag = v.kind == kindBool && token.Bool() // {"NULL": false} is a null like any other
		return nil
	}
	v.text, err = scalar(v.kind, token)
	return err
}

func scalar(k kind, token jsontext.Token) (string, error) {
	if token.Kind() != '"' {
		return "", malformed("a value of type %s must be a string on the wire", k)
	}
	switch text := token.String(); k {
	case kindN:
		n, err := parseNumber(text)
		return string(n), err
	case kindB:
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return "", malformed("a binary value is not base64")
		}
		return string(raw), nil
	default:
		return text, nil
	}
}

func (v *Value) readList(dec *jsontext.Decoder, depth int) error {
	if err := readOpen(dec); err != nil {
		return err
	}
	v.list = []Value{}
	for dec.PeekKind() == '{' {
		var e Value
		if err := e.read(dec, depth); err != nil {
			return err
		}
		v.list = append(v.list, e)
	}
	return readClose(dec)
}

func (v *Value) readSet(dec *jsontext.Decoder) error {
	if err := readOpen(dec); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		member, err := scalar(v.kind.element(), token)
		if err != nil {
			return err
		}
		v.members = append(v.members, member)
	}
	if err := readClose(dec); err != nil {
		return err
	}
	return v.tidySet()
}

// tidySet puts a set in order, and refuses one that is empty or names a member twice.
func (v *Value) tidySet() error {
	if len(v.members) == 0 {
		what := map[kind]string{kindSS: "An string set  may not be empty", kindNS: "An number set  may not be empty",
			kindBS: "Binary sets should not be empty"}[v.kind]
		return invalid("One or more parameter values were invalid: %s", what)
	}
	given := slices.Clone(v.members)
	slices.Sort(v.members)
	if len(slices.Compact(slices.Clone(v.members))) == len(v.members) {
		return nil
	}
	switch v.kind {
	case kindNS:
		return invalid("Input collection contains duplicates")
	case kindSS:
		return invalid("One or more parameter values were invalid: Input collection [%s] contains duplicates.",
			strings.Join(given, ", "))
	}
	return invalid("One or more parameter values were invalid: Input collection of type BS contains duplicates.")
}

func readOpen(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err == nil && token.Kind() != '[' {
		return malformed("a list or set must be an array on the wire")
	}
	return err
}

func readClose(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err == nil && token.Kind() != ']' {
		return malformed("a list or set holds something of another type")
	}
	return err
}
