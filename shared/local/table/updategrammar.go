package table

import (
	"slices"
	"strings"
)

// The grammar of update expressions:
//
//	update  = section { section }                                   each of the four at most once
//	section = SET path "=" value { "," path "=" value }
//	        | REMOVE path { "," path }
//	        | ( ADD | DELETE ) path :value { "," path :value }
//	value   = operand [ ( "+" | "-" ) operand ]
//	operand = path | :value | function "(" value "," value ")" | "(" value ")"

var sections = []string{"SET", "REMOVE", "ADD", "DELETE"}

func (p *parser) update() *update {
	u := &update{}
	seen := map[string]bool{}
	for p.peek().kind != tokenEnd {
		word := strings.ToUpper(p.peek().text)
		if p.peek().kind != tokenWord || !slices.Contains(sections, word) {
			p.unexpected()
			return u
		}
		if seen[word] {
			p.fail("The %q section can only be used once in an update expression;", word)
		}
		seen[word] = true
		p.next()
		p.section(u, word)
		for p.accept(",") {
			p.section(u, word)
		}
	}
	p.checkOverlap(u.touched)
	return u
}

// section reads one action of a section.
func (p *parser) section(u *update, word string) {
	at := p.documentPath()
	if p.err != nil {
		return
	}
	u.touched = append(u.touched, at)
	p.operator()
	switch word {
	case "SET":
		p.expect("=")
		u.sets = append(u.sets, assignment{at, p.source()})
	case "REMOVE":
		u.removes = append(u.removes, at)
	case "ADD":
		u.adds = append(u.adds, assignment{at, p.memberLiteral(word)})
	case "DELETE":
		u.deletes = append(u.deletes, assignment{at, p.memberLiteral(word)})
	}
}

// longNames are what the ADD and DELETE messages call the kinds.
var longNames = map[kind]string{
	kindS: "STRING", kindN: "NUMBER", kindB: "BINARY", kindBool: "BOOLEAN", kindNull: "NULL", kindL: "LIST", kindM: "MAP",
}

func (p *parser) memberLiteral(word string) source {
	if p.peek().kind != tokenValue {
		p.unexpected()
		return nil
	}
	v := p.literal()
	if p.err == nil && !v.kind.set() && (word == "DELETE" || v.kind != kindN) {
		p.fail("Incorrect operand type for operator or function; operator: %s, operand type: %s", word, longNames[v.kind])
	}
	return copyOf{literal{v}}
}

func (p *parser) source() source {
	left := p.sourceOperand()
	plus, minus := p.accept("+"), false
	if !plus {
		minus = p.accept("-")
	}
	if !plus && !minus {
		return left
	}
	p.operator()
	right := p.sourceOperand()
	name := "+"
	if minus {
		name = "-"
	}
	p.checkSources(name, kindN, left, right)
	return sum{left, right, minus}
}

func (p *parser) sourceOperand() source {
	switch t := p.peek(); {
	case p.accept("("):
		inner := p.source()
		p.expect(")")
		return inner
	case t.kind == tokenValue:
		return copyOf{literal{p.literal()}}
	case t.kind == tokenWord && p.err == nil && p.tokens[p.at+1].text == "(":
		return p.sourceFunction()
	}
	return copyOf{p.documentPath()}
}

func (p *parser) sourceFunction() source {
	name := p.next().text
	p.operator()
	p.expect("(")
	args := []source{p.source()}
	for p.accept(",") {
		args = append(args, p.source())
	}
	p.expect(")")
	switch {
	case p.err != nil:
		return nil
	case name != "if_not_exists" && name != "list_append":
		p.fail("Invalid function name; function: %s", name)
		return nil
	case len(args) != 2:
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d",
			name, len(args))
		return nil
	case name == "list_append":
		p.checkSources(name, kindL, args[0], args[1])
		return listAppend{args[0], args[1]}
	}
	at, ok := args[0].(copyOf)
	to, isPath := at.of.(path)
	if !ok || !isPath {
		p.fail("Operator or function requires a document path; operator or function: %s", name)
		return nil
	}
	return ifNotExists{to, args[1]}
}

// checkSources refuses a literal that can never be of the kind that an operator needs.
func (p *parser) checkSources(operator string, want kind, sources ...source) {
	for _, s := range sources {
		if c, ok := s.(copyOf); ok && p.err == nil {
			p.checkKinds(operator, func(k kind) bool { return k == want }, c.of)
		}
	}
}
