package tally

import "testing"

func TestEnvelopes_NamesGoThereAndBack(t *testing.T) {
	if got := Envelopes(0).String(); got != "none" {
		t.Errorf("the empty set is %q", got)
	}
	if got := (DefaultEnvelopes | Base64).String(); got != "kpl, gzip, zstd, sns, eventbridge, s3, logs, base64" {
		t.Errorf("all are %q", got)
	}
	for e := KPL; e <= Base64; e <<= 1 {
		if got := EnvelopeNamed(e.String()); got != e {
			t.Errorf("%q names %v", e.String(), got)
		}
	}
	for _, name := range []string{"", "none", "KPL", "kpl, gzip"} {
		if got := EnvelopeNamed(name); got != 0 {
			t.Errorf("%q names %v", name, got)
		}
	}
}
