package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"abacus/shared/tally"

	"go.yaml.in/yaml/v4"
)

// Set is a compiled rule file. It is immutable and safe for concurrent use.
type Set struct {
	file     string
	digest   string
	counters []counter
	root     *member
	slots    int
	opens    tally.Envelopes
	pool     sync.Pool // of *work
}

// counter is one compiled rule.
type counter struct {
	name    string
	line    int
	match   *match    // nil: every document
	id      *identity // nil: the source's own
	clock   *clock    // nil: arrival time
	keys    []template
	add     amount
	windows []window
	timed   bool // some window has buckets
}

type identity struct {
	path  string
	slot  int
	line  int
	scope string
}

// amount is the delta: a constant, or a member.
type amount struct {
	constant int64
	path     string // empty: constant
	slot     int
	line     int
	scale    int
}

type window struct {
	tally.Window
	name      string
	retention time.Duration // 0: forever
}

// Counter describes one rule for those who read counts.
type Counter struct {
	Name    string
	Line    int      // in the rule file
	Keys    []string // templates, as the rule file has them
	Windows []Window
}

// Window is one window of a counter.
type Window struct {
	tally.Window
	Retention time.Duration // how long a bucket is kept after its end; 0: forever
}

// Load reads and compiles the rule file at path. See Parse for its errors.
func Load(path string) (*Set, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load rules: %w; say where the rule file is", err)
	}
	if info.Size() > maxFile {
		return nil, errors.Join(oversize(filepath.Base(path)))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load rules: %w; say where the rule file is", err)
	}
	return Parse(filepath.Base(path), text)
}

// Parse compiles the text of a rule file; name stands for it in messages. The error names every fault of the file at
// once, in the order of its lines: it is a join of *Fault.
func Parse(name string, text []byte) (*Set, error) {
	c := &compiler{notes: notes{file: name}, root: newMember()}
	if len(text) > maxFile {
		return nil, errors.Join(oversize(name))
	}
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		c.syntax(err)
	} else if len(document.Content) == 1 {
		c.document(follow(document.Content[0]))
	}
	if len(c.faults) > 0 {
		return nil, errors.Join(c.errors()...)
	}
	sum := sha256.Sum256(text)
	s := &Set{file: name, digest: hex.EncodeToString(sum[:6]), counters: c.counters, root: c.root, slots: c.slots,
		opens: c.opens}
	s.pool.New = func() any { return newWork(s) }
	return s, nil
}

func oversize(name string) *Fault {
	return &Fault{File: name, Line: 1, Column: 1, What: fmt.Sprintf("the file has more than %d bytes", maxFile),
		Remedy: "split it over several deployments"}
}

// Digest returns the start of the SHA-256 of the file's bytes, 12 hexadecimal digits, to tell in a log which rules are
// at work.
func (s *Set) Digest() string { return s.digest }

// Envelopes returns the wrappings that are opened before these rules see what records hold.
func (s *Set) Envelopes() tally.Envelopes { return s.opens }

// Counters describes the rules, in the order of the file.
func (s *Set) Counters() []Counter {
	all := make([]Counter, len(s.counters))
	for i, c := range s.counters {
		all[i] = Counter{Name: c.name, Line: c.line}
		for _, key := range c.keys {
			all[i].Keys = append(all[i].Keys, key.text)
		}
		for _, w := range c.windows {
			all[i].Windows = append(all[i].Windows, Window{Window: w.Window, Retention: w.retention})
		}
	}
	return all
}
