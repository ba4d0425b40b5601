package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf16"
)

// parkedForm names the document's form in its member "abacus", by which it is told from every other message in a queue.
const parkedForm = "parked-record/1"

// MaxParked bounds a parked record's document, as SQS bounds a message
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html).
const MaxParked = 1 << 20

// Errors of a parked record's document.
var (
	// ErrParkedSize reports a record whose document would exceed MaxParked.
	ErrParkedSize = errors.New("record too large to park")
	// ErrNotParked reports a message that is no parked record's document.
	ErrNotParked = errors.New("not a parked record")
)

// Parked is a record that could not be counted, as it is kept: all that it takes to count it later under the identity
// that it has. DESIGN.md shows its JSON.
type Parked struct {
	Kind     Kind           `json:"kind"`
	Source   string         `json:"source"`                   // ARN of the stream or queue
	Shard    string         `json:"shard,omitempty"`          // Kinesis
	Number   SequenceNumber `json:"sequenceNumber,omitempty"` // Kinesis
	Message  string         `json:"messageId,omitempty"`      // SQS
	Identity string         `json:"identity"`                 // of the record; see DocumentIdentity
	Reason   string         `json:"reason"`                   // free of the record's own content
	Rules    string         `json:"rules,omitempty"`          // digest of the rule file that could not count it
	Arrived  time.Time      `json:"arrived,omitzero"`         // Record.Arrived
	First    time.Time      `json:"firstParked"`              // when it was parked for the first time
	Last     time.Time      `json:"lastParked"`               // when it was parked this time
	Round    int            `json:"round"`                    // replays that it has been through
	Payload  []byte         `json:"payload"`                  // as it came, wrappings and all; base64 in the document
}

// Park returns the document of record i of a batch that is bad for the given reason.
func Park(b *Batch, i int, reason, rules string, now time.Time) Parked {
	r := &b.Records[i]
	p := Parked{Kind: b.Kind, Source: b.Source, Shard: b.Shard, Identity: r.Identity, Reason: reason, Rules: rules,
		Arrived: r.Arrived, First: now, Last: now, Payload: r.Payload}
	if b.Kind == Kinesis {
		p.Number = SequenceNumber(r.ID)
	} else {
		p.Message = r.ID
	}
	return p
}

// MarshalJSON returns the document. It is ASCII within MaxParked, so every queue takes it; a record too large for
// that is an error that wraps ErrParkedSize.
func (p Parked) MarshalJSON() ([]byte, error) {
	type members Parked
	body, err := json.Marshal(struct {
		Form string `json:"abacus"`
		members
	}{parkedForm, members(p)})
	if body = ascii(body); err == nil && len(body) > MaxParked {
		err = fmt.Errorf("%w: its document has %d bytes, a message at most %d", ErrParkedSize, len(body), MaxParked)
	}
	return body, err
}

// ascii spells every character of a JSON document that is not ASCII as an escape: SQS refuses some of them
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html).
func ascii(body []byte) []byte {
	if !bytes.ContainsFunc(body, func(r rune) bool { return r > unicode.MaxASCII }) {
		return body
	}
	spelt := make([]byte, 0, 2*len(body))
	for _, r := range string(body) {
		if r <= unicode.MaxASCII {
			spelt = append(spelt, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			spelt = fmt.Appendf(spelt, `\u%04x`, unit)
		}
	}
	return spelt
}

// ParseParked reads a parked record's document. Any other text is an error that wraps ErrNotParked.
func ParseParked(body []byte) (Parked, error) {
	type members Parked
	var p struct {
		Form string `json:"abacus"`
		members
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return Parked{}, fmt.Errorf("%w: %w", ErrNotParked, err)
	}
	if p.Form != parkedForm || p.Identity == "" || p.Source == "" {
		return Parked{}, fmt.Errorf("%w: it does not say %q, an identity and a source", ErrNotParked, parkedForm)
	}
	return Parked(p.members), nil
}
