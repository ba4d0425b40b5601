package table

import (
	"maps"
	"slices"
	"strings"

	"abacus/shared/local/wire"
)

// placeholders are the names and values that a request's expressions refer to. All expressions of a request share them,
// and each must be used by one of them at least.
type placeholders struct {
	names       map[string]string
	values      Item
	namesUsed   map[string]bool
	valuesUsed  map[string]bool
	expressions int
	entered     map[string]bool // top-level attributes that a path leads into
}

// newPlaceholders checks the names given for names and values.
func newPlaceholders(names map[string]string, values Item) (*placeholders, error) {
	for what, keys := range map[string][]string{
		"ExpressionAttributeNames":  slices.Sorted(maps.Keys(names)),
		"ExpressionAttributeValues": slices.Sorted(maps.Keys(values)),
	} {
		for _, key := range keys {
			if mark := what[len("ExpressionAttribute")]; len(key) < 2 || mark == 'N' && key[0] != '#' ||
				mark == 'V' && key[0] != ':' || run(key[1:], wordByte) != len(key)-1 {
				return nil, invalid("%s contains invalid key: Syntax error; key: %q", what, key)
			}
		}
	}
	if names != nil && len(names) == 0 {
		return nil, invalid("ExpressionAttributeNames must not be empty")
	}
	if values != nil && len(values) == 0 {
		return nil, invalid("ExpressionAttributeValues must not be empty")
	}
	for key, name := range names {
		if name == "" || len(name) > maxAttributeName {
			return nil, invalid("ExpressionAttributeNames contains invalid value for key %s: "+
				"an attribute name has 1 to 65535 bytes", key)
		}
	}
	return &placeholders{names: names, values: values,
		namesUsed: map[string]bool{}, valuesUsed: map[string]bool{}, entered: map[string]bool{}}, nil
}

func (p *placeholders) name(key string) (string, *wire.Error) {
	name, defined := p.names[key]
	if !defined {
		return "", invalid("An expression attribute name used in the document path is not defined; attribute name: %s", key)
	}
	p.namesUsed[key] = true
	return name, nil
}

func (p *placeholders) value(key string) (Value, *wire.Error) {
	value, defined := p.values[key]
	if !defined {
		return Value{}, invalid("An expression attribute value used in expression is not defined; attribute value: %s", key)
	}
	p.valuesUsed[key] = true
	return value, nil
}

// finish refuses what no expression used.
func (p *placeholders) finish() error {
	if p.expressions == 0 && p.names != nil {
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	if p.expressions == 0 && p.values != nil {
		return invalid("ExpressionAttributeValues can only be specified when using expressions")
	}
	if unused := missing(maps.Keys(p.names), p.namesUsed); unused != "" {
		return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", unused)
	}
	if unused := missing(maps.Keys(p.values), p.valuesUsed); unused != "" {
		return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", unused)
	}
	return nil
}

func missing(keys func(func(string) bool), used map[string]bool) string {
	var unused []string
	for key := range keys {
		if !used[key] {
			unused = append(unused, key)
		}
	}
	slices.Sort(unused)
	return strings.Join(unused, ", ")
}
