package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// progress shows how far the run is: on a terminal in one line that is written over, elsewhere in plain lines, of which
// one stage has at most one every two seconds.
type progress struct {
	out  io.Writer
	now  func() time.Time
	mu   sync.Mutex
	last time.Time

	width int // of the terminal in columns; 0: it is none
	stage string
	open  bool // the cursor stands behind an unfinished line
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, now: time.Now}
	if file, isFile := out.(*os.File); isFile && os.Getenv("TERM") != "dumb" {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil {
			p.width = max(int(size.Col), 40)
		}
	}
	return p
}

// show replaces the line of a stage.
func (p *progress) show(stage, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := line(stage, format, args)
	if p.width > 0 {
		if p.open && stage != p.stage {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintf(p.out, "\r\x1b[K%s", text[:min(len(text), p.width-1)]) // a line that wraps cannot be written over
		p.stage, p.open = stage, true
		return
	}
	if now := p.now(); stage != p.stage || now.Sub(p.last) >= 2*time.Second {
		fmt.Fprintln(p.out, text)
		p.stage, p.last = stage, now
	}
}

// end writes a stage's last word, whole, in the place of its line.
func (p *progress) end(stage, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	fmt.Fprintln(p.out, line(stage, format, args))
	p.stage, p.open = "", false
}

// leave lets whatever is printed next begin on a line of its own.
func (p *progress) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		fmt.Fprintln(p.out)
	}
	p.open = false
}

func line(stage, format string, args []any) string {
	return strings.ReplaceAll(fmt.Sprintf("%-10s ", stage)+fmt.Sprintf(format, args...), "\n", " ")
}
