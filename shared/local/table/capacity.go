package table

import (
	"maps"
	"slices"
)

// bill collects what one call consumes, by table
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html).
type bill map[string]*tableBill

type tableBill struct {
	table   Units
	indexes map[string]*Units
}

func (b bill) of(table string) *tableBill {
	if b[table] == nil {
		b[table] = &tableBill{indexes: make(map[string]*Units)}
	}
	return b[table]
}

func (t *tableBill) index(name string) *Units {
	if t.indexes[name] == nil {
		t.indexes[name] = new(Units)
	}
	return t.indexes[name]
}

// writeUnits is one unit for each started KB of the larger of the two items; a missing item counts as a small one.
func writeUnits(sizes ...int) float64 {
	return float64(max(1, (slices.Max(sizes)+1023)/1024))
}

// readUnits is one unit for each started 4 KB, half of it for an eventually consistent read.
func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// write adds what it takes to turn old into next; factor is 2 in a transaction.
func (b bill) write(t *table, place string, old, next Item, factor float64) {
	of := b.of(t.name)
	of.table.Write += factor * writeUnits(old.size(), next.size())
	for _, i := range t.indexes {
		before, after := i.place(old, place), i.place(next, place)
		kept, keeps := i.keeps.of(old), i.keeps.of(next)
		switch {
		case before == "" && after == "" || before == after && kept.equal(keeps):
		case before == after:
			of.index(i.name).Write += factor * writeUnits(kept.size(), keeps.size())
		default:
			if before != "" {
				of.index(i.name).Write += factor * writeUnits(kept.size())
			}
			if after != "" {
				of.index(i.name).Write += factor * writeUnits(keeps.size())
			}
		}
	}
}

func (t *tableBill) total() Units {
	sum := t.table
	for _, u := range t.indexes {
		sum.Read += u.Read
		sum.Write += u.Write
	}
	return sum
}

// settle adds the bill to what the service has consumed.
func (s *Service) settle(b bill) {
	s.meter.Lock()
	defer s.meter.Unlock()
	for _, t := range b {
		sum := t.total()
		s.used.Read += sum.Read
		s.used.Write += sum.Write
	}
}

// consumed is a ConsumedCapacity of an answer.
type consumed struct {
	TableName string
	units
	Table                  *units           `json:",omitzero"`
	GlobalSecondaryIndexes map[string]units `json:",omitempty"`
}

type units struct {
	CapacityUnits      float64
	ReadCapacityUnits  float64 `json:",omitzero"`
	WriteCapacityUnits float64 `json:",omitzero"`
}

// show tells reads and writes apart only where the operation does.
func (u Units) show(transactional bool) units {
	if transactional {
		return units{u.Read + u.Write, u.Read, u.Write}
	}
	return units{CapacityUnits: u.Read + u.Write}
}

// report shows the bill as ReturnConsumedCapacity asks. Transactional operations tell reads and writes apart.
func (b bill) report(want string, transactional bool) []consumed {
	if want != "TOTAL" && want != "INDEXES" {
		return nil
	}
	var all []consumed
	for _, name := range slices.Sorted(maps.Keys(b)) {
		t := b[name]
		sum := t.total()
		c := consumed{TableName: name, units: sum.show(transactional)}
		if want == "INDEXES" {
			own := t.table.show(transactional)
			c.Table, c.GlobalSecondaryIndexes = &own, make(map[string]units)
			for index, u := range t.indexes {
				c.GlobalSecondaryIndexes[index] = u.show(transactional)
			}
		}
		all = append(all, c)
	}
	return all
}

// reportOne is report for an operation on one table.
func (b bill) reportOne(want string) *consumed {
	if all := b.report(want, false); len(all) == 1 {
		return &all[0]
	}
	return nil
}
