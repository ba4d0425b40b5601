package rules

import (
	"errors"
	"fmt"
	"strings"
)

// parsePath reads a path: the names of members from the top of the document down, joined by dots. A backslash takes the
// character after it literally, and is the only way to a name with a brace or bracket. A path that ends in [] means each
// element of a list.
func parsePath(text string) (names []string, list bool, err error) {
	if len(text) > maxPath {
		return nil, false, fmt.Errorf("a path has at most %d bytes", maxPath)
	}
	if rest, found := strings.CutSuffix(text, "[]"); found && !strings.HasSuffix(rest, `\`) {
		text, list = rest, true
	}
	var name strings.Builder
	literal := false // the character is escaped
	for _, r := range text + "." {
		switch {
		case !literal && strings.ContainsRune("{}[", r):
			return nil, false, errBrackets
		case literal || r != '.' && r != '\\':
			name.WriteRune(r)
			literal = false
		case r == '\\':
			literal = true
		default:
			names = append(names, name.String())
			name.Reset()
		}
	}
	if literal || name.Len() > 0 {
		return nil, false, errors.New(`a backslash takes the character after it literally; write \\ for one backslash`)
	}
	if len(names) > maxDepth {
		return nil, false, fmt.Errorf("a path has at most %d names", maxDepth)
	}
	return names, list, checkNames(names)
}

// errBrackets catches what looks like a template, or a list, where a plain path belongs: as a name it would be absent
// from every record.
var errBrackets = errors.New("a path is plain names, such as order.price, without braces or brackets; " +
	`for a name that really has one, write a backslash before it`)

func checkNames(names []string) error {
	for _, name := range names {
		if name == "" {
			return errors.New("a path is names joined by dots, such as order.price; none of them is empty")
		}
		if strings.TrimSpace(name) != name {
			return errors.New("names in a path have no blanks around them; drop the blanks")
		}
	}
	return nil
}

// member is one node in the tree of document members that the rules read.
type member struct {
	slot     int // of its value; -1 if only members below it are read
	children map[string]*member
	below    []int // slots of all members under it
}

func newMember() *member { return &member{slot: -1, children: map[string]*member{}} }

// reach returns the slot of the member that names lead to, which is next if the tree did not have it.
func (m *member) reach(names []string, next int) int {
	parents := make([]*member, 0, len(names))
	for _, name := range names {
		parents = append(parents, m)
		child := m.children[name]
		if child == nil {
			child = newMember()
			m.children[name] = child
		}
		m = child
	}
	if m.slot < 0 {
		m.slot = next
		for _, parent := range parents {
			parent.below = append(parent.below, next)
		}
	}
	return m.slot
}
