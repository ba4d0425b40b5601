package tally

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
)

// ErrRange reports a number that needs more than 127 bits and a sign. DynamoDB keeps 38 digits, which always fit.
var ErrRange = errors.New("number beyond 38 digits")

// Sum is an exact signed total of 128 bits: any 2^64 deltas add up without wrapping. The zero value is 0.
type Sum struct {
	hi int64
	lo uint64
}

// SumOf returns n as a Sum.
func SumOf(n int64) Sum { return Sum{hi: n >> 63, lo: uint64(n)} }

// Plus returns s + t. It wraps beyond 128 bits, which 2^64 int64 deltas cannot reach.
func (s Sum) Plus(t Sum) Sum {
	lo, carry := bits.Add64(s.lo, t.lo, 0)
	hi, _ := bits.Add64(uint64(s.hi), uint64(t.hi), carry)
	return Sum{hi: int64(hi), lo: lo}
}

// Neg returns -s.
func (s Sum) Neg() Sum {
	lo, carry := bits.Add64(^s.lo, 1, 0)
	return Sum{hi: int64(uint64(^s.hi) + carry), lo: lo}
}

// IsZero reports whether s is 0.
func (s Sum) IsZero() bool { return s.hi == 0 && s.lo == 0 }

// Int64 returns s and true, or false where s does not fit.
func (s Sum) Int64() (int64, bool) {
	n := int64(s.lo)
	return n, s.hi == n>>63
}

// Big returns s as a big integer.
func (s Sum) Big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(s.hi), 64)
	return n.Add(n, new(big.Int).SetUint64(s.lo))
}

// String returns s in decimal digits.
func (s Sum) String() string {
	if n, ok := s.Int64(); ok {
		return fmt.Sprint(n)
	}
	return s.Big().String()
}

// ParseSum reads decimal digits with an optional sign, as DynamoDB returns an integer. Anything else is an error; a
// number beyond 128 bits is ErrRange.
func ParseSum(text string) (Sum, error) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return Sum{}, fmt.Errorf("parse sum: not a whole decimal number")
	}
	if n.BitLen() > 127 {
		return Sum{}, fmt.Errorf("parse sum: %w", ErrRange)
	}
	lo := new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0)))
	return Sum{hi: new(big.Int).Rsh(n, 64).Int64(), lo: lo.Uint64()}, nil
}
