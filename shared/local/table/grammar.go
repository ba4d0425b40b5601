package table

import (
	"slices"
	"strings"
)

// The grammar of conditions, loosest binding first:
//
//	disjunction = conjunction { OR conjunction }
//	conjunction = negation { AND negation }
//	negation    = NOT negation | test
//	test        = part [ comparator part | BETWEEN part AND part | IN "(" part { "," part } ")" ]
//	part        = "(" disjunction ")" | function "(" part { "," part } ")" | path | :value
//
// A part may turn out to be an operand or a condition; the rules above it demand what they need.

// node is an operand or a condition; the other is nil.
type node struct {
	operand   operand
	condition condition
	name      string // of the function that made it
	parens    bool   // it stands in parentheses
}

// condition reads a whole condition expression.
func (p *parser) condition() condition { return p.asCondition(p.disjunction()) }

func (p *parser) disjunction() node {
	left := p.conjunction()
	for p.accept("OR") {
		p.operator()
		left = node{condition: &or{p.asCondition(left), p.asCondition(p.conjunction())}}
	}
	return left
}

func (p *parser) conjunction() node {
	left := p.negation()
	for p.accept("AND") {
		p.operator()
		left = node{condition: &and{p.asCondition(left), p.asCondition(p.negation())}}
	}
	return left
}

func (p *parser) negation() node {
	if p.accept("NOT") {
		p.operator()
		return node{condition: &not{p.asCondition(p.negation())}}
	}
	return p.test()
}

func (p *parser) test() node {
	left := p.part()
	switch t := p.peek(); {
	case t.kind == tokenPunct && slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, t.text):
		p.next()
		p.operator()
		c := &comparison{op: t.text, left: p.asOperand(left), right: p.asOperand(p.part())}
		p.checkComparison(c)
		return node{condition: c}
	case p.accept("BETWEEN"):
		p.operator()
		b := &between{of: p.asOperand(left), low: p.asOperand(p.part())}
		p.expect("AND")
		b.high = p.asOperand(p.part())
		p.checkBetween(b)
		return node{condition: b}
	case p.accept("IN"):
		p.operator()
		p.expect("(")
		a := &among{of: p.asOperand(left), list: []operand{p.asOperand(p.part())}}
		for p.accept(",") {
			a.list = append(a.list, p.asOperand(p.part()))
		}
		p.expect(")")
		if len(a.list) > maxInOperands {
			p.fail("Incorrect number of operands for operator or function; operator or function: IN, "+
				"number of operands: %d", len(a.list)+1)
		}
		return node{condition: a}
	}
	return left
}

func (p *parser) part() node {
	switch t := p.peek(); {
	case p.accept("("):
		inner := p.disjunction()
		p.expect(")")
		if inner.parens {
			p.fail("The expression has redundant parentheses;")
		}
		inner.parens = true
		return inner
	case t.kind == tokenValue:
		return node{operand: literal{p.literal()}}
	case t.kind == tokenWord && p.err == nil && p.tokens[p.at+1].text == "(" && !conditionKeyword(t.text):
		return p.function()
	case t.kind == tokenWord && conditionKeyword(t.text):
		p.unexpected()
		return node{}
	}
	return node{operand: p.documentPath()}
}

func conditionKeyword(word string) bool {
	return slices.Contains([]string{"AND", "OR", "NOT", "BETWEEN", "IN"}, strings.ToUpper(word))
}

// asCondition demands a condition of a node.
func (p *parser) asCondition(n node) condition {
	switch {
	case n.condition != nil || p.err != nil:
	case n.name != "":
		p.misused(n.name)
	default:
		p.unexpected()
	}
	return n.condition
}

// asOperand demands an operand of a node.
func (p *parser) asOperand(n node) operand {
	switch {
	case n.operand != nil || p.err != nil:
	case n.name != "":
		p.misused(n.name)
	default:
		p.unexpected()
	}
	return n.operand
}

func (p *parser) misused(function string) {
	p.fail("The function is not allowed to be used this way in an expression; function: %s", function)
}

func (p *parser) function() node {
	name := p.next().text
	p.operator()
	p.expect("(")
	args := []operand{p.asOperand(p.part())}
	for p.accept(",") {
		args = append(args, p.asOperand(p.part()))
	}
	p.expect(")")
	if p.err != nil {
		return node{}
	}
	n := node{name: name}
	operands, known := map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2,
		"begins_with": 2, "contains": 2, "size": 1}[name]
	switch {
	case !known:
		p.fail("Invalid function name; function: %s", name)
		return n
	case len(args) != operands:
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d",
			name, len(args))
		return n
	}
	if len(args) == 2 {
		p.checkDistinct(name, args[0], args[1])
	}
	switch name {
	case "attribute_exists", "attribute_not_exists":
		at, ok := args[0].(path)
		if !ok {
			p.fail("Operator or function requires a document path; operator or function: %s", name)
			return n
		}
		n.condition = &exists{at: at, want: name == "attribute_exists"}
	case "attribute_type":
		n.condition = p.typeTest(args)
	case "begins_with":
		p.checkKinds(name, kind.text, args...)
		n.condition = &beginsWith{args[0], args[1]}
	case "contains":
		n.condition = &contains{args[0], args[1]}
	case "size":
		p.checkKinds(name, kind.sized, args...)
		n.operand = sizeOf{args[0]}
	}
	return n
}
