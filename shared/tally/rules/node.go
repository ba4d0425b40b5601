package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// notes collects what is wrong with a rule file.
type notes struct {
	file   string
	where  string // the counter at hand, before each fault
	faults []*Fault
}

// fault notes one mistake at node n.
func (f *notes) fault(n *yaml.Node, remedy, what string, args ...any) {
	f.faults = append(f.faults, &Fault{
		File: f.file, Line: max(n.Line, 1), Column: max(n.Column, 1), What: f.where + fmt.Sprintf(what,
			args...), Remedy: remedy,
	})
}

// errors returns the faults in the order of the file.
func (f *notes) errors() []error {
	slices.SortStableFunc(f.faults, func(a, b *Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all := make([]error, len(f.faults))
	for i, fault := range f.faults {
		all[i] = fault
	}
	return all
}

// entry is one member of a mapping.
type entry struct{ name, value *yaml.Node }

// entries returns the members of the mapping n in the order of the file, without those that are no text, repeated or
// empty, which it notes. what names the mapping.
func (f *notes) entries(n *yaml.Node, what string) []entry {
	if n.Kind != yaml.MappingNode {
		f.fault(n, "write it as name: value pairs", "%s is not a mapping", what)
		return nil
	}
	lines := map[string]int{}
	var found []entry
	for pair := range slices.Chunk(n.Content, 2) {
		name, value := pair[0], follow(pair[1])
		switch {
		case name.Kind != yaml.ScalarNode || name.ShortTag() != "!!str":
			f.fault(name, "write its name as text", "%s has a member whose name is not text", what)
		case lines[name.Value] != 0:
			f.fault(name, "keep one of them", "%s has the member %q already in line %d", what, name.Value, lines[name.Value])
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null":
			f.fault(name, "give it a value, or leave it out", "member %q of %s is empty", name.Value, what)
		default:
			found = append(found, entry{name, value})
		}
		if name.Kind == yaml.ScalarNode && lines[name.Value] == 0 {
			lines[name.Value] = name.Line
		}
	}
	return found
}

// object returns the members of the mapping n by name, and notes those that are not among known.
func (f *notes) object(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	members := map[string]*yaml.Node{}
	for _, e := range f.entries(n, what) {
		if !slices.Contains(known, e.name.Value) {
			f.fault(e.name, "there are "+strings.Join(known, ", "), "%s has no member %q", what, e.name.Value)
			continue
		}
		members[e.name.Value] = e.value
	}
	return members
}

// list returns the elements of the sequence n.
func (f *notes) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		f.fault(n, "write it as a list, in brackets or with a dash before each element", "%s is not a list", what)
		return nil
	}
	elements := make([]*yaml.Node, len(n.Content))
	for i, element := range n.Content {
		elements[i] = follow(element)
	}
	return elements
}

// text returns the text of n, which what names.
func (f *notes) text(n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		remedy := "write one text"
		if n.Kind == yaml.ScalarNode {
			remedy = "put it in quotes if text is meant"
		}
		f.fault(n, remedy, "%s is not text", what)
		return "", false
	}
	return n.Value, true
}

// follow returns what an alias stands for. Nothing here descends further than a rule file can be deep, so that an alias
// of itself does no harm.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
