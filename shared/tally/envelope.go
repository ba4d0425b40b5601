package tally

import "strings"

// Envelopes is a set of wrappings that records may arrive in. Package envelope knows how to open them; a rule file may
// say which of them are opened.
type Envelopes uint16

// The wrappings.
const (
	KPL         Envelopes = 1 << iota // aggregated records of the Kinesis Producer Library
	Gzip                              // gzip, by its magic bytes
	Zstd                              // Zstandard, by its magic bytes
	SNS                               // notifications of SNS
	EventBridge                       // events of EventBridge
	S3                                // event notifications of S3
	Logs                              // subscriptions of CloudWatch Logs
	Base64                            // text in base64; nothing in it tells it from other text, so it is opened only if asked for

	DefaultEnvelopes = KPL | Gzip | Zstd | SNS | EventBridge | S3 | Logs
)

var envelopeNames = [...]string{"kpl", "gzip", "zstd", "sns", "eventbridge", "s3", "logs", "base64"}

// EnvelopeNamed returns the wrapping of that name, in lower case, or no wrapping.
func EnvelopeNamed(name string) Envelopes {
	for i, n := range envelopeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// String returns the names of the set, joined by ", "; "none" for the empty set.
func (e Envelopes) String() string {
	var names []string
	for i, name := range envelopeNames {
		if e&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}
