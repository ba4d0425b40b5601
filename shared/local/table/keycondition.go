package table

// span is the part of a partition that a key condition selects: the places from low, up to but not including high.
type span struct {
	hash      Value
	low, high string
}

// keyTest is the condition on one key attribute.
type keyTest struct {
	op     string // a comparator, "BETWEEN" or "begins_with"
	values []Value
}

// span reads a key condition: the hash key equal to a value, and perhaps one test of the sort key.
func (k keys) span(c condition) (span, error) {
	tests := make(map[string]keyTest)
	if err := collectKeyTests(c, tests); err != nil {
		return span{}, err
	}
	hash, found := tests[k.hash.name]
	switch {
	case !found:
		return span{}, invalid("Query condition missed key schema element: %s", k.hash.name)
	case hash.op != "=":
		return span{}, invalid("Query key condition not supported")
	}
	delete(tests, k.hash.name)
	for name, test := range tests {
		if name != k.sort.name {
			missed := k.sort.name
			if missed == "" {
				return span{}, invalid("Query key condition not supported")
			}
			return span{}, invalid("Query condition missed key schema element: %s", missed)
		}
		if err := k.sort.checkTest(test); err != nil {
			return span{}, err
		}
	}
	if err := k.hash.checkTest(hash); err != nil {
		return span{}, err
	}
	prefix := partition(hash.values[0])
	s := span{hash: hash.values[0], low: prefix, high: after(prefix)}
	if test, found := tests[k.sort.name]; found {
		s.narrow(prefix, test)
	}
	return s, nil
}

func (a keyAttribute) checkTest(t keyTest) error {
	for _, v := range t.values {
		switch {
		case v.kind != a.kind:
			return invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
		case v.kind != kindN && v.text == "" && t.op != "begins_with":
			return errEmptyKey(a)
		}
	}
	if t.op == "begins_with" && a.kind == kindN {
		return invalid("Query key condition not supported")
	}
	return nil
}

// narrow applies the test of the sort key.
func (s *span) narrow(prefix string, t keyTest) {
	at := prefix + t.values[0].order()
	switch t.op {
	case "=":
		s.low, s.high = at, after(at)
	case "<":
		s.high = at
	case "<=":
		s.high = after(at)
	case ">":
		s.low = after(at)
	case ">=":
		s.low = at
	case "BETWEEN":
		s.low, s.high = at, after(prefix+t.values[1].order())
	case "begins_with":
		s.low = prefix + escape(t.values[0].text)
		s.high = after(s.low)
	}
}

// collectKeyTests takes a key condition apart.
func collectKeyTests(c condition, tests map[string]keyTest) error {
	switch c := c.(type) {
	case *and:
		if err := collectKeyTests(c.left, tests); err != nil {
			return err
		}
		return collectKeyTests(c.right, tests)
	case *comparison:
		return c.collect(tests)
	case *between:
		return addKeyTest(tests, "BETWEEN", c.of, c.low, c.high)
	case *beginsWith:
		return addKeyTest(tests, "begins_with", c.of, c.prefix)
	case *or:
		return badKeyOperator("OR")
	case *not:
		return badKeyOperator("NOT")
	case *among:
		return badKeyOperator("IN")
	case *contains:
		return badKeyOperator("contains")
	case *hasType:
		return badKeyOperator("attribute_type")
	case *exists:
		if c.want {
			return badKeyOperator("attribute_exists")
		}
		return badKeyOperator("attribute_not_exists")
	}
	return invalid("Query key condition not supported")
}

func (c *comparison) collect(tests map[string]keyTest) error {
	if c.op == "<>" {
		return badKeyOperator("<>")
	}
	if _, turned := c.left.(literal); turned {
		mirrored := map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}[c.op]
		return addKeyTest(tests, mirrored, c.right, c.left)
	}
	return addKeyTest(tests, c.op, c.left, c.right)
}

func badKeyOperator(op string) error {
	return invalid("Invalid operator used in KeyConditionExpression: %s", op)
}

func addKeyTest(tests map[string]keyTest, op string, of operand, values ...operand) error {
	at, isPath := of.(path)
	if !isPath {
		return invalid("Invalid condition in KeyConditionExpression: "+
			"%s operator must have the key attribute as its first operand", op)
	}
	if len(at) > 1 {
		return invalid("KeyConditionExpressions cannot have conditions on nested attributes")
	}
	if _, twice := tests[at[0].name]; twice {
		return invalid("KeyConditionExpressions must only contain one condition per key")
	}
	test := keyTest{op: op}
	for _, o := range values {
		switch o := o.(type) {
		case literal:
			test.values = append(test.values, o.is)
		case path:
			return invalid("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
		default:
			return invalid("KeyConditionExpressions cannot contain nested operations")
		}
	}
	tests[at[0].name] = test
	return nil
}
