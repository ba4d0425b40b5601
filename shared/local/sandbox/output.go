package sandbox

import (
	"bytes"
	"time"
)

// MaxLine is the longest line of output that stays whole, in bytes: CloudWatch's limit of one log event. A longer one
// is handed on in pieces.
const MaxLine = 256 << 10

// Line is one line of a process's output, without its newline.
type Line struct {
	Function    string
	Environment int    // counts from 1
	Stream      string // "stdout" or "stderr"
	Text        string
}

// Report tells what one invocation cost, as Lambda's REPORT line does.
type Report struct {
	Function    string
	Environment int
	RequestID   string
	Init        time.Duration // from the start of the process to its first request for an event; 0 if it was warm
	Duration    time.Duration // from handing out the event to the answer
	Err         error         // nil, or a *FunctionError
}

// lineWriter cuts what is written into lines. It belongs to the one goroutine that copies a process's output.
type lineWriter struct {
	line Line
	sink func(Line)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		w.emit(append(w.rest, p[:end]...))
		w.rest, p = w.rest[:0], p[end+1:]
	}
	w.rest = append(w.rest, p...)
	for len(w.rest) > MaxLine {
		w.emit(w.rest[:MaxLine])
		w.rest = append(w.rest[:0], w.rest[MaxLine:]...)
	}
	return n, nil
}

// flush hands on a last line that has no newline.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.emit(w.rest)
		w.rest = nil
	}
}

func (w *lineWriter) emit(text []byte) {
	for len(text) > MaxLine {
		w.emit(text[:MaxLine])
		text = text[MaxLine:]
	}
	if w.sink != nil {
		line := w.line
		line.Text = string(text)
		w.sink(line)
	}
}
