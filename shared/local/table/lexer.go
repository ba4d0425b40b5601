package table

// tokenKind is what a piece of an expression is.
type tokenKind uint8

const (
	tokenEnd   tokenKind = iota
	tokenWord            // keyword, function or attribute name, as written
	tokenName            // #name
	tokenValue           // :value
	tokenIndex           // digits
	tokenPunct           // one of = <> < <= > >= ( ) [ ] , . + -
)

// token is one piece of an expression; start and end are its place in the text.
type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// scan splits an expression into tokens, the last of them tokenEnd. Where it meets a character that no expression
// holds, it returns the tokens before it and false; the last token is then that character.
func scan(text string) ([]token, bool) {
	tokens := make([]token, 0, len(text)/4+2)
	for at := 0; ; {
		for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
			at++
		}
		if at == len(text) {
			return append(tokens, token{kind: tokenEnd, text: "<EOF>", start: at, end: at}), true
		}
		kind, size := scanOne(text[at:])
		if size == 0 {
			return append(tokens, token{kind: tokenPunct, text: text[at : at+1], start: at, end: at + 1}), false
		}
		tokens = append(tokens, token{kind: kind, text: text[at : at+size], start: at, end: at + size})
		at += size
	}
}

// scanOne returns the kind and the length of the token at the start of text, or 0.
func scanOne(text string) (tokenKind, int) {
	switch c := text[0]; {
	case wordByte(c) && !digit(c):
		return tokenWord, 1 + run(text[1:], wordByte)
	case digit(c):
		return tokenIndex, run(text, digit)
	case c == '#' || c == ':':
		n := run(text[1:], wordByte)
		if n == 0 {
			return tokenEnd, 0
		}
		if c == '#' {
			return tokenName, n + 1
		}
		return tokenValue, n + 1
	case c == '<' && len(text) > 1 && (text[1] == '>' || text[1] == '='), c == '>' && len(text) > 1 && text[1] == '=':
		return tokenPunct, 2
	case c == '=' || c == '<' || c == '>' || c == '(' || c == ')' || c == '[' || c == ']' || c == ',' || c == '.' ||
		c == '+' || c == '-':
		return tokenPunct, 1
	}
	return tokenEnd, 0
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digit(c) || c == '_'
}

func run(text string, in func(byte) bool) int {
	n := 0
	for n < len(text) && in(text[n]) {
		n++
	}
	return n
}
