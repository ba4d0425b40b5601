package table

import (
	"maps"
	"slices"
)

// selection is the set of paths that a projection keeps, as a tree.
type selection struct {
	whole   bool
	names   map[string]*selection
	indexes map[int]*selection
}

// projection reads path { "," path }.
func (p *parser) projection() *selection {
	paths := []path{p.documentPath()}
	for p.accept(",") {
		paths = append(paths, p.documentPath())
	}
	p.checkOverlap(paths)
	if p.err != nil {
		return nil
	}
	return selectPaths(paths)
}

func selectPaths(paths []path) *selection {
	root := &selection{}
	for _, at := range paths {
		s := root
		for _, step := range at {
			s = s.child(step)
		}
		s.whole = true
	}
	return root
}

func (s *selection) child(at step) *selection {
	if s.names == nil {
		s.names, s.indexes = map[string]*selection{}, map[int]*selection{}
	}
	if at.index >= 0 {
		if s.indexes[at.index] == nil {
			s.indexes[at.index] = &selection{}
		}
		return s.indexes[at.index]
	}
	if s.names[at.name] == nil {
		s.names[at.name] = &selection{}
	}
	return s.names[at.name]
}

// of returns what the selection keeps of an item. A nil selection keeps all.
func (s *selection) of(item Item) Item {
	if s == nil || item == nil {
		return item
	}
	kept := make(Item)
	for name, child := range s.names {
		if v, found := item[name]; found {
			if v, found = child.part(v); found {
				kept[name] = v
			}
		}
	}
	return kept
}

func (s *selection) part(v Value) (Value, bool) {
	switch {
	case s.whole:
		return v, true
	case v.kind == kindM && len(s.names) > 0:
		attrs := s.of(v.attrs)
		return Value{kind: kindM, attrs: attrs}, len(attrs) > 0
	case v.kind == kindL && len(s.indexes) > 0:
		var list []Value
		for _, i := range slices.Sorted(maps.Keys(s.indexes)) {
			if i < len(v.list) {
				if e, found := s.indexes[i].part(v.list[i]); found {
					list = append(list, e)
				}
			}
		}
		return Value{kind: kindL, list: list}, len(list) > 0
	}
	return Value{}, false
}

// checkOverlap refuses two paths of which one leads through the other's end, or that disagree on what a level is.
func (p *parser) checkOverlap(paths []path) {
	for i, one := range paths {
		for _, two := range paths[:i] {
			if p.err != nil {
				return
			}
			p.checkPair(two, one)
		}
	}
}

func (p *parser) checkPair(one, two path) {
	const remedy = "must remove or rewrite one of these paths; path one: %s, path two: %s"
	for i := range min(len(one), len(two)) {
		if (one[i].index < 0) != (two[i].index < 0) {
			p.fail("Two document paths conflict with each other; "+remedy, one, two)
			return
		}
		if one[i] != two[i] {
			return
		}
	}
	p.fail("Two document paths overlap with each other; "+remedy, one, two)
}
