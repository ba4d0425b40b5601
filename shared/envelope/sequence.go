package envelope

import (
	"cmp"
	"fmt"
	"strings"
)

// SequenceNumber is a Kinesis sequence number: decimal digits, of any length
// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_Shard.html).
type SequenceNumber string

// Valid reports whether s is one or more decimal digits.
func (s SequenceNumber) Valid() bool { return allDigits(s) }

func allDigits[T ~string | ~[]byte](text T) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return len(text) > 0
}

// Position returns s as text that sorts as the number does: its digits behind their count, in three digits. s must be
// valid; Kinesis gives at most 129 digits.
func (s SequenceNumber) Position() string {
	digits := strings.TrimLeft(string(s), "0")
	return fmt.Sprintf("%03d%s", len(digits), digits)
}

// Compare orders s and t as numbers. Both must be valid.
func (s SequenceNumber) Compare(t SequenceNumber) int {
	a, b := strings.TrimLeft(string(s), "0"), strings.TrimLeft(string(t), "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
