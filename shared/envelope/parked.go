package envelope

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode"
	"unicode/utf16"
)

// parkedForm names the document's form in its member "abacus", by which it is told from every other message in a queue.
const parkedForm = "parked-record/1"

// noticeForm names the form of a notice of a record that was too large to park.
const noticeForm = "oversized-record/1"

// maxBeginning bounds how much of an oversized payload a notice has.
const maxBeginning = 64 << 10

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
	Payload  []byte         `json:"payload"`                  // as it came, wrappings and all; in base64 in the document
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

// parkedDocument is a Parked as its document has it.
type parkedDocument struct {
	Form string `json:"abacus"`
	parkedMembers
	Encoding string `json:"encoding,omitempty"` // of the payload, under base64: gzip, or none
	Size     int    `json:"size,omitempty"`     // of the whole payload, where the document has its beginning alone
	SHA256   string `json:"sha256,omitempty"`   // of the whole payload, likewise
}

type parkedMembers Parked

// MarshalJSON returns the document. It is ASCII within MaxParked, so every queue takes it; the payload is gzipped where
// it would not fit otherwise. A record too large even so is an error that wraps ErrParkedSize.
func (p Parked) MarshalJSON() ([]byte, error) {
	m := parkedDocument{Form: parkedForm, parkedMembers: parkedMembers(p)}
	if base64.StdEncoding.EncodedLen(len(p.Payload)) <= MaxParked {
		if body, err := m.document(); !errors.Is(err, ErrParkedSize) {
			return body, err
		}
	}
	m.Payload, m.Encoding = deflated(p.Payload), "gzip"
	return m.document()
}

// Notice returns a document for people that stands for a record too large to park, within the same bounds: it has the
// beginning of the payload, and the size and SHA-256 of all of it. ParseParked does not take it, for nothing must be
// counted by it; the record itself must not be acknowledged.
func (p Parked) Notice() ([]byte, error) {
	sum := sha256.Sum256(p.Payload)
	m := parkedDocument{Form: noticeForm, parkedMembers: parkedMembers(p), Size: len(p.Payload),
		SHA256: hex.EncodeToString(sum[:])}
	m.Payload = p.Payload[:min(len(p.Payload), maxBeginning)]
	return m.document()
}

func (m *parkedDocument) document() ([]byte, error) {
	body, err := json.Marshal(m)
	if body = ascii(body); err == nil && len(body) > MaxParked {
		err = fmt.Errorf("%w: its document has %d bytes, a message at most %d", ErrParkedSize, len(body), MaxParked)
	}
	return body, err
}

func deflated(payload []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(payload) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func inflated(payload []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, MaxUnpacked+1))
	if err == nil && len(out) > MaxUnpacked {
		err = fmt.Errorf("its payload unpacks to more than %d bytes", MaxUnpacked)
	}
	return out, err
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
	var m parkedDocument
	if err := json.Unmarshal(body, &m); err != nil {
		return Parked{}, fmt.Errorf("%w: %w", ErrNotParked, err)
	}
	if m.Form != parkedForm || m.Identity == "" || m.Source == "" {
		return Parked{}, fmt.Errorf("%w: it does not say %q, an identity and a source", ErrNotParked, parkedForm)
	}
	switch m.Encoding {
	case "":
	case "gzip":
		var err error
		if m.Payload, err = inflated(m.Payload); err != nil {
			return Parked{}, fmt.Errorf("%w: %w", ErrNotParked, err)
		}
	default:
		return Parked{}, fmt.Errorf("%w: its payload is in an encoding that is not known here", ErrNotParked)
	}
	return Parked(m.parkedMembers), nil
}
