package local

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"abacus/shared/deploy"
)

// properties are what a template says about one thing, taken out one by one, so that what nobody took shows in the end.
type properties struct {
	owner  string // for messages: "Queue", "Kinesis.Events.Records"
	left   map[string]any
	faults []error
}

func (p *properties) fail(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s: "+format, append([]any{p.owner}, args...)...))
}

func (p *properties) take(name string) any {
	value := p.left[name]
	delete(p.left, name)
	return value
}

// ignore drops properties that have no effect on one machine.
func (p *properties) ignore(names ...string) {
	for _, name := range names {
		delete(p.left, name)
	}
}

// done returns every fault, those of unknown properties included.
func (p *properties) done() error {
	for _, name := range slices.Sorted(maps.Keys(p.left)) {
		p.fail("property %s is not known here; teach package local what it does, or that it does nothing", name)
	}
	return errors.Join(p.faults...)
}

// number takes a whole number; SAM and CloudFormation accept its digits as text too.
func (p *properties) number(name string, fallback int) int {
	switch value := p.take(name).(type) {
	case nil:
		return fallback
	case int:
		return value
	case string:
		if n, err := strconv.Atoi(value); err == nil {
			return n
		}
	}
	p.fail("%s is not a whole number", name)
	return fallback
}

func (p *properties) text(name string) string {
	switch value := p.take(name).(type) {
	case nil:
		return ""
	case string:
		return value
	}
	p.fail("%s is not text", name)
	return ""
}

// flag takes true or false, as a boolean or spelt out.
func (p *properties) flag(name string) bool {
	value := p.take(name)
	if value != nil && value != true && value != false && value != "true" && value != "false" {
		p.fail("%s is neither true nor false", name)
	}
	return value == true || value == "true"
}

// texts takes a list of texts, each of them one of allowed.
func (p *properties) texts(name string, allowed ...string) []string {
	value := p.take(name)
	list, isList := value.([]any)
	if value != nil && !isList {
		p.fail("%s is not a list", name)
	}
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, _ := item.(string)
		if !slices.Contains(allowed, text) {
			p.fail("%s has %v, and is known to have only %s", name, item, strings.Join(allowed, ", "))
		}
		texts = append(texts, text)
	}
	return texts
}

// group takes a property that has properties of its own; the caller ends it with done.
func (p *properties) group(name string) *properties {
	value := p.take(name)
	inner, isMap := value.(map[string]any)
	if value != nil && !isMap {
		p.fail("%s is not a mapping", name)
	}
	return &properties{owner: p.owner + "." + name, left: maps.Clone(inner)}
}

// arn takes the ARN of another resource of the template and returns that resource's name.
func (p *properties) arn(name string) string {
	switch value := p.take(name).(type) {
	case deploy.Reference:
		if value.Attribute == "Arn" {
			return value.Resource
		}
	case string:
		if strings.HasPrefix(value, "arn:") {
			p.fail("%s is outside of the template; one machine has only what the template makes", name)
			return ""
		}
	}
	p.fail("%s is not the ARN of a resource of the template", name)
	return ""
}
