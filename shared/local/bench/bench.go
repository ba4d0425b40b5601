// Package bench measures what Abacus costs beside a hand-written reference, in one run on one machine: requests, write
// units, processor time, memory and start-up. It asserts no time; it prints medians, ratios and the targets that the
// project holds itself to.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// Options says what to measure. Zero values mean the default that the field names.
type Options struct {
	Root   string    // folder of the module; default "."
	Out    io.Writer // default: nowhere
	Rows   []string  // patterns of path.Match over the names of rows; default: all
	Rounds int       // measurements of which the median is printed; default 3
}

// ErrMissed reports that a figure did not reach its target.
var ErrMissed = errors.New("a figure missed its target; see the table above")

// figure is one line of the table.
type figure struct {
	name      string
	reference string // what the reference did, with its unit; empty: no reference
	ours      string
	target    string
	met       verdict
}

type verdict string

const (
	met    verdict = "met"
	missed verdict = "MISSED"
	shown  verdict = ""
)

func judge(ok bool) verdict {
	if ok {
		return met
	}
	return missed
}

// row measures one or more figures.
type row struct {
	name    string
	measure func(context.Context, Options) ([]figure, error)
}

var rows = []row{
	{"wire", measureWire},
	{"cpu", measureCPU},
	{"latency", measureLatency},
	{"invoke", measureInvoke},
	{"hot", measureHot},
	{"process", measureProcess},
}

// Run measures and prints. It returns ErrMissed if a figure missed its target.
func Run(ctx context.Context, o Options) error {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Root == "" {
		o.Root = "."
	}
	o.Rounds = max(o.Rounds, 0)
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	var all []figure
	for _, r := range rows {
		wanted := func(pattern string) bool { ok, _ := path.Match(pattern, r.name); return ok }
		if len(o.Rows) > 0 && !slices.ContainsFunc(o.Rows, wanted) {
			continue
		}
		start := time.Now()
		figures, err := r.measure(ctx, o)
		if err != nil {
			return fmt.Errorf("bench %s: %w", r.name, err)
		}
		fmt.Fprintf(o.Out, "measured %s in %.1fs\n", r.name, time.Since(start).Seconds())
		all = append(all, figures...)
	}
	return printTable(o.Out, all)
}

func printTable(out io.Writer, all []figure) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nfigure\treference\tAbacus\ttarget\t")
	var err error
	for _, f := range all {
		if f.met == missed {
			err = ErrMissed
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.name, f.reference, f.ours, f.target, f.met)
	}
	return errors.Join(w.Flush(), err)
}

// median of an odd number of measurements.
func median(n int, measure func() (float64, error)) (float64, error) {
	values := make([]float64, 0, n)
	for range n {
		v, err := measure()
		if err != nil {
			return 0, err
		}
		values = append(values, v)
	}
	slices.Sort(values)
	return values[len(values)/2], nil
}

// meter sums what requests consumed.
type meter struct {
	mu       sync.Mutex
	requests int
	units    float64
}

func (m *meter) note(units float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.units += units
}
