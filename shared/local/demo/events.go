package demo

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxEvent bounds one event, as SQS bounds a message.
const maxEvent = 1 << 20

// load reads newline-delimited JSON, packed with gzip or not. Empty lines are left out; what a line holds is not looked
// at.
func load(path string) ([][]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	defer file.Close()
	packed := bufio.NewReader(file)
	var text io.Reader = packed
	if magic, _ := packed.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if text, err = gzip.NewReader(packed); err != nil {
			return nil, fmt.Errorf("read events: %s: %w", path, err)
		}
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent+1)
	var events [][]byte
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			events = append(events, bytes.Clone(line))
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("read events: %s: an event after line %d exceeds %d bytes, which SQS does not take",
			path, len(events), maxEvent)
	case err != nil:
		return nil, fmt.Errorf("read events: %s: %w", path, err)
	case len(events) == 0:
		return nil, fmt.Errorf("read events: %s holds none; write one JSON document a line", path)
	}
	return events, nil
}
