package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"abacus/shared/tally"

	"go.yaml.in/yaml/v4"
)

// compiler turns the nodes of a rule file into counters, and notes everything that is wrong on the way.
type compiler struct {
	notes
	root     *member
	slots    int
	counters []counter
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
	members := c.object(n, "the file", "counters")
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

func (c *compiler) matching(out *counter, n *yaml.Node) {
	if n == nil {
		return
	}
	text, ok := c.text(n, "match")
	if !ok {
		return
	}
	program, names, err := compileMatch(text)
	if err != nil {
		c.advise(n, "match: ", err, "write an expression that is true or false, such as origin != nil && distance > 0")
		return
	}
	out.match = &match{program: program, line: n.Line}
	for _, name := range names {
		out.match.reads = append(out.match.reads, variable{name: name, slot: c.slot([]string{name})})
	}
}

func (c *compiler) identity(out *counter, id, scope *yaml.Node) {
	if id == nil {
		if scope != nil {
			c.fault(scope, "add id, or drop scope", "scope has no meaning without id")
		}
		return
	}
	path, slot := c.path(id, "id")
	out.id = &identity{path: path, slot: slot, line: id.Line, scope: out.name}
	if scope == nil {
		return
	}
	text, ok := c.text(scope, "scope")
	if ok && (!name.MatchString(text) || len(text) > maxName) {
		c.fault(scope, "name it as a counter is named", "the scope %q is not a name", text)
	}
	out.id.scope = text
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
			c.fault(&yaml.Node{Line: counter.line, Column: 1}, "give some of them an id and no common scope, or fewer keys or windows",
				"counter %q and those before it share one event and make %d adds of each record, more than %d",
				counter.name, adds[scope], MaxAdds)
		}
	}
}

func (c *compiler) keying(out *counter, rule, n *yaml.Node) {
	if n == nil {
		c.fault(rule, `list what to count by, or keys: ["all"] for one total`, "it has no keys")
		return
	}
	lines := map[string]int{}
	keys := c.list(n, "keys")
	if n.Kind == yaml.SequenceNode && len(keys) == 0 {
		c.fault(n, `list what to count by, or keys: ["all"] for one total`, "it has no keys")
	}
	for _, key := range keys {
		text, ok := c.text(key, "a key")
		if !ok {
			continue
		}
		t, err := parseTemplate(text, c.slot)
		switch first := lines[text]; {
		case err != nil:
			c.fault(key, err.Error(), "the key %q cannot be made", text)
		case first != 0:
			c.fault(key, "keep one of them", "the key %q stands already in line %d", text, first)
		}
		lines[text] = key.Line
		t.line = key.Line
		out.keys = append(out.keys, t)
	}
}

func (c *compiler) adding(out *counter, n *yaml.Node) {
	if n == nil {
		return
	}
	out.add.line = n.Line
	switch {
	case n.Kind == yaml.MappingNode:
		members := c.object(n, "add", "path", "scale")
		if path := members["path"]; path != nil {
			out.add.path, out.add.slot = c.path(path, "add")
		} else {
			c.fault(n, "say which member to add", "add has no path")
		}
		if scale := members["scale"]; scale != nil {
			out.add.scale = int(c.integer(scale, "scale", 0, maxScale))
		}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		if _, err := strconv.ParseFloat(n.Value, 64); err == nil {
			c.fault(n, "drop the quotes for a constant; for a member of that name write {path: \""+n.Value+"\"}",
				"add: %q may be a number or a member", n.Value)
			return
		}
		out.add.path, out.add.slot = c.path(n, "add")
	default:
		if out.add.constant = c.integer(n, "add", -1<<63, 1<<63-1); out.add.constant == 0 && n.Value == "0" {
			c.fault(n, "write 1 to count records", "add: 0 counts nothing")
		}
	}
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func (c *compiler) integer(n *yaml.Node, what string, least, most int64) int64 {
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!str" && decimal.MatchString(n.Value) {
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil && i >= least && i <= most {
			return i
		}
	}
	remedy := fmt.Sprintf("write one from %d to %d, in plain digits", least, most)
	if what == "add" {
		remedy = "write one within 64 bits, in plain digits, or the path of a member; {path: price, scale: 2} adds decimals exactly"
	}
	c.fault(n, remedy, "%s is not such a whole number", what)
	return 0
}

func (c *compiler) windowing(out *counter, n *yaml.Node) {
	if n == nil {
		out.windows = []window{{name: tally.All}}
		return
	}
	entries := c.entries(n, "windows")
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		c.fault(n, "write windows: {all: forever}, or leave it out", "windows is empty")
	}
	for _, e := range entries {
		parsed, err := tally.ParseWindow(e.name.Value)
		if err != nil {
			c.advise(e.name, "", err, "")
			continue
		}
		w := window{Window: parsed, name: e.name.Value}
		out.timed = out.timed || !w.IsAll()
		w.retention = c.retention(e)
		if w.IsAll() && w.retention != 0 {
			c.fault(e.value, "write all: forever", "the window all has no end to keep it %s after", e.value.Value)
		}
		out.windows = append(out.windows, w)
	}
}

func (c *compiler) retention(e entry) time.Duration {
	const remedy = "write how long to keep a bucket after its end, such as 14d, or forever"
	what := fmt.Sprintf("the retention of the window %s", e.name.Value)
	switch {
	case e.value.Kind != yaml.ScalarNode || e.value.ShortTag() != "!!str":
		c.fault(e.value, remedy, "%s is not a duration", what)
		return 0
	case e.value.Value == "forever":
		return 0
	}
	return c.duration(e.value, e.value.Value, what, remedy)
}

func (c *compiler) duration(n *yaml.Node, text, what, remedy string) time.Duration {
	d, err := tally.ParseDuration(text)
	if err != nil {
		wrong, _, _ := strings.Cut(err.Error(), "; ") // the remedy here knows more
		c.fault(n, remedy, "%s: %s", what, wrong)
	}
	return d
}

// advise notes an error of the form "what is wrong; what to do". otherwise is what to do where it does not say.
func (c *compiler) advise(n *yaml.Node, before string, err error, otherwise string) {
	what, remedy, found := strings.Cut(err.Error(), "; ")
	if !found {
		remedy = otherwise
	}
	c.fault(n, remedy, "%s%s", before, what)
}
