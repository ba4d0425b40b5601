package tally

import (
	"strings"
	"testing"
)

func TestValidPosition_TakesNumbersWrittenToSortAndNothingElse(t *testing.T) {
	for text, want := range map[string]bool{
		"000": true, "0011": true, "00210": true, "129" + strings.Repeat("9", 129): true,
		"": false, "00": false, "zzz": false, "001": false, "00112": false, "00201": false, "+011": false, "0010": false,
		"49590338271490256608559692538361571095921575989136588898": false, "001x": false,
	} {
		if got := ValidPosition(text); got != want {
			t.Errorf("ValidPosition(%q) = %t", text, got)
		}
	}
}
