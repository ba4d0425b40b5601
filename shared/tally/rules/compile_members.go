package rules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"abacus/shared/tally"

	"go.yaml.in/yaml/v4"
)

func (c *compiler) matching(out *counter, n *yaml.Node) {
	if n == nil {
		return
	}
	text, ok := c.text(n, "match")
	if !ok {
		return
	}
	m, err := compileMatch(text, func(name string) int { return c.slot([]string{name}) })
	if err != nil {
		c.advise(n, "match: ", err, "write an expression that is true or false, such as origin != nil && distance > 0")
		return
	}
	m.line = n.Line
	out.match = m
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
		remedy = "write one within 64 bits, in plain digits, or the path of a member; " +
			"{path: price, scale: 2} adds decimals exactly"
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
