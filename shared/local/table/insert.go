package table

import (
	"strings"
	"unicode/utf8"

	"abacus/shared/local/wire"
)

// insertParser reads INSERT INTO "table" VALUE {'name': value, ...}, where a value is ?, a literal, a list [...], a set
// <<...>> or a map {...}. After its first error it sees only the end of the text.
type insertParser struct {
	rest       string
	parameters []Value
	err        *wire.Error
}

func parseInsert(text string, parameters []Value) (table string, item Item, err error) {
	p := &insertParser{rest: text, parameters: parameters}
	p.keyword("INSERT")
	p.keyword("INTO")
	table = p.tableName()
	p.keyword("VALUE")
	item = p.tuple(0)
	if p.space(); p.rest != "" {
		p.fail("unexpected %q after the item", p.short())
	}
	if p.err == nil && len(p.parameters) > 0 {
		p.err = invalid("Number of parameters in request and statement don't match.")
	}
	if p.err != nil {
		return "", nil, p.err
	}
	return table, item, nil
}

func (p *insertParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = invalid("Statement wasn't well formed, can't be processed: "+format+
			`; this stand-in knows only INSERT INTO "table" VALUE {...}`, args...)
		p.rest = ""
	}
}

func (p *insertParser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// short is the beginning of what is left, for messages.
func (p *insertParser) short() string {
	n := min(len(p.rest), 12)
	for n > 0 && n < len(p.rest) && !utf8.RuneStart(p.rest[n]) {
		n--
	}
	return p.rest[:n]
}

func (p *insertParser) word() string {
	p.space()
	n := run(p.rest, wordByte)
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

func (p *insertParser) keyword(want string) {
	if word := p.word(); !strings.EqualFold(word, want) {
		p.fail("%s expected before %q", want, word+p.short())
	}
}

func (p *insertParser) accept(mark string) bool {
	p.space()
	rest, found := strings.CutPrefix(p.rest, mark)
	p.rest = rest
	return found
}

func (p *insertParser) expect(mark string) {
	if !p.accept(mark) {
		p.fail("%q expected before %q", mark, p.short())
	}
}

func (p *insertParser) tableName() string {
	if p.accept(`"`) {
		name, rest, closed := strings.Cut(p.rest, `"`)
		if p.rest = rest; !closed {
			p.fail("the quoted table name has no end")
		}
		return name
	}
	name := p.word()
	if name == "" {
		p.fail("a table name expected before %q", p.short())
	}
	return name
}

// text reads a text in single quotes, in which two of them stand for one.
func (p *insertParser) text() string {
	p.expect("'")
	var b strings.Builder
	for p.err == nil {
		part, rest, closed := strings.Cut(p.rest, "'")
		if p.rest = rest; !closed {
			p.fail("a quoted text has no end")
		}
		b.WriteString(part)
		if !strings.HasPrefix(p.rest, "'") {
			break
		}
		b.WriteByte('\'')
		p.rest = p.rest[1:]
	}
	return b.String()
}

func (p *insertParser) tuple(depth int) Item {
	item := make(Item)
	if p.expect("{"); p.accept("}") {
		return item
	}
	for p.err == nil {
		name := p.text()
		p.expect(":")
		if _, twice := item[name]; twice {
			p.fail("the attribute %q appears twice", name)
		}
		item[name] = p.value(depth)
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	return item
}

func (p *insertParser) value(depth int) Value {
	if depth > maxNesting {
		p.err, p.rest = invalid("Nesting Levels have exceeded supported limits"), ""
		return Value{}
	}
	p.space()
	switch {
	case p.accept("?"):
		if len(p.parameters) == 0 {
			if p.err == nil {
				p.err, p.rest = invalid("Number of parameters in request and statement don't match."), ""
			}
			return Value{}
		}
		v := p.parameters[0]
		p.parameters = p.parameters[1:]
		return v
	case strings.HasPrefix(p.rest, "'"):
		return textValue(p.text())
	case strings.HasPrefix(p.rest, "{"):
		return Value{kind: kindM, attrs: p.tuple(depth + 1)}
	case p.accept("["):
		return Value{kind: kindL, list: p.values(depth+1, "]")}
	case p.accept("<<"):
		return p.set(p.values(depth+1, ">>"))
	}
	return p.bare()
}

// bare reads a number, TRUE, FALSE or NULL.
func (p *insertParser) bare() Value {
	n := run(p.rest, func(c byte) bool { return wordByte(c) || c == '.' || c == '+' || c == '-' })
	word := p.rest[:n]
	p.rest = p.rest[n:]
	switch strings.ToUpper(word) {
	case "TRUE", "FALSE":
		return Value{kind: kindBool, flag: strings.EqualFold(word, "TRUE")}
	case "NULL":
		return Value{kind: kindNull}
	case "":
		p.fail("a value expected before %q", p.short())
		return Value{}
	}
	number, err := parseNumber(word)
	if err != nil {
		p.fail("%q is not a value", word)
	}
	return numberValue(number)
}

func (p *insertParser) values(depth int, end string) []Value {
	list := []Value{}
	if p.accept(end) {
		return list
	}
	for p.err == nil {
		list = append(list, p.value(depth))
		if !p.accept(",") {
			p.expect(end)
			break
		}
	}
	return list
}

// set makes a set of values of one kind.
func (p *insertParser) set(list []Value) Value {
	if p.err != nil {
		return Value{}
	}
	v := Value{kind: kindSS}
	for _, e := range list {
		if !e.kind.ordered() || e.kind != list[0].kind {
			p.fail("a set must hold only texts, only numbers or only binaries")
			return Value{}
		}
		v.kind = e.kind - kindS + kindSS
		v.members = append(v.members, e.text)
	}
	if err := v.tidySet(); err != nil {
		p.err, p.rest = err.(*wire.Error), ""
	}
	return v
}
