package rules

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBadRecord marks a document that can never be counted under these rules, however often it is delivered. It belongs
// where bad records are kept.
var ErrBadRecord = errors.New("bad record")

// BadRecord says why a document can never be counted. It wraps ErrBadRecord. None of its fields holds anything of the
// document: names and paths are the rule file's.
type BadRecord struct {
	Counter string // rule that refused it; empty where the document as such is unreadable
	Rule    string // file and line of the rule's member, such as "counters.yaml:12"; empty with Counter
	Member  string // of the rule: "match", "id", "time", "keys" or "add"; empty with Counter
	Path    string // member of the document as the rule spells it; empty where it is not about one
	Reason  string // what is wrong, and what to do
}

// Error returns all of it on one line.
func (b *BadRecord) Error() string {
	var text strings.Builder
	text.WriteString("bad record: ")
	if b.Counter != "" {
		fmt.Fprintf(&text, "%s: counter %q: %s: ", b.Rule, b.Counter, b.Member)
	}
	if b.Path != "" {
		fmt.Fprintf(&text, "member %q ", b.Path)
	}
	text.WriteString(b.Reason)
	return text.String()
}

// Unwrap returns ErrBadRecord.
func (b *BadRecord) Unwrap() error { return ErrBadRecord }

// Fault is one mistake in a rule file.
type Fault struct {
	File   string
	Line   int    // from 1
	Column int    // from 1
	What   string // names the counter and its member
	Remedy string // what to write instead
}

// Error returns "file:line:column: what; remedy".
func (f *Fault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; %s", f.File, f.Line, f.Column, f.What, f.Remedy)
}
