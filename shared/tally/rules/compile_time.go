package rules

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"
)

func (c *compiler) timing(out *counter, n, ahead *yaml.Node) {
	if n == nil {
		if ahead != nil {
			c.fault(ahead, "add time, or drop max_ahead", "max_ahead has no meaning without time: arrival times are not checked")
		}
		return
	}
	out.clock = &clock{line: n.Line, zone: time.UTC, ahead: defaultAhead}
	if n.Kind == yaml.MappingNode {
		c.timeMembers(out.clock, n)
	} else {
		out.clock.path, out.clock.slot = c.path(n, "time")
	}
	if ahead == nil {
		return
	}
	if text, ok := c.text(ahead, "max_ahead"); ok {
		out.clock.ahead = c.duration(ahead, text, "max_ahead", "write how far ahead of now a time may lie, such as 24h")
	}
}

func (c *compiler) timeMembers(out *clock, n *yaml.Node) {
	members := c.object(n, "time", "path", "layout", "zone", "unit")
	if path := members["path"]; path != nil {
		out.path, out.slot = c.path(path, "time")
	} else {
		c.fault(n, "say which member holds the time", "time has no path")
	}
	if unit := members["unit"]; unit != nil {
		out.unit, _ = c.text(unit, "unit")
		if out.unit != "s" && out.unit != "ms" {
			c.fault(unit, "write unit: s or unit: ms", "the unit %q is neither seconds nor milliseconds", out.unit)
		}
		if members["layout"] != nil {
			c.fault(unit, "keep layout for text, or unit for numbers", "time has both unit and layout")
		}
	}
	if zone := members["zone"]; zone != nil {
		c.zone(out, zone)
		if members["layout"] == nil {
			c.fault(zone, "add layout, or drop zone", "zone has no meaning without layout")
		}
	}
	if layout := members["layout"]; layout != nil {
		text, ok := c.text(layout, "layout")
		if !ok {
			return
		}
		if err := checkLayout(text, out.zone); err != nil {
			c.advise(layout, fmt.Sprintf("layout %q: ", text), err, "")
		}
		out.layout = text
	}
}

func (c *compiler) zone(out *clock, n *yaml.Node) {
	text, ok := c.text(n, "zone")
	if !ok {
		return
	}
	zone, err := time.LoadLocation(text)
	if err != nil || text == "Local" || text == "" {
		c.fault(n, "write UTC, or a name such as Europe/Berlin", "the zone %q is not known everywhere", text)
		return
	}
	out.zone = zone
}
