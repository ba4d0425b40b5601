package envelope

import "fmt"

// maxDepth bounds how deep JSON may nest; deeper is refused.
const maxDepth = 10_000

// scanner walks JSON text once, strictly by RFC 8259 except that it leaves the check for UTF-8 to its user. After the
// first fault err is set and every further step does nothing.
type scanner struct {
	src   []byte
	at    int
	depth int
	err   error
	// arena takes what cannot be a part of src: text behind escapes, bytes behind base64. Parts of it never move.
	arena []byte
	// scalar, if set, hears of each scalar that skip has passed, and where it began.
	scalar func(from int)
}

// fail records the first fault. Its text completes "it ...".
func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
	s.src, s.at = s.src[:0], 0
}

func (s *scanner) malformed() { s.fail("is not JSON at byte %d", s.at) }

// peek skips white space and returns the byte that begins the next token, or 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take skips c if it is the next token.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.at == len(s.src) {
		return false
	}
	s.at++
	return true
}

func (s *scanner) expect(c byte) {
	if !s.take(c) {
		s.malformed()
	}
}

// object walks an object and calls value for each member whose name is in names, with its index there, to consume the
// member's value; it skips the others. A name that comes twice is a fault, since either value may be the wrong one.
func (s *scanner) object(names []string, value func(member int)) {
	s.open('{')
	seen := 0
	for first := true; s.err == nil && !s.take('}'); first = false {
		if !first {
			s.expect(',')
		}
		member := s.name(names)
		s.expect(':')
		switch {
		case member < 0:
			s.skip()
		case seen&(1<<member) != 0:
			s.fail("has the member %q twice in one object", names[member])
		default:
			seen |= 1 << member
			value(member)
		}
	}
	s.depth--
}

// name consumes a member's name and returns its index in names, or -1.
func (s *scanner) name(names []string) int {
	if len(names) == 0 {
		s.span()
		return -1
	}
	name := s.quoted()
	for i := range names {
		if string(name) == names[i] {
			return i
		}
	}
	return -1
}

// array walks an array and calls element for each element, to consume it.
func (s *scanner) array(element func()) {
	s.open('[')
	for first := true; s.err == nil && !s.take(']'); first = false {
		if !first {
			s.expect(',')
		}
		element()
	}
	s.depth--
}

func (s *scanner) open(bracket byte) {
	if !s.take(bracket) {
		s.fail("has no %q at byte %d, where it must", bracket, s.at)
	}
	if s.depth++; s.depth > maxDepth {
		s.fail("nests deeper than %d levels", maxDepth)
	}
}

// skip consumes any value and returns its text.
func (s *scanner) skip() []byte {
	c := s.peek()
	src, from := s.src, s.at
	switch {
	case c == '{':
		s.object(nil, nil)
	case c == '[':
		s.array(func() { s.skip() })
	default:
		s.skipScalar(c)
		if s.scalar != nil {
			s.scalar(from)
		}
	}
	if s.err != nil {
		return nil
	}
	return src[from:s.at]
}

func (s *scanner) skipScalar(c byte) {
	switch {
	case c == '"':
		s.span()
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	default:
		s.literal()
	}
}

func (s *scanner) literal() {
	for _, word := range [...]string{"null", "true", "false"} {
		if rest := s.src[s.at:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.at += len(word)
			return
		}
	}
	s.malformed()
}

func (s *scanner) number() {
	if s.src[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.src) && s.src[s.at] == '0' {
		s.at++
	} else {
		s.digits()
	}
	if s.at < len(s.src) && s.src[s.at] == '.' {
		s.at++
		s.digits()
	}
	if s.at < len(s.src) && s.src[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.src) && (s.src[s.at] == '+' || s.src[s.at] == '-') {
			s.at++
		}
		s.digits()
	}
}

func (s *scanner) digits() {
	from := s.at
	for s.at < len(s.src) && s.src[s.at] >= '0' && s.src[s.at] <= '9' {
		s.at++
	}
	if s.at == from {
		s.malformed()
	}
}
