package demo

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"abacus/shared/local/sandbox"
)

// witness remembers what functions last said, and what their invocations came to.
type witness struct {
	mu          sync.Mutex
	lines       []string
	invocations int
	starts      int
	failed      int
	init        time.Duration // of all starts together
}

// kept is how many lines are worth showing when something is stuck.
const kept = 12

func (w *witness) line(l sandbox.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == kept {
		w.lines = append(w.lines[:0], w.lines[1:]...)
	}
	text := l.Text
	if len(text) > 500 {
		text = text[:500] + "..."
	}
	w.lines = append(w.lines, l.Function+": "+text)
}

func (w *witness) report(r sandbox.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.invocations++
	if r.Init > 0 {
		w.starts++
		w.init += r.Init
	}
	if r.Err != nil {
		w.failed++
	}
}

// last returns the last lines, indented, or says that there were none.
func (w *witness) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == 0 {
		return "  (the functions wrote nothing)"
	}
	return "  " + strings.Join(w.lines, "\n  ")
}

// summary counts invocations for people.
func (w *witness) summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%s invocations", thousands(w.invocations))
	if w.starts > 0 {
		each := w.init / time.Duration(w.starts)
		text += fmt.Sprintf(" in %d processes (%d ms to start one)", w.starts, each.Milliseconds())
	}
	if w.failed > 0 {
		text += fmt.Sprintf(", %s failed", thousands(w.failed))
	}
	return text
}
