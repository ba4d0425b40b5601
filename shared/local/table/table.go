package table

import (
	"time"
)

// table is one table: its rows, its indexes and which of its items a transaction holds. Service.mu guards it.
type table struct {
	definition  tableDefinition
	name        string
	keys        keys
	rows        rows
	indexes     []*index
	held        map[string]bool // places of items in an ongoing transaction
	ttl         string          // attribute; empty: no TTL
	created     time.Time
	activeAfter time.Time
	bytes       int
}

// index is a global secondary index. It sees a change at once, where DynamoDB's lags.
type index struct {
	name  string
	keys  keys
	keeps *selection // nil: all attributes
	rows  rows
}

const statusActive = "ACTIVE"

func (t *table) status(now time.Time) string {
	if now.Before(t.activeAfter) {
		return "CREATING"
	}
	return statusActive
}

// put replaces the item at place by next, or removes it if next is nil, in the table and in its indexes.
func (t *table) put(place string, old, next Item) {
	t.rows.set(place, next)
	t.bytes += next.size() - old.size()
	for _, i := range t.indexes {
		before, after := i.place(old, place), i.place(next, place)
		if before != "" && before != after {
			i.rows.set(before, nil)
		}
		if after != "" {
			i.rows.set(after, i.keeps.of(next))
		}
	}
}

// place returns where an item of the table stands in the index, or nothing if it does not belong into it.
func (i *index) place(item Item, tablePlace string) string {
	for _, a := range i.keys.attributes() {
		if v, found := item[a.name]; !found || v.kind != a.kind {
			return ""
		}
	}
	return i.keys.place(item) + tablePlace
}

// checkItem refuses an item whose attributes cannot be the index's key. An item that lacks them is just not in the
// index.
func (i *index) checkItem(item Item) error {
	for _, a := range i.keys.attributes() {
		v, found := item[a.name]
		switch {
		case !found:
		case v.kind != a.kind:
			return invalid("One or more parameter values were invalid: "+
				"Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", a.name, a.kind, v.kind, i.name)
		case a.kind != kindN && v.text == "":
			return invalid("One or more parameter values are not valid. A value specified for a secondary index key is not "+
				"supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s",
				a.kind.word(), i.name, a.name)
		case a == i.keys.hash && a.kind != kindN && len(v.text) > maxHashKey,
			a == i.keys.sort && a.kind != kindN && len(v.text) > maxSortKey:
			return invalid("One or more parameter values were invalid: "+
				"Size of index key %s has exceeded the maximum size limit. IndexName: %s", a.name, i.name)
		}
	}
	return nil
}
