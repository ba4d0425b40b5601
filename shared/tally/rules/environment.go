package rules

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/expr-lang/expr/vm"
	"github.com/go-json-experiment/json/jsontext"
)

// environment holds one document's values as the expression machine knows them: nil, bool, int, float64, string,
// map[string]any and []any.
type environment struct {
	values  map[string]any // those decoded so far of the document at hand
	machine vm.VM
	cursor  cursor
	left    int // values that may still be decoded
}

// load decodes the members that a match reads. It returns the name of one that cannot be, and why.
func (e *environment) load(m *match, values []value) (name, wrong string) {
	size := 0
	for _, v := range m.reads {
		if size += len(values[v.slot].raw); m.loops && size > MaxMatchBytes {
			return v.name, fmt.Sprintf("brings what this match reads over %d bytes, its most while it has a function "+
				"over a list; send smaller records", MaxMatchBytes)
		}
		if _, done := e.values[v.name]; done {
			continue
		}
		decoded, wrong := e.decode(values[v.slot])
		if wrong != "" {
			return v.name, wrong
		}
		e.values[v.name] = decoded
	}
	return "", ""
}

// matches runs a compiled match. A result that is absent or null counts as false.
func (e *environment) matches(program *vm.Program) (bool, error) {
	e.machine.MemoryBudget = maxMemory
	result, err := e.machine.Run(program, e.values)
	matched, ok := result.(bool)
	if err == nil && !ok {
		err = errors.New("not true or false")
	}
	return matched, err
}

func (e *environment) decode(v value) (any, string) {
	if v.kind == jsontext.KindBeginObject || v.kind == jsontext.KindBeginArray {
		e.cursor.open(v.raw)
		return e.composite()
	}
	return e.scalar(v)
}

func (e *environment) scalar(v value) (any, string) {
	if e.left--; e.left < 0 {
		return nil, fmt.Sprintf("has more than %d values for match to read; send smaller records", MaxMatchValues)
	}
	switch v.kind {
	case jsontext.KindTrue:
		return true, ""
	case jsontext.KindFalse:
		return false, ""
	case jsontext.KindString:
		return v.text(), ""
	case jsontext.KindNumber:
		return decodeNumber(v.raw)
	default:
		return nil, ""
	}
}

// decodeNumber returns an int for every integer of 64 bits, however it is written, and the nearest float64 for any
// other number.
func decodeNumber(literal []byte) (any, string) {
	if n, flaw := parseNumber(literal).scaled(0); flaw == fits && n >= math.MinInt && n <= math.MaxInt {
		return int(n), ""
	}
	n, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		return nil, "is a number beyond float64; send a smaller one"
	}
	return n, ""
}

// composite decodes the next value, which is valid, with all that it holds.
func (e *environment) composite() (any, string) {
	kind := e.cursor.PeekKind()
	if kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		raw, _ := e.cursor.ReadValue()
		return e.scalar(value{kind: kind, raw: raw})
	}
	if e.left--; e.left < 0 {
		return e.scalar(value{})
	}
	_, _ = e.cursor.ReadToken()
	list, object := []any{}, map[string]any{}
	for end := e.cursor.PeekKind(); end != jsontext.KindEndObject &&
		end != jsontext.KindEndArray; end = e.cursor.PeekKind() {
		var name string
		if kind == jsontext.KindBeginObject {
			raw, _ := e.cursor.ReadValue()
			name = value{raw: raw}.text()
		}
		element, wrong := e.composite()
		if wrong != "" {
			return nil, wrong
		}
		if kind == jsontext.KindBeginObject {
			object[name] = element
		} else {
			list = append(list, element)
		}
	}
	_, _ = e.cursor.ReadToken()
	if kind == jsontext.KindBeginArray {
		return list, ""
	}
	return object, ""
}

// reset forgets the document.
func (e *environment) reset() {
	e.left = MaxMatchValues
	clear(e.values)
	clear(e.machine.Stack[:cap(e.machine.Stack)])
	e.cursor.close()
}
