package table

import (
	"slices"
)

// update is a parsed update expression. All its right-hand sides see the item as it was before.
type update struct {
	sets    []assignment
	adds    []assignment // source is a literal of a number or a set
	deletes []assignment // source is a literal of a set
	removes []path
	touched []path // of all sections, in the order written
}

type assignment struct {
	at     path
	source source
}

// source is the right-hand side of a SET.
type source interface{ result(Item) (Value, error) }

type (
	copyOf      struct{ of operand } // a path or a literal
	ifNotExists struct {
		at        path
		otherwise source
	}
	listAppend struct{ first, second source }
	sum        struct {
		left, right source
		minus       bool
	}
)

// The three ways in which an item can turn out not to fit an update, in DynamoDB's words.
func errOperandType() error {
	return invalid("An operand in the update expression has an incorrect data type")
}
func errNoAttribute() error {
	return invalid("The provided expression refers to an attribute that does not exist in the item")
}
func errNoParent() error {
	return invalid("The document path provided in the update expression is invalid for update")
}

func (c copyOf) result(item Item) (Value, error) {
	v, found := c.of.value(item)
	if !found {
		return Value{}, errNoAttribute()
	}
	return v, nil
}

func (i ifNotExists) result(item Item) (Value, error) {
	if v, found := i.at.value(item); found {
		return v, nil
	}
	return i.otherwise.result(item)
}

func (l listAppend) result(item Item) (Value, error) {
	first, second, err := resultsOf(item, l.first, l.second, kindL)
	if err != nil {
		return Value{}, err
	}
	return Value{kind: kindL, list: slices.Concat(first.list, second.list)}, nil
}

func (s sum) result(item Item) (Value, error) {
	left, right, err := resultsOf(item, s.left, s.right, kindN)
	if err != nil {
		return Value{}, err
	}
	op := number.plus
	if s.minus {
		op = number.minus
	}
	n, err := op(left.number(), right.number())
	return numberValue(n), err
}

func resultsOf(item Item, left, right source, want kind) (l, r Value, err error) {
	if l, err = left.result(item); err != nil {
		return l, r, err
	}
	if r, err = right.result(item); err != nil {
		return l, r, err
	}
	if l.kind != want || r.kind != want {
		return l, r, errOperandType()
	}
	return l, r, nil
}

// apply returns the item as the update leaves it; old stays as it is.
func (u *update) apply(old Item) (Item, error) {
	changes, removes, err := u.resolve(old)
	if err != nil {
		return nil, err
	}
	// In order of their places: elements beyond a list's end are appended by rising index.
	slices.SortStableFunc(changes, func(a, b change) int { return comparePaths(a.at, b.at) })
	slices.SortStableFunc(removes, func(a, b path) int { return comparePaths(b, a) })
	root := Value{kind: kindM, attrs: old}
	for _, c := range changes {
		if root, err = root.with(c.at, &c.to); err != nil {
			return nil, err
		}
	}
	for _, at := range removes {
		// An index beyond the old list's end names nothing, even if an element was appended there just now.
		if _, found := at.value(old); !found {
			if parent := at[:len(at)-1]; len(parent) > 0 && !at.fits(old) {
				return nil, errNoParent()
			}
			continue
		}
		if root, err = root.with(at, nil); err != nil {
			return nil, err
		}
	}
	return root.attrs, nil
}

// fits reports whether what the path's last step goes into is there and of the step's kind.
func (p path) fits(item Item) bool {
	parent, found := p[:len(p)-1].value(item)
	return found && (p[len(p)-1].index >= 0 && parent.kind == kindL || p[len(p)-1].index < 0 && parent.kind == kindM)
}

type change struct {
	at path
	to Value
}

// resolve computes what each section assigns and removes.
func (u *update) resolve(old Item) (changes []change, removes []path, err error) {
	changes = make([]change, 0, len(u.touched))
	for _, s := range u.sets {
		v, err := s.source.result(old)
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, change{s.at, v})
	}
	for _, a := range u.adds {
		v, err := a.added(old)
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, change{a.at, v})
	}
	removes = slices.Clone(u.removes)
	for _, d := range u.deletes {
		v, found, err := d.deleted(old)
		switch {
		case err != nil:
			return nil, nil, err
		case !found:
		case len(v.members) == 0:
			removes = append(removes, d.at)
		default:
			changes = append(changes, change{d.at, v})
		}
	}
	return changes, removes, nil
}

// added returns the sum, or the union of sets; an absent attribute counts as 0, or as an empty set.
func (a assignment) added(old Item) (Value, error) {
	operand, err := a.source.result(old)
	if err != nil {
		return Value{}, err
	}
	v, found := a.at.value(old)
	switch {
	case !found:
		return operand, nil
	case v.kind != operand.kind:
		return Value{}, errOperandType()
	case v.kind == kindN:
		n, err := v.number().plus(operand.number())
		return numberValue(n), err
	}
	members := slices.Concat(v.members, operand.members)
	slices.Sort(members)
	return Value{kind: v.kind, members: slices.Compact(members)}, nil
}

// deleted returns the set without the operand's members, and whether there is an attribute at all.
func (a assignment) deleted(old Item) (Value, bool, error) {
	operand, err := a.source.result(old)
	if err != nil {
		return Value{}, false, err
	}
	v, found := a.at.value(old)
	switch {
	case !found && len(a.at) > 1 && !a.at.fits(old):
		return Value{}, false, errNoParent()
	case !found:
		return Value{}, false, nil
	case v.kind != operand.kind:
		return Value{}, false, errOperandType()
	}
	left := slices.DeleteFunc(slices.Clone(v.members), func(m string) bool {
		_, gone := slices.BinarySearch(operand.members, m)
		return gone
	})
	return Value{kind: v.kind, members: left}, true, nil
}
