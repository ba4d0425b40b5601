package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

var (
	logsNames  = []string{"messageType", "owner", "logGroup", "logStream", "subscriptionFilters", "logEvents"}
	eventNames = []string{"id", "timestamp", "message"}
)

// logEvents opens an object that is a message of a CloudWatch Logs subscription: messageType is DATA_MESSAGE or
// CONTROL_MESSAGE, the next three are texts, the last two are lists
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html). Each line of the log that is one
// JSON object is a document; any other line is skipped, and so is a control message.
func (w *walk) logEvents(object []byte) (bool, error) {
	var v [6][]byte
	if !members(object, logsNames, v[:]) || !isText(v[1]) || !isText(v[2]) || !isText(v[3]) || !isList(v[4]) ||
		!isList(v[5]) {
		return false, nil
	}
	switch {
	case says(v[0], "CONTROL_MESSAGE"):
		w.skip()
		return true, nil
	case !says(v[0], "DATA_MESSAGE"):
		return false, nil
	}
	var err error
	log := logName(v[1], v[2], v[3])
	s := scanner{src: v[5]}
	s.array(func() {
		if event := s.skip(); err == nil {
			err = w.logEvent(log, event)
		}
	})
	return true, err
}

func isList(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// logName names a log stream, by JSON texts, in a form that fits an identity.
func logName(owner, group, stream []byte) string {
	sum := sha256.New()
	for _, value := range [...][]byte{owner, group, stream} {
		text, _ := said(value)
		fmt.Fprintf(sum, "%d:%s", len(text), text)
	}
	return "log:" + hex.EncodeToString(sum.Sum(nil)[:16])
}

func (w *walk) logEvent(log string, event []byte) error {
	var v [3][]byte
	if len(event) == 0 || event[0] != '{' || !members(event, eventNames, v[:]) || !isText(v[2]) {
		return fmt.Errorf("%w: it has a log event without a message; send it as CloudWatch Logs does", ErrPayload)
	}
	line, _ := said(v[2])
	document := Document{JSON: bytes.TrimSpace(line), Arrived: arrival(v[1])}
	if !isObject(document.JSON) {
		w.skip()
		return nil
	}
	if id, _ := said(v[0]); isLogID(id) {
		document.origin = log + separator + string(id)
	}
	return w.emit(document)
}

// isObject reports whether text is one JSON object and nothing else.
func isObject(text []byte) bool {
	s := scanner{src: text}
	if s.peek() != '{' {
		return false
	}
	s.skip()
	return s.err == nil && s.at == len(text)
}

// isLogID reports whether id is one that CloudWatch Logs gives: 56 digits, as far as is known. Whatever is shorter than
// half of that may be somebody's own count that begins anew, and identifies nothing.
func isLogID(id []byte) bool { return allDigits(id) && len(id) >= 28 && len(id) <= 128 }
