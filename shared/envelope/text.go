package envelope

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// firstChunk is the size of an arena's first chunk, if that is enough for what comes first.
const firstChunk = 4 << 10

// text consumes a string and returns what it says; nil for null, which says nothing. The bytes are a part of the source
// or of the arena.
func (s *scanner) text() []byte {
	switch s.peek() {
	case 'n':
		s.literal()
		return nil
	case '"':
		return s.quoted()
	default:
		s.fail("has something else than a string at byte %d", s.at)
		return nil
	}
}

// quoted consumes a string and returns what it says.
func (s *scanner) quoted() []byte {
	inner, escaped := s.span()
	if !escaped {
		return inner
	}
	from := s.room(len(inner))
	for at := 0; at < len(inner); {
		next := plain(inner, at)
		s.arena = append(s.arena, inner[at:next]...)
		at = next
		if at < len(inner) {
			at = s.unescape(inner, at)
		}
	}
	return s.arena[from:len(s.arena):len(s.arena)]
}

// base64 consumes a string in the standard base64 alphabet and returns the bytes that it stands for; nil for null.
func (s *scanner) base64() []byte {
	text := s.text()
	if len(text) == 0 {
		return nil
	}
	from := s.room(len(text))
	n, err := base64.StdEncoding.Decode(s.arena[from:cap(s.arena)], text)
	// The decoder passes over line breaks, which nobody sends and which would hide a length that is wrong.
	if pad := len(text) - len(trimPadding(text)); err != nil || len(text)%4 != 0 || n != len(text)/4*3-pad {
		s.fail("has data that is not base64 before byte %d", s.at)
		return nil
	}
	s.arena = s.arena[:from+n]
	return s.arena[from : from+n : from+n]
}

func trimPadding(text []byte) []byte {
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	return text
}

// room makes the arena ready to take n more bytes and returns how many it holds. It grows by chunks that double, so
// that it is not much larger than what it takes.
func (s *scanner) room(n int) int {
	if cap(s.arena)-len(s.arena) < n {
		s.arena = make([]byte, 0, max(n, 2*cap(s.arena), firstChunk))
	}
	return len(s.arena)
}

// span consumes a string and returns what stands between its quotes, and whether an escape is among it.
func (s *scanner) span() (inner []byte, escaped bool) {
	if s.peek() != '"' {
		s.malformed()
		return nil, false
	}
	from := s.at + 1
	for at := from; ; {
		at = plain(s.src, at)
		switch {
		case at == len(s.src):
			s.fail("ends within a string")
			return nil, false
		case s.src[at] == '"':
			s.at = at + 1
			return s.src[from:at], escaped
		case s.src[at] != '\\':
			s.at = at
			s.malformed()
			return nil, false
		}
		escaped = true
		n := escapeLen(s.src[at:])
		if n == 0 {
			s.at = at
			s.malformed()
			return nil, false
		}
		at += n
	}
}

// plain returns the index at or after at of the first byte that needs care in a string (a quote, a backslash or a
// control character), or len(b). It looks at eight bytes at a time.
func plain(b []byte, at int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(b); at += 8 {
		w := binary.LittleEndian.Uint64(b[at:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		care := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
		if care != 0 {
			return at + bits.TrailingZeros64(care)/8
		}
	}
	for ; at < len(b); at++ {
		if c := b[at]; c == '"' || c == '\\' || c < ' ' {
			return at
		}
	}
	return at
}

const simpleEscapes, simpleMeanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

// escapeLen returns the length of the escape that b begins with, or 0 if it is none.
func escapeLen(b []byte) int {
	switch {
	case len(b) < 2:
		return 0
	case b[1] != 'u':
		if strings.IndexByte(simpleEscapes, b[1]) >= 0 {
			return 2
		}
		return 0
	case len(b) < 6:
		return 0
	}
	for _, c := range b[2:6] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return 0
		}
	}
	return 6
}

// unescape appends what the escape at inner[at] means and returns where it ends. Half of a surrogate pair is a fault:
// there is no text that it could mean.
func (s *scanner) unescape(inner []byte, at int) int {
	if c := inner[at+1]; c != 'u' {
		s.arena = append(s.arena, simpleMeanings[strings.IndexByte(simpleEscapes, c)])
		return at + 2
	}
	r := hex4(inner[at+2:])
	at += 6
	if utf16.IsSurrogate(r) {
		if at+6 <= len(inner) && inner[at] == '\\' && inner[at+1] == 'u' {
			r = utf16.DecodeRune(r, hex4(inner[at+2:]))
			at += 6
		} else {
			r = utf8.RuneError
		}
		if r == utf8.RuneError {
			s.fail("has half of a surrogate pair in a string")
			return len(inner)
		}
	}
	s.arena = utf8.AppendRune(s.arena, r)
	return at
}

func hex4(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return rune(n)
}
