package tally

import "strconv"

// ValidPosition reports whether text can be a place in an ordered source: a number of any length, written as the count
// of its digits, in three digits, and then the digits without leading zeroes, so that texts sort as the numbers do. 0
// is "000".
func ValidPosition(text string) bool {
	if len(text) < 3 {
		return false
	}
	count, err := strconv.ParseUint(text[:3], 10, 16)
	if err != nil || int(count) != len(text)-3 || count > 0 && text[3] == '0' {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}
