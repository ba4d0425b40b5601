package rules

import (
	"bytes"
	"math"
)

// number is a JSON number taken apart and never rounded: ± whole fraction × 10^power, where whole and fraction together
// have neither a leading nor a trailing 0. Zero is what has no digits, whatever its sign and power.
type number struct {
	negative        bool
	whole, fraction []byte // the digits before and after the point, as far as they count; both alias the literal
	power           int64  // of the last digit
}

// flaw says why a number does not fit; the zero value says that it does.
type flaw uint8

const (
	fits     flaw = iota
	fraction      // has digits below the unit
	tooBig        // leaves int64
)

// bigExponent stands for every exponent beyond it. It exceeds any document's length, so that digits cannot make up for
// it.
const bigExponent = 1 << 40

// parseNumber takes apart a literal that is a valid JSON number.
func parseNumber(literal []byte) number {
	var n number
	if literal[0] == '-' {
		n.negative, literal = true, literal[1:]
	}
	if e := bytes.IndexAny(literal, "eE"); e >= 0 {
		n.power = exponent(literal[e+1:])
		literal = literal[:e]
	}
	n.whole, n.fraction, _ = bytes.Cut(literal, []byte{'.'})
	n.power -= int64(len(n.fraction))
	n.fraction = n.dropZeros(n.fraction)
	if len(n.fraction) == 0 {
		n.whole = n.dropZeros(n.whole)
	}
	n.whole = bytes.TrimLeft(n.whole, "0")
	if len(n.whole) == 0 {
		n.fraction = bytes.TrimLeft(n.fraction, "0")
	}
	return n
}

func (n *number) dropZeros(digits []byte) []byte {
	kept := bytes.TrimRight(digits, "0")
	n.power += int64(len(digits) - len(kept))
	return kept
}

func exponent(text []byte) int64 {
	sign := int64(1)
	switch text[0] {
	case '-':
		sign, text = -1, text[1:]
	case '+':
		text = text[1:]
	}
	var e int64
	for _, digit := range text {
		e = min(e*10+int64(digit-'0'), bigExponent)
	}
	return sign * e
}

func (n number) digits() int { return len(n.whole) + len(n.fraction) }

func (n number) digit(i int) byte {
	if i < len(n.whole) {
		return n.whole[i]
	}
	return n.fraction[i-len(n.whole)]
}

// scaled returns n × 10^scale, exactly or not at all.
func (n number) scaled(scale int) (int64, flaw) {
	if n.digits() > 0 && n.power+int64(scale) < 0 {
		return 0, fraction
	}
	return n.floor(scale)
}

// floor returns the largest integer that is not above n × 10^scale.
func (n number) floor(scale int) (int64, flaw) {
	power := n.power + int64(scale)
	length := int64(n.digits()) + power // of the result's whole part
	switch {
	case n.digits() == 0:
		return 0, fits
	case length > 19: // int64 ends within 19 digits, uint64 holds any 19
		return 0, tooBig
	}
	var size uint64
	for i := range max(length, 0) {
		size *= 10
		if i < int64(n.digits()) {
			size += uint64(n.digit(int(i)) - '0')
		}
	}
	switch {
	case !n.negative && size > math.MaxInt64:
		return 0, tooBig
	case !n.negative:
		return int64(size), fits
	case power < 0: // the last digit is not 0 and was cut off
		size++
	}
	if size > 1<<63 {
		return 0, tooBig
	}
	return -int64(size), fits // wraps to the one number that has no positive twin
}

// integer reports whether n is an integer.
func (n number) integer() bool { return n.digits() == 0 || n.power >= 0 }

// appendTo appends n in plain decimal digits: no exponent, no zero that says nothing, no "-0". Equal numbers give equal
// text. It reports false, and dst as it was, where that takes more than limit bytes.
func (n number) appendTo(dst []byte, limit int) ([]byte, bool) {
	if n.digits() == 0 {
		return append(dst, '0'), limit >= 1
	}
	ahead := int64(n.digits()) + n.power // digits before the point; below 0: zeros after it
	size := max(ahead, 1)
	if n.power < 0 {
		size += 1 - n.power
	}
	if n.negative {
		size++
	}
	if size > int64(limit) {
		return dst, false
	}
	if n.negative {
		dst = append(dst, '-')
	}
	if ahead <= 0 {
		dst = append(dst, '0', '.')
		for range -ahead {
			dst = append(dst, '0')
		}
	}
	for i := range n.digits() {
		if int64(i) == ahead && ahead > 0 {
			dst = append(dst, '.')
		}
		dst = append(dst, n.digit(i))
	}
	for range n.power {
		dst = append(dst, '0')
	}
	return dst, true
}
