package table

// maxItem is the most that an item may hold, by DynamoDB's own measure
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-items).
const maxItem = 400 << 10

// size is an item's weight in bytes: its attribute names and values, as
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html counts them.
func (i Item) size() int {
	n := 0
	for name, v := range i {
		n += len(name) + v.size()
	}
	return n
}

func (v Value) size() int {
	switch v.kind {
	case kindN:
		return v.number().size()
	case kindBool, kindNull:
		return 1
	case kindNS:
		n := 0
		for _, m := range v.members {
			n += number(m).size()
		}
		return n
	case kindSS, kindBS:
		n := 0
		for _, m := range v.members {
			n += len(m)
		}
		return n
	case kindL:
		n := 3 + len(v.list)
		for _, e := range v.list {
			n += e.size()
		}
		return n
	case kindM:
		return 3 + len(v.attrs) + v.attrs.size()
	}
	return len(v.text)
}
