package rules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// template makes keys of a document: literal text with members put in.
type template struct {
	text  string // as the rule file has it
	line  int
	parts []part
	list  int // index of the part that is spread out into one key for each element; -1: none
}

// part is either literal text or a member.
type part struct {
	literal string
	path    string // empty: literal
	slot    int
}

// parseTemplate takes apart text such as "route/{origin}/{destination}". Doubled braces stand for themselves. reach
// gives the slot of a path's member.
func parseTemplate(text string, reach func(names []string) int) (template, error) {
	t := template{text: text, list: -1}
	var literal strings.Builder
	for rest := text; rest != ""; {
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			literal.WriteByte(c)
			rest = rest[2:]
		case c == '}':
			return t, errors.New("a } has no {; write }} for a brace")
		case c != '{':
			literal.WriteByte(c)
			rest = rest[1:]
		default:
			if literal.Len() > 0 {
				t.parts = append(t.parts, part{literal: literal.String()})
				literal.Reset()
			}
			path, after, err := cutPath(rest[1:])
			if err == nil {
				err = t.add(path, reach)
			}
			if err != nil {
				return t, err
			}
			rest = after
		}
	}
	if literal.Len() > 0 {
		t.parts = append(t.parts, part{literal: literal.String()})
	}
	return t, t.check()
}

// cutPath returns what stands before the first closing brace that has no backslash, and what stands after it.
func cutPath(text string) (path, after string, err error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			return "", "", errors.New(`a { stands inside braces; write {{ for a brace, or \{ in a member's name`)
		case '}':
			return text[:i], text[i+1:], nil
		}
	}
	return "", "", errors.New("a { has no }; write {{ for a brace")
}

func (t *template) add(path string, reach func(names []string) int) error {
	names, list, err := parsePath(path)
	if err != nil {
		return err
	}
	if list {
		if t.list >= 0 {
			return errors.New("only one list can be spread out in a key; write one key for each")
		}
		t.list = len(t.parts)
	}
	t.parts = append(t.parts, part{path: path, slot: reach(names)})
	return nil
}

func (t *template) check() error {
	fixed := 0
	for _, p := range t.parts {
		fixed += len(p.literal)
	}
	switch {
	case len(t.parts) == 0:
		return errors.New("a key is not empty; write text, members in braces, or both")
	case fixed > MaxKey:
		return fmt.Errorf("a key has at most %d bytes", MaxKey)
	}
	return nil
}

// render appends the key that the document gives, where v stands for the spread-out list. It returns the path and what
// is wrong with it where the document gives none.
func (t *template) render(dst []byte, values []value, v value) (key []byte, path, wrong string) {
	from := len(dst)
	for i, p := range t.parts {
		if p.path == "" {
			dst = append(dst, p.literal...)
			continue
		}
		if i != t.list {
			v = values[p.slot]
		}
		if dst, wrong = appendScalar(dst, v); wrong != "" {
			return dst, p.path, wrong
		}
		if len(dst)-from > MaxKey {
			return dst, p.path, fmt.Sprintf("makes a key of more than %d bytes; send a shorter one", MaxKey)
		}
	}
	if len(dst)-from > MaxKey {
		return dst, "", fmt.Sprintf("a key has more than %d bytes; send shorter values", MaxKey)
	}
	return dst, "", ""
}

// appendScalar appends text as it is, a number in plain digits, and true or false as words. Equal values give equal
// text.
func appendScalar(dst []byte, v value) (text []byte, wrong string) {
	const remedy = "; send text, a number, true or false, or leave such records out with match"
	from := len(dst)
	switch v.kind {
	case jsontext.KindTrue, jsontext.KindFalse:
		return append(dst, v.raw...), ""
	case jsontext.KindNumber:
		dst, ok := parseNumber(v.raw).appendTo(dst, MaxKey)
		if !ok {
			return dst, fmt.Sprintf("is a number of more than %d digits; send a shorter one", MaxKey)
		}
		return dst, ""
	case jsontext.KindString:
		if dst = v.appendText(dst); len(dst) == from {
			return dst, "is empty" + remedy
		}
		return dst, ""
	default:
		return dst, v.describe() + remedy
	}
}
