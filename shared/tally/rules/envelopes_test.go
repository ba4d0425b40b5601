package rules

import (
	"testing"

	"abacus/shared/tally"
)

func TestParse_SaysWhichEnvelopesAreOpened(t *testing.T) {
	counters := rule("keys: [all]")
	for text, want := range map[string]tally.Envelopes{
		"":                                 tally.DefaultEnvelopes,
		"envelopes: [kpl, sns]\n":          tally.KPL | tally.SNS,
		"envelopes: [sns]\nbase64: true\n": tally.SNS | tally.Base64,
		"base64: true\n":                   tally.DefaultEnvelopes | tally.Base64,
		"base64: false\n":                  tally.DefaultEnvelopes,
		"envelopes: none\n":                0,
		"envelopes: []\n":                  0,
		"envelopes: none\nbase64: True\n":  tally.Base64,
		"envelopes: [gzip, zstd, kpl, sns, eventbridge, s3, logs]\n": tally.DefaultEnvelopes,
	} {
		if got := parse(t, text+counters).Envelopes(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for text, part := range map[string]string{
		"envelopes: kpl\n":      "envelopes is not a list",
		"envelopes: {}\n":       "envelopes is not a list",
		"envelopes:\n":          "is empty",
		"envelopes: [KPL]\n":    `there is no envelope "KPL"; there are kpl, gzip, zstd, sns, eventbridge, s3, logs`,
		"envelopes: [none]\n":   `there is no envelope "none"`,
		"envelopes: [[kpl]]\n":  "an envelope is not text",
		"envelopes: [s3, s3]\n": `the envelope "s3" is listed twice`,
		"envelopes: [base64]\n": "write base64: true beside envelopes",
		"base64: 1\n":           "base64 is not true or false; write true or false",
		"base64: \"true\"\n":    "base64 is not true or false",
		"base64: [true]\n":      "base64 is not true or false",
		"envelope: none\n":      `the file has no member "envelope"; there are counters, envelopes, base64`,
	} {
		refuse(t, text+counters, part)
	}
}
