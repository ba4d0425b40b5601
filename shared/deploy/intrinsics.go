package deploy

import (
	"fmt"
	"regexp"
	"strings"
)

// noValue is what !Ref AWS::NoValue gives: its key or list item is left out.
type noValue struct{}

// reduce replaces a node that is an intrinsic by its value, and leaves any other as it is.
func (v *View) reduce(node any) any {
	m, isMap := node.(map[string]any)
	if !isMap || len(m) != 1 {
		return node
	}
	for name, operand := range m {
		if name == "Ref" || strings.HasPrefix(name, "Fn::") {
			return v.reduce(v.intrinsic(name, operand))
		}
	}
	return node
}

func (v *View) intrinsic(name string, operand any) any {
	switch name {
	case "Ref":
		return v.ref(operand)
	case "Fn::GetAtt":
		return v.getAtt(operand)
	case "Fn::If":
		return v.choose(operand)
	case "Fn::Equals":
		return v.equals(operand)
	case "Fn::Not":
		return v.not(operand)
	case "Fn::FindInMap":
		return v.findInMap(operand)
	case "Fn::Sub":
		return v.sub(operand)
	default:
		return v.fail("%s is not known here; teach this package, or write the value otherwise", name)
	}
}

func (v *View) ref(operand any) any {
	name, _ := operand.(string)
	if name == "AWS::NoValue" {
		return noValue{}
	}
	if declared, _ := v.template.root["Parameters"].(map[string]any); declared[name] != nil {
		if v.parameter != nil {
			if value := v.parameter(name); value != nil {
				return value
			}
		}
		return declared[name].(map[string]any)["Default"]
	}
	if !strings.HasPrefix(name, "AWS::") && !v.Exists(name) {
		return v.fail("!Ref %s names neither a parameter nor a resource that exists under this setting", name)
	}
	return Reference{Resource: name}
}

func (v *View) getAtt(operand any) any {
	pair, _ := operand.([]any)
	if len(pair) != 2 {
		return v.fail("!GetAtt needs a resource and an attribute")
	}
	name, attribute := fmt.Sprint(pair[0]), fmt.Sprint(pair[1])
	if !v.Exists(name) {
		return v.fail("!GetAtt %s.%s names no resource that exists under this setting", name, attribute)
	}
	return Reference{Resource: name, Attribute: attribute}
}

func (v *View) choose(operand any) any {
	parts, _ := operand.([]any)
	if len(parts) != 3 {
		return v.fail("!If needs a condition and two values")
	}
	if v.condition(fmt.Sprint(parts[0])) {
		return parts[1]
	}
	return parts[2]
}

func (v *View) condition(name string) bool {
	section, _ := v.template.root["Conditions"].(map[string]any)
	holds, isBool := v.reduce(section[name]).(bool)
	if !isBool {
		v.fail("condition %s does not stand under Conditions, or is neither true nor false", name)
	}
	return holds
}

func (v *View) equals(operand any) any {
	pair, _ := v.resolve(operand).([]any)
	if len(pair) != 2 {
		return v.fail("!Equals needs two values")
	}
	return fmt.Sprint(pair[0]) == fmt.Sprint(pair[1])
}

func (v *View) not(operand any) any {
	one, _ := operand.([]any)
	if len(one) == 1 {
		if holds, isBool := v.reduce(one[0]).(bool); isBool {
			return !holds
		}
	}
	return v.fail("!Not needs a list of one condition")
}

func (v *View) findInMap(operand any) any {
	keys, _ := v.resolve(operand).([]any)
	if len(keys) != 3 {
		return v.fail("!FindInMap needs a map and two keys")
	}
	value := v.At("Mappings", fmt.Sprint(keys[0]), fmt.Sprint(keys[1]), fmt.Sprint(keys[2]))
	if value == nil {
		return v.fail("!FindInMap %v finds nothing", keys)
	}
	return value
}

var substitution = regexp.MustCompile(`\$\{([A-Za-z0-9:]+)\}`)

func (v *View) sub(operand any) any {
	text, isText := operand.(string)
	if !isText {
		return v.fail("!Sub is known here in its form without a mapping only")
	}
	return substitution.ReplaceAllStringFunc(text, func(hole string) string {
		value := v.ref(substitution.FindStringSubmatch(hole)[1])
		if reference, isReference := value.(Reference); isReference {
			return "<" + reference.Resource + ">"
		}
		return fmt.Sprint(value)
	})
}
