package rules

import (
	"strings"

	"abacus/shared/tally"

	"go.yaml.in/yaml/v4"
)

// envelopes reads which wrappings are opened: the list, or the word none, and whether text in base64 is one of them.
func (c *compiler) envelopes(list, base64 *yaml.Node) {
	c.opens = tally.DefaultEnvelopes
	if list != nil {
		c.opens = c.chosen(list)
	}
	if base64 == nil {
		return
	}
	switch {
	case base64.Kind != yaml.ScalarNode || base64.ShortTag() != "!!bool":
		c.fault(base64, "write true or false", "base64 is not true or false")
	case strings.EqualFold(base64.Value, "true"):
		c.opens |= tally.Base64
	}
}

func (c *compiler) chosen(list *yaml.Node) (opens tally.Envelopes) {
	if list.Kind == yaml.ScalarNode && list.Value == "none" {
		return 0
	}
	for _, n := range c.list(list, "envelopes") {
		name, ok := c.text(n, "an envelope")
		one := tally.EnvelopeNamed(name)
		switch {
		case !ok:
		case one == tally.Base64:
			c.fault(n, "write base64: true beside envelopes", "base64 is not chosen here")
		case one == 0:
			c.fault(n, "there are "+tally.DefaultEnvelopes.String(), "there is no envelope %q", name)
		case opens&one != 0:
			c.fault(n, "keep one of them", "the envelope %q is listed twice", name)
		}
		opens |= one
	}
	return opens
}
