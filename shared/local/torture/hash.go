package torture

import "math/big"

// middle is the hash key half-way between two.
func middle(from, to string) string {
	a, _ := new(big.Int).SetString(from, 10)
	b, _ := new(big.Int).SetString(to, 10)
	if a == nil || b == nil {
		return ""
	}
	return a.Add(a, b).Rsh(a, 1).String()
}
