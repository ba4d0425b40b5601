package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"abacus/shared/tally"

	"go.yaml.in/yaml/v4"
)

// compiler turns the nodes of a rule file into counters, and notes everything that is wrong on the way.
type compiler struct {
	notes
	root     *member
	slots    int
	counters []counter
	opens    tally.Envelopes
}

// name is what a counter and a scope may be called: no '|', which divides them from keys in the store, and nothing that
// a shell or a URL would change.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (c *compiler) syntax(err error) {
	at, what := &yaml.Node{}, "the file is not one YAML document"
	if load, ok := errors.AsType[*yaml.LoadError](err); ok && load.Mark.Line > 0 {
		at.Line, at.Column = load.Mark.Line, load.Mark.Column
		what = "this is not YAML: " + load.Message
	}
	c.fault(at, "write one document with the member counters", "%s", what)
}

func (c *compiler) document(n *yaml.Node) {
	members := c.object(n, "the file", "counters", "envelopes", "base64")
	c.envelopes(members["envelopes"], members["base64"])
	list, ok := members["counters"]
	if !ok {
		if n.Kind == yaml.MappingNode {
			c.fault(n, "list the rules under counters", "the file has no counters")
		}
		return
	}
	rules := c.list(list, "counters")
	switch {
	case list.Kind == yaml.SequenceNode && len(rules) == 0:
		c.fault(list, "list at least one rule", "the file has no counters")
	case len(rules) > maxCounters:
		c.fault(list, "split them over several deployments", "the file has more than %d counters", maxCounters)
		return
	}
	lines := map[string]int{}
	for _, rule := range rules {
		counter := c.counter(rule)
		if first := lines[counter.name]; first != 0 && counter.name != "" {
			c.fault(rule, "give each counter a name of its own", "the name %q is taken in line %d", counter.name, first)
		}
		lines[counter.name] = rule.Line
		c.counters = append(c.counters, counter)
	}
	c.checkShared()
}

func (c *compiler) counter(n *yaml.Node) counter {
	out := counter{line: n.Line, add: amount{constant: 1, line: n.Line}}
	defer func() { c.where = "" }()
	c.where = fmt.Sprintf("counter in line %d: ", n.Line)
	if n.Kind == yaml.MappingNode {
		for pair := range slices.Chunk(n.Content, 2) {
			if pair[0].Value == "name" && name.MatchString(follow(pair[1]).Value) {
				c.where = fmt.Sprintf("counter %q: ", follow(pair[1]).Value)
			}
		}
	}
	members := c.object(n, "a counter", "name", "match", "id", "scope", "time", "max_ahead", "keys", "add", "windows")
	if n.Kind != yaml.MappingNode {
		return out
	}
	out.name = c.named(n, members["name"])
	c.matching(&out, members["match"])
	c.identity(&out, members["id"], members["scope"])
	c.timing(&out, members["time"], members["max_ahead"])
	c.keying(&out, n, members["keys"])
	c.adding(&out, members["add"])
	c.windowing(&out, members["windows"])
	if product := len(out.keys) * len(out.windows); product > MaxAdds {
		c.fault(n, fmt.Sprintf("leave at most %d, or divide them among counters with an id of their own", MaxAdds),
			"%d keys in %d windows are %d adds for each record", len(out.keys), len(out.windows), product)
	}
	return out
}

func (c *compiler) named(rule, n *yaml.Node) string {
	const remedy = "use letters, digits, '.', '_' and '-', starting with a letter or digit"
	if n == nil {
		c.fault(rule, "give it a name", "it has no name")
		return ""
	}
	text, ok := c.text(n, "name")
	switch {
	case !ok:
	case !name.MatchString(text):
		c.fault(n, remedy, "the name %q has other characters", text)
	case len(text) > maxName:
		c.fault(n, fmt.Sprintf("use at most %d", maxName), "the name has %d bytes", len(text))
	}
	return text
}

// slot returns where the value of the member that names lead to is kept.
func (c *compiler) slot(names []string) int {
	slot := c.root.reach(names, c.slots)
	c.slots = max(c.slots, slot+1)
	return slot
}

// path reads the path of one value.
func (c *compiler) path(n *yaml.Node, what string) (text string, slot int) {
	text, ok := c.text(n, what)
	if !ok {
		return "", 0
	}
	names, list, err := parsePath(text)
	switch {
	case err != nil:
		c.fault(n, err.Error(), "%s: %q is not a path", what, text)
		return "", 0
	case list:
		c.fault(n, `name one value; lists belong in keys, and \[] is a name that ends so`, "%s: %q is a list", what, text)
		return "", 0
	}
	return text, c.slot(names)
}

// checkShared refuses counters that count every record together under one identity, with more adds than one event may
// have: every record would be bad.
func (c *compiler) checkShared() {
	adds := map[string]int{}
	for _, counter := range c.counters {
		if counter.match != nil {
			continue
		}
		scope := ""
		if counter.id != nil {
			scope = counter.id.scope
		}
		before := adds[scope]
		adds[scope] += len(counter.keys) * len(counter.windows)
		if before <= MaxAdds && adds[scope] > MaxAdds && before > 0 {
			c.fault(&yaml.Node{Line: counter.line}, "give some of them an id and no common scope, or fewer keys or windows",
				"counter %q and those before it share one event and make %d adds of each record, more than %d",
				counter.name, adds[scope], MaxAdds)
		}
	}
}

// advise notes an error of the form "what is wrong; what to do". otherwise is what to do where it does not say.
func (c *compiler) advise(n *yaml.Node, before string, err error, otherwise string) {
	what, remedy, found := strings.Cut(err.Error(), "; ")
	if !found {
		remedy = otherwise
	}
	c.fault(n, remedy, "%s%s", before, what)
}
