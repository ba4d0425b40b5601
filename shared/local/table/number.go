package table

import (
	"strings"

	"abacus/shared/local/wire"

	"github.com/cockroachdb/apd/v3"
)

// Limits of a number
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-data-types-number).
const (
	maxDigits    = 38
	maxMagnitude = 125  // 9.99...E+125
	minMagnitude = -130 // 1E-130
)

// number is a decimal in canonical text: no exponent, no leading zeros, no trailing zeros behind a point, no "-0". Two
// numbers are equal exactly when their texts are.
type number string

// parseNumber reads a number as DynamoDB does. Errors are ValidationExceptions in DynamoDB's words.
func parseNumber(text string) (number, error) {
	if text == "" {
		return "", invalid("The parameter cannot be converted to a numeric value")
	}
	if canonicalInteger(text) {
		return number(text), nil
	}
	d, ok := scanDecimal(text)
	if !ok {
		return "", invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	return d.number()
}

// canonicalInteger reports whether text is already a number: the fast way for what counters hold.
func canonicalInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if len(digits) == 0 || len(digits) > maxDigits || digits[0] == '0' && text != "0" {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// decimal is 0.digits x 10^point: digits have no zeros at either end, and zero has none at all.
type decimal struct {
	negative bool
	digits   string
	point    int
}

// maxExponent bounds a written exponent, so that its sum with a place in the text cannot overflow. Any number of
// DynamoDB's range can be written within it.
const maxExponent = 1 << 24

// scanDecimal reads [-]digits[.digits][(e|E)[+-]digits], with at least one digit before the exponent.
func scanDecimal(text string) (decimal, bool) {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var ok bool
		if exponent, ok = scanExponent(text[i+1:]); !ok {
			return d, false
		}
		mantissa = text[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return d, false
	}
	digits := whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	d.point = len(whole) - (len(digits) - len(trimmed)) + exponent
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

func scanExponent(text string) (int, bool) {
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		n = min(n*10+int(digits[i]-'0'), maxExponent)
	}
	if text[0] == '-' {
		n = -n
	}
	return n, true
}

// number checks the limits and writes d in canonical text.
func (d decimal) number() (number, error) {
	switch magnitude := d.point - 1; {
	case d.digits == "":
		return "0", nil
	case magnitude > maxMagnitude:
		return "", invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case magnitude < minMagnitude:
		return "", invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case len(d.digits) > maxDigits:
		return "", invalid("Attempting to store more than 38 significant digits in a Number")
	}
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	switch {
	case d.point <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -d.point))
		b.WriteString(d.digits)
	case d.point >= len(d.digits):
		b.WriteString(d.digits)
		b.WriteString(strings.Repeat("0", d.point-len(d.digits)))
	default:
		b.WriteString(d.digits[:d.point])
		b.WriteByte('.')
		b.WriteString(d.digits[d.point:])
	}
	return number(b.String()), nil
}

func (n number) decimal() decimal {
	d, _ := scanDecimal(string(n))
	return d
}

// exact computes sums of any two numbers without rounding: from 9.9E+125 down to 1E-130 is 256 digits, and a carry.
var exact = apd.BaseContext.WithPrecision(maxMagnitude - minMagnitude + 2)

func (n number) plus(m number) (number, error)  { return n.combine(m, exact.Add) }
func (n number) minus(m number) (number, error) { return n.combine(m, exact.Sub) }

func (n number) combine(m number, op func(d, x, y *apd.Decimal) (apd.Condition, error)) (number, error) {
	var x, y, sum apd.Decimal
	if _, _, err := x.SetString(string(n)); err != nil {
		return "", err
	}
	if _, _, err := y.SetString(string(m)); err != nil {
		return "", err
	}
	if _, err := op(&sum, &x, &y); err != nil {
		return "", err
	}
	return parseNumber(sum.Text('f'))
}

// compare returns -1, 0 or 1.
func (n number) compare(m number) int {
	return strings.Compare(n.order(), m.order())
}

// order returns bytes that sort as the numbers do, no one of them a prefix of another: a sign, the magnitude, the
// digits and an end mark; for a negative number the last three are complemented.
func (n number) order() string {
	d := n.decimal()
	if d.digits == "" {
		return "\x01"
	}
	b := make([]byte, 0, len(d.digits)+3)
	b = append(b, 2, byte(d.point-1-minMagnitude))
	b = append(b, d.digits...)
	b = append(b, 0)
	if d.negative {
		b[0] = 0
		for i := range b[1:] {
			b[i+1] = ^b[i+1]
		}
	}
	return string(b)
}

// size is the number's share of an item: a byte, one for each two significant digits before the point, one for each two
// behind it, and one for a minus sign. AWS documents it roughly
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html); that digits on the
// two sides of the point do not share a byte is measured.
func (n number) size() int {
	text, negative := strings.CutPrefix(string(n), "-")
	whole, fraction, _ := strings.Cut(text, ".")
	switch {
	case text == "0":
		return 1
	case fraction == "":
		whole = strings.TrimRight(whole, "0")
	case whole == "0":
		whole, fraction = "", strings.TrimLeft(fraction, "0")
	}
	size := 1 + (len(whole)+1)/2 + (len(fraction)+1)/2
	if negative {
		size++
	}
	return size
}

func invalid(format string, args ...any) *wire.Error {
	return wire.Errorf("ValidationException", format, args...)
}
