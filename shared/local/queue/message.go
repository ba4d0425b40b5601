package queue

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"abacus/shared/local/wire"
)

// attribute is one message attribute.
type attribute struct {
	DataType    string
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
}

type message struct {
	id         string
	body       string
	attributes map[string]attribute
	trace      string // AWSTraceHeader
	group      string
	dedup      string
	sequence   string // FIFO only
	source     string // ARN of the queue that a redrive policy took it from
	sent       time.Time
	visible    time.Time // from when it may be received
	first      time.Time // when it was first received; zero before
	received   int       // over all queues
	handles    int       // receipt handles given by this queue
	taken      time.Time // when the latest of them was given
	out        bool      // its last handle may still be in use: it has not been seen visible since
	gone       bool
}

func (m *message) inFlight(now time.Time) bool { return m.out && m.visible.After(now) }

// receipt is the handle of the latest receive.
func (m *message) receipt(queue string) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s/%s/%d", queue, m.id, m.handles))
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func hexMD5(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}

// digest is the MD5 of message attributes, "" of none: name, type, one byte for the kind of value, and the value, each
// after its length, in the order of names
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html).
func digest(attributes map[string]attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var out []byte
	put := func(text string) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(text)))
		out = append(out, text...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		put(name)
		put(a.DataType)
		if a.StringValue != nil {
			out = append(out, 1)
			put(*a.StringValue)
		} else {
			out = append(out, 2)
			put(string(a.BinaryValue))
		}
	}
	return hexMD5(out)
}

// checkText reports a rune that no message may hold
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html).
func checkText(text string) error {
	for _, r := range text {
		switch {
		case r == 0x9, r == 0xA, r == 0xD, r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
		default:
			return wire.Errorf("InvalidMessageContents", "Invalid character %#x: no message may hold it; encode the body", r)
		}
	}
	return nil
}

// checkAttributes checks message attributes and returns how many bytes they add to the message.
func checkAttributes(attributes map[string]attribute) (int, error) {
	if len(attributes) > 10 {
		return 0, bad("Number of message attributes [%d] exceeds the allowed maximum [10].", len(attributes))
	}
	size := 0
	for name, a := range attributes {
		kind, _, _ := strings.Cut(a.DataType, ".")
		lower := strings.ToLower(name)
		switch {
		case !attributeName.MatchString(name) || strings.Contains(name, "..") || strings.Trim(name, ".") != name ||
			strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon."):
			return 0, bad("Message attribute name %q is invalid.", name)
		case kind != "String" && kind != "Number" && kind != "Binary":
			return 0, bad("The type of message attribute %q is invalid: use String, Number or Binary.", name)
		case (kind == "Binary") != (a.StringValue == nil), (kind == "Binary") != (len(a.BinaryValue) > 0),
			kind != "Binary" && *a.StringValue == "":
			return 0, bad("Message attribute %q must have a value of its type %s, and it alone.", name, kind)
		}
		size += len(name) + len(a.DataType) + len(a.BinaryValue)
		if a.StringValue != nil {
			if err := checkText(*a.StringValue); err != nil {
				return 0, err
			}
			size += len(*a.StringValue)
		}
	}
	return size, nil
}
