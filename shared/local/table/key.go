package table

import (
	"crypto/sha256"
	"strings"
)

// Limits of key values, in bytes
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-partition-sort-keys).
const (
	maxHashKey = 2048
	maxSortKey = 1024
)

// keyAttribute is one attribute of a key; the zero value is none.
type keyAttribute struct {
	name string
	kind kind
}

// keys is the key schema of a table or of an index.
type keys struct {
	hash, sort keyAttribute
}

func (k keys) attributes() []keyAttribute {
	if k.sort.name == "" {
		return []keyAttribute{k.hash}
	}
	return []keyAttribute{k.hash, k.sort}
}

// of returns the key of an item.
func (k keys) of(item Item) Item {
	key := make(Item, 2)
	for _, a := range k.attributes() {
		key[a.name] = item[a.name]
	}
	return key
}

// fitsItem refuses an item whose key is missing or of another type.
func (k keys) fitsItem(item Item) error {
	for _, a := range k.attributes() {
		switch v, found := item[a.name]; {
		case !found:
			return invalid("One or more parameter values were invalid: Missing the key %s in the item", a.name)
		case v.kind != a.kind:
			return invalid("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s",
				a.name, a.kind, v.kind)
		}
	}
	return nil
}

// fitsKey refuses a key that is not exactly what the schema says.
func (k keys) fitsKey(key Item) error {
	attributes := k.attributes()
	for _, a := range attributes {
		if v, found := key[a.name]; !found || v.kind != a.kind || len(key) != len(attributes) {
			return invalid("The provided key element does not match the schema")
		}
	}
	return nil
}

// checkKey refuses a key that does not fit, is empty or is too long.
func (k keys) checkKey(key Item) error {
	if err := k.fitsKey(key); err != nil {
		return err
	}
	return k.checkSizes(key)
}

// checkSizes refuses a key that is empty or too long.
func (k keys) checkSizes(item Item) error {
	for _, a := range k.attributes() {
		if a.kind != kindN && item[a.name].text == "" {
			return errEmptyKey(a)
		}
	}
	if k.hash.kind != kindN && len(item[k.hash.name].text) > maxHashKey {
		return invalid("One or more parameter values were invalid: "+
			"Size of hashkey has exceeded the maximum size limit of%d bytes", maxHashKey)
	}
	if k.sort.kind != kindN && k.sort.name != "" && len(item[k.sort.name].text) > maxSortKey {
		return invalid("One or more parameter values were invalid: "+
			"Aggregated size of all range keys has exceeded the size limit of %d bytes", maxSortKey)
	}
	return nil
}

// checkScalar refuses paths that lead into a key, which has no inside.
func (k keys) checkScalar(entered map[string]bool) error {
	for _, a := range k.attributes() {
		if entered[a.name] {
			return invalid("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "+
				"Key: %s", a.name)
		}
	}
	return nil
}

func errEmptyKey(a keyAttribute) error {
	return invalid("One or more parameter values are not valid. "+
		"The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", a.kind.word(), a.name)
}

// place is where an item with this key stands among the rows: partitions in the order of a hash, as DynamoDB scans
// them, and in a partition by sort key.
func (k keys) place(item Item) string {
	place := partition(item[k.hash.name])
	if k.sort.name != "" {
		place += item[k.sort.name].order()
	}
	return place
}

// partition is the common prefix of the places of all items with one hash key.
func partition(v Value) string {
	order := v.order()
	hash := sha256.Sum256([]byte(order))
	return string(hash[:8]) + order
}

// order returns bytes that sort as key values of one kind do, no one of them a prefix of another.
func (v Value) order() string {
	if v.kind == kindN {
		return v.number().order()
	}
	return escape(v.text) + "\x00\x01"
}

// escape leaves no byte 0 alone, so that 0 1 can end a text.
func escape(text string) string {
	if strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(text, "\x00", "\x00\xff")
}

// after returns the least text above all that begin with prefix; empty if there is none.
func after(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}
