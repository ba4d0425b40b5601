package table

import (
	"strconv"
	"strings"

	"abacus/shared/local/wire"
)

// Limits of an expression
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-expression-parameters).
const (
	maxExpression    = 4096 // bytes
	maxOperators     = 300  // operators and functions
	maxInOperands    = 100
	maxAttributeName = 65535
)

// parser reads one expression by recursive descent. After its first error it sees only the end of the text, so that the
// rules need not look for errors.
type parser struct {
	what      string // member of the request, such as "ConditionExpression"
	text      string
	tokens    []token
	at        int
	given     *placeholders
	operators int
	heads     map[string]bool // top-level attributes that paths begin with
	err       *wire.Error
}

// parse reads text by the grammar rule, to its end.
func parse[T any](what, text string, given *placeholders, rule func(*parser) T) (T, error) {
	var none T
	given.expressions++
	p := &parser{what: what, text: text, given: given, heads: make(map[string]bool)}
	if len(text) > maxExpression {
		return none, invalid("Invalid %s: Expression size has exceeded the maximum allowed size; expression size: %d",
			what, len(text))
	}
	if strings.Trim(text, " \t\r\n") == "" {
		return none, invalid("Invalid %s: The expression can not be empty;", what)
	}
	var clean bool
	if p.tokens, clean = scan(text); !clean {
		p.at = len(p.tokens) - 1
		p.unexpected()
		return none, p.err
	}
	result := rule(p)
	if p.peek().kind != tokenEnd {
		p.unexpected()
	}
	if p.err != nil {
		return none, p.err
	}
	return result, nil
}

func (p *parser) peek() token {
	if p.err != nil {
		return p.tokens[len(p.tokens)-1]
	}
	return p.tokens[p.at]
}

func (p *parser) next() token {
	t := p.peek()
	if p.err == nil && t.kind != tokenEnd {
		p.at++
	}
	return t
}

// fail records the first error.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = invalid("Invalid "+p.what+": "+format, args...)
		last := p.tokens[len(p.tokens)-1]
		p.tokens = append(p.tokens, token{kind: tokenEnd, start: last.end, end: last.end})
	}
}

// unexpected reports a syntax error at the next token, with its neighbours.
func (p *parser) unexpected() {
	if p.err != nil {
		return
	}
	from, to := p.tokens[max(p.at-1, 0)].start, p.tokens[min(p.at+1, len(p.tokens)-1)].end
	p.fail("Syntax error; token: %q, near: %q", p.tokens[p.at].text, p.text[from:to])
}

// accept takes the next token if it is this punctuation or, in any case of letters, this keyword.
func (p *parser) accept(text string) bool {
	t := p.peek()
	if t.kind == tokenPunct && t.text == text || t.kind == tokenWord && strings.EqualFold(t.text, text) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.unexpected()
	}
}

// operator counts one operator or function against the limit.
func (p *parser) operator() {
	if p.operators++; p.operators > maxOperators {
		p.fail("The expression contains too many operators or functions; limit: %d", maxOperators)
	}
}

// step is one level of a document path: a name, or an index of a list.
type step struct {
	name  string
	index int // -1 with a name
}

// path leads to an attribute or into one.
type path []step

// String shows the path as DynamoDB's messages do.
func (p path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		if parts[i] = s.name; s.index >= 0 {
			parts[i] = "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// value returns what stands at the path in item, and whether anything does.
func (p path) value(item Item) (Value, bool) {
	v, found := item[p[0].name]
	for _, s := range p[1:] {
		switch {
		case !found:
			return Value{}, false
		case s.index >= 0 && v.kind == kindL && s.index < len(v.list):
			v = v.list[s.index]
		case s.index < 0 && v.kind == kindM:
			v, found = v.attrs[s.name]
		default:
			return Value{}, false
		}
	}
	return v, found
}

func (p path) equal(q path) bool { return len(p) == len(q) && p.String() == q.String() }

// documentPath reads name[3].name and the like.
func (p *parser) documentPath() path {
	steps := path{{name: p.attributeName(), index: -1}}
	p.heads[steps[0].name] = true
	for {
		switch {
		case p.accept("."):
			steps = append(steps, step{name: p.attributeName(), index: -1})
		case p.accept("["):
			t := p.next()
			index, err := strconv.Atoi(t.text)
			if t.kind != tokenIndex || err != nil {
				p.at--
				p.unexpected()
				return steps
			}
			steps = append(steps, step{index: index})
			p.expect("]")
		default:
			if len(steps) > 1 {
				p.given.entered[steps[0].name] = true
			}
			if len(steps) > maxNesting {
				p.fail("The document path has too many nesting levels; nesting levels: %d", len(steps))
			}
			return steps
		}
	}
}

func (p *parser) attributeName() string {
	switch t := p.peek(); t.kind {
	case tokenWord:
		if reserved[strings.ToUpper(t.text)] {
			p.fail("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		return p.next().text
	case tokenName:
		name, err := p.given.name(p.next().text)
		if err != nil {
			p.fail("%s", err.Message)
		}
		return name
	}
	p.unexpected()
	return ""
}

// literal reads :value.
func (p *parser) literal() Value {
	value, err := p.given.value(p.next().text)
	if err != nil {
		p.fail("%s", err.Message)
	}
	return value
}
