package table

import "strings"

// condition is a parsed condition, filter or key condition.
type condition interface{ holds(Item) bool }

// operand is something with a value in an item: a path, a literal, or the size of one of them.
type operand interface {
	value(Item) (Value, bool)
}

type (
	literal struct{ is Value }
	sizeOf  struct{ of operand }

	comparison struct {
		op          string
		left, right operand
	}
	between struct{ of, low, high operand }
	among   struct {
		of   operand
		list []operand
	}
	and    struct{ left, right condition }
	or     struct{ left, right condition }
	not    struct{ of condition }
	exists struct {
		at   path
		want bool
	}
	hasType struct {
		of   operand
		kind kind
	}
	beginsWith struct{ of, prefix operand }
	contains   struct{ of, part operand }
)

func (l literal) value(Item) (Value, bool) { return l.is, true }

func (s sizeOf) value(item Item) (Value, bool) {
	v, found := s.of.value(item)
	if !found {
		return Value{}, false
	}
	n := 0
	switch v.kind {
	case kindS, kindB:
		n = len(v.text)
	case kindSS, kindNS, kindBS:
		n = len(v.members)
	case kindL:
		n = len(v.list)
	case kindM:
		n = len(v.attrs)
	default:
		return Value{}, false
	}
	return numberOf(n), true
}

func (c *comparison) holds(item Item) bool {
	left, leftFound := c.left.value(item)
	right, rightFound := c.right.value(item)
	both := leftFound && rightFound
	switch c.op {
	case "=":
		return both && left.equal(right)
	case "<>":
		return !both || !left.equal(right)
	}
	if !both || left.kind != right.kind || !left.kind.ordered() {
		return false
	}
	switch order := left.compare(right); c.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (b *between) holds(item Item) bool {
	low, high := comparison{">=", b.of, b.low}, comparison{"<=", b.of, b.high}
	return low.holds(item) && high.holds(item)
}

func (a *among) holds(item Item) bool {
	for _, candidate := range a.list {
		equal := comparison{"=", a.of, candidate}
		if equal.holds(item) {
			return true
		}
	}
	return false
}

func (a *and) holds(item Item) bool { return a.left.holds(item) && a.right.holds(item) }
func (o *or) holds(item Item) bool  { return o.left.holds(item) || o.right.holds(item) }
func (n *not) holds(item Item) bool { return !n.of.holds(item) }

func (e *exists) holds(item Item) bool {
	_, found := e.at.value(item)
	return found == e.want
}

func (h *hasType) holds(item Item) bool {
	v, found := h.of.value(item)
	return found && v.kind == h.kind
}

func (b *beginsWith) holds(item Item) bool {
	v, found := b.of.value(item)
	prefix, prefixFound := b.prefix.value(item)
	return found && prefixFound && v.kind == prefix.kind && (v.kind == kindS || v.kind == kindB) &&
		strings.HasPrefix(v.text, prefix.text)
}

// holds: a text or binary contains a part of itself, a set a member, a list an element.
func (c *contains) holds(item Item) bool {
	v, found := c.of.value(item)
	part, partFound := c.part.value(item)
	if !found || !partFound {
		return false
	}
	switch v.kind {
	case kindS, kindB:
		return v.kind == part.kind && strings.Contains(v.text, part.text)
	case kindSS, kindNS, kindBS:
		for _, m := range v.members {
			if part.kind == v.kind.element() && m == part.text {
				return true
			}
		}
	case kindL:
		for _, e := range v.list {
			if e.equal(part) {
				return true
			}
		}
	}
	return false
}
