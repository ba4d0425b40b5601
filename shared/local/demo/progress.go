package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// progress shows how far the run is: on a terminal in one line that is written over, elsewhere in plain lines, of which
// one stage has at most one every two seconds.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	mu       sync.Mutex
	stage    string
	last     time.Time
	open     bool // the cursor stands behind an unfinished line
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, now: time.Now}
	if file, isFile := out.(*os.File); isFile {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return p
}

// show replaces the line of a stage.
func (p *progress) show(stage, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%-10s %s", stage, fmt.Sprintf(format, args...))
	if p.terminal {
		if p.open && stage != p.stage {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintf(p.out, "\r\x1b[K%s", strings.ReplaceAll(text, "\n", " "))
		p.stage, p.open = stage, true
		return
	}
	if now := p.now(); stage != p.stage || now.Sub(p.last) >= 2*time.Second {
		fmt.Fprintln(p.out, text)
		p.stage, p.last = stage, now
	}
}

// end finishes the line at hand, showing text as its stage's last word.
func (p *progress) end(stage, format string, args ...any) {
	p.mu.Lock()
	p.last = time.Time{}
	p.mu.Unlock()
	p.show(stage, format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		fmt.Fprintln(p.out)
		p.open = false
	}
	p.stage = ""
}
