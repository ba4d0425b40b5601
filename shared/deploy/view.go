package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Reference stands for what only a deployment knows: the physical name of a resource (Attribute empty), or one of its
// attributes, such as "Arn".
type Reference struct {
	Resource, Attribute string
}

// View is a template under one setting of its parameters. Looking is lazy: a parameter is asked for only when what is
// looked at depends on it. The first mistake of the template that a look meets is kept, and Err returns it.
type View struct {
	template  *Template
	parameter func(name string) any
	err       error
}

// View returns the template under the given parameters: parameter returns an int or a string, or nil for the default. A
// nil function means all defaults.
func (t *Template) View(parameter func(name string) any) *View {
	return &View{template: t, parameter: parameter}
}

// Err returns the first mistake that At, Function, Exists or OfType met.
func (v *View) Err() error { return v.err }

// At returns what stands at the path, resolved: a map[string]any, []any, string, int, float64, bool or Reference; nil
// where nothing stands. List items are addressed by number.
func (v *View) At(path ...string) any {
	var node any = v.template.root
	for _, key := range path {
		switch at := v.reduce(node).(type) {
		case map[string]any:
			node = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			node = at[i]
		default:
			return nil
		}
	}
	return v.resolve(node)
}

// Keys returns the keys of the map that stands at the path, sorted, without looking further.
func (v *View) Keys(path ...string) []string {
	var node any = v.template.root
	for _, key := range path {
		at, _ := v.reduce(node).(map[string]any)
		node = at[key]
	}
	at, _ := v.reduce(node).(map[string]any)
	return slices.Sorted(maps.Keys(at))
}

// Exists reports whether the resource is in the template and its condition, if any, holds.
func (v *View) Exists(resource string) bool {
	body, isMap := v.resource(resource)
	if !isMap {
		return false
	}
	condition, conditional := body["Condition"].(string)
	return !conditional || v.condition(condition)
}

// OfType returns the names of the resources of a type that exist, sorted.
func (v *View) OfType(kind string) []string {
	section, _ := v.template.root["Resources"].(map[string]any)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(section)) {
		if body, _ := v.resource(name); body["Type"] == kind && v.Exists(name) {
			names = append(names, name)
		}
	}
	return names
}

// Function returns a property of a function as SAM merges it with the Globals: maps by key, lists one after the other,
// anything else by the function's own.
func (v *View) Function(name, property string) any {
	own := v.At("Resources", name, "Properties", property)
	global := v.At("Globals", "Function", property)
	if own == nil {
		return global
	}
	return merge(global, own)
}

// Allowed reports whether the Rules section lets this setting of the parameters be deployed.
func (v *View) Allowed() bool {
	rules, _ := v.At("Rules").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		body, _ := rules[name].(map[string]any)
		if on, conditional := body["RuleCondition"].(bool); conditional && !on {
			continue
		}
		assertions, _ := body["Assertions"].([]any)
		for _, a := range assertions {
			if held, _ := a.(map[string]any)["Assert"].(bool); !held {
				return false
			}
		}
	}
	return true
}

func merge(global, own any) any {
	switch own := own.(type) {
	case map[string]any:
		base, isMap := global.(map[string]any)
		if !isMap {
			return own
		}
		both := maps.Clone(base)
		for key, value := range own {
			both[key] = merge(base[key], value)
		}
		return both
	case []any:
		base, _ := global.([]any)
		return slices.Concat(base, own)
	default:
		return own
	}
}

func (v *View) resource(name string) (map[string]any, bool) {
	section, _ := v.template.root["Resources"].(map[string]any)
	body, isMap := section[name].(map[string]any)
	return body, isMap
}

func (v *View) fail(format string, args ...any) any {
	if v.err == nil {
		v.err = fmt.Errorf("template: "+format, args...)
	}
	return nil
}

// resolve reduces a node and everything under it.
func (v *View) resolve(node any) any {
	switch at := v.reduce(node).(type) {
	case map[string]any:
		m := make(map[string]any, len(at))
		for _, key := range slices.Sorted(maps.Keys(at)) { // in one order, so that parameters are asked for in one order
			if value := v.resolve(at[key]); value != nil {
				m[key] = value
			}
		}
		return m
	case []any:
		list := make([]any, 0, len(at))
		for _, item := range at {
			if item = v.resolve(item); item != nil {
				list = append(list, item)
			}
		}
		return list
	case noValue:
		return nil
	default:
		return at
	}
}
