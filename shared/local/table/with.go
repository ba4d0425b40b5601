package table

import (
	"cmp"
	"maps"
	"slices"
)

// with returns v with what stands at the path replaced, or removed if to is nil. Only the way to it is copied. An index
// beyond a list's end appends.
func (v Value) with(at path, to *Value) (Value, error) {
	if len(at) == 0 {
		return *to, nil
	}
	s := at[0]
	switch {
	case s.index < 0 && v.kind == kindM:
		return v.withAttribute(s.name, at[1:], to)
	case s.index >= 0 && v.kind == kindL:
		return v.withElement(s.index, at[1:], to)
	}
	return Value{}, errNoParent()
}

func (v Value) withAttribute(name string, rest path, to *Value) (Value, error) {
	old, found := v.attrs[name]
	if !found && len(rest) > 0 {
		return Value{}, errNoParent()
	}
	attrs := make(Item, len(v.attrs)+1)
	maps.Copy(attrs, v.attrs)
	if len(rest) == 0 && to == nil {
		delete(attrs, name)
		return Value{kind: kindM, attrs: attrs}, nil
	}
	changed, err := old.with(rest, to)
	attrs[name] = changed
	return Value{kind: kindM, attrs: attrs}, err
}

func (v Value) withElement(index int, rest path, to *Value) (Value, error) {
	inside := index < len(v.list)
	switch {
	case len(rest) == 0 && to == nil:
		return Value{kind: kindL, list: slices.Delete(slices.Clone(v.list), index, index+1)}, nil
	case len(rest) == 0 && !inside:
		return Value{kind: kindL, list: append(slices.Clone(v.list), *to)}, nil
	case !inside:
		return Value{}, errNoParent()
	}
	changed, err := v.list[index].with(rest, to)
	list := slices.Clone(v.list)
	list[index] = changed
	return Value{kind: kindL, list: list}, err
}

// comparePaths orders paths step by step, indexes by their number.
func comparePaths(a, b path) int {
	return slices.CompareFunc(a, b, func(s, t step) int {
		return cmp.Or(cmp.Compare(s.index, t.index), cmp.Compare(s.name, t.name))
	})
}
