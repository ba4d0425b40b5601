package table_test

import (
	"maps"
	"strconv"
)

// short is the shorthand of steps on the one item of table T with the key pk "a", sk "b". In its attributes a text
// stands for an S, a whole number for an N, and so on; {N: "1.0"} and the like stay as they are.
type short struct {
	Put    map[string]any    `yaml:"put"` // PutItem, the key added
	If     string            `yaml:"if"`  // a condition on the item: it holds, unless Holds is false or there is an error
	Holds  *bool             `yaml:"holds"`
	Do     string            `yaml:"do"` // an update of the item; Want is what it returns as ALL_NEW, the key added
	Names  map[string]string `yaml:"names"`
	Values map[string]any    `yaml:"values"`
	Now    map[string]any    `yaml:"now"` // what the item is, the key added
}

var caseKey = map[string]any{"pk": map[string]any{"S": "a"}, "sk": map[string]any{"S": "b"}}

// long writes a shorthand out.
func (s step) long() step {
	input := map[string]any{}
	if s.Names != nil {
		input["ExpressionAttributeNames"] = s.Names
	}
	if s.Values != nil {
		input["ExpressionAttributeValues"] = attributes(s.Values)
	}
	switch {
	case s.Put != nil:
		input["Item"] = withKey(s.Put)
		s.Call = map[string]any{"PutItem": input}
	case s.Now != nil:
		input["Key"], input["ConsistentRead"] = caseKey, true
		s.Call = map[string]any{"GetItem": input}
		s.Want = map[string]any{"Item": withKey(s.Now)}
	case s.If != "" || s.Do != "":
		input["Key"] = caseKey
		s.Call = map[string]any{"UpdateItem": input}
		if s.If != "" {
			input["ConditionExpression"] = s.If
		}
		input["UpdateExpression"], input["ReturnValues"] = "REMOVE zz", "NONE"
		if s.Do != "" {
			input["UpdateExpression"], input["ReturnValues"] = s.Do, "ALL_NEW"
		}
		if s.Do != "" && s.Want != nil {
			s.Want = map[string]any{"Attributes": withKey(s.Want)}
		}
		if s.Holds != nil && !*s.Holds {
			s.Error = "ConditionalCheckFailedException"
		}
	}
	return s
}

func withKey(short map[string]any) map[string]any {
	item := attributes(short)
	maps.Copy(item, caseKey)
	return item
}

func attributes(short map[string]any) map[string]any {
	all := make(map[string]any)
	for name, v := range short {
		all[name] = attribute(v)
	}
	return all
}

func attribute(short any) any {
	switch v := short.(type) {
	case string:
		return map[string]any{"S": v}
	case int:
		return map[string]any{"N": strconv.Itoa(v)}
	case bool:
		return map[string]any{"BOOL": v}
	case nil:
		return map[string]any{"NULL": true}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = attribute(v[i])
		}
		return map[string]any{"L": list}
	case map[string]any:
		for _, kind := range []string{"S", "N", "B", "SS", "NS", "BS", "L", "M"} {
			if _, typed := v[kind]; typed && len(v) == 1 {
				return v
			}
		}
		return map[string]any{"M": attributes(v)}
	}
	return short
}
