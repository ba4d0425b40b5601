package envelope

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// isBase64 reports whether payload, white space around it aside, is text in the standard base64 alphabet, with padding
// to a multiple of four. JSON objects and arrays never are.
func isBase64(payload []byte) bool {
	text := bytes.TrimSpace(payload)
	if len(text) == 0 || len(text)%4 != 0 {
		return false
	}
	digits := bytes.TrimRight(text, "=")
	for _, c := range digits {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '+' && c != '/' {
			return false
		}
	}
	return len(text)-len(digits) <= 2
}

func (w *walk) base64(payload []byte) error {
	text := bytes.TrimSpace(payload)
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(out, text)
	if err != nil {
		return fmt.Errorf("%w: base64: %w; send it whole", ErrPayload, err)
	}
	return w.inner(out[:n])
}
