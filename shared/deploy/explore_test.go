package deploy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// samples are values for the parameters whose pattern alone bounds them.
var samples = map[string]string{
	"StreamArn":    "arn:aws:kinesis:eu-central-1:123456789012:stream/orders",
	"StreamKeyArn": "arn:aws:kms:eu-central-1:123456789012:key/0f3f7b1e-7d0e-4a55-9a5d-3d0f5a7f7e11",
	"QueueArn":     "arn:aws:sqs:eu-central-1:123456789012:orders",
	"QueueKeyArn":  "arn:aws:kms:eu-central-1:123456789012:key/0f3f7b1e-7d0e-4a55-9a5d-3d0f5a7f7e11",
}

// choices returns the values of a parameter that stand for all: every allowed one, or its default and both ends.
func choices(t *Template, name string) []any {
	parameter := t.root["Parameters"].(map[string]any)[name].(map[string]any)
	if allowed, isList := parameter["AllowedValues"].([]any); isList {
		return allowed
	}
	if parameter["Type"] == "Number" {
		return []any{parameter["Default"], parameter["MinValue"], parameter["MaxValue"]}
	}
	return []any{parameter["Default"], samples[name]}
}

// setting assigns values to the parameters that a check has read; path holds the choices that led to it.
type setting struct {
	values map[string]any
	path   []int
	widths []int
}

func (s *setting) read(t *Template, name string) any {
	if value, known := s.values[name]; known {
		return value
	}
	all, depth := choices(t, name), len(s.widths)
	if depth == len(s.path) {
		s.path = append(s.path, 0)
	}
	s.widths = append(s.widths, len(all))
	s.values[name] = all[s.path[depth]]
	return s.values[name]
}

// next moves to the next path, depth first; false when all have been walked.
func (s *setting) next() bool {
	s.path = s.path[:len(s.widths)]
	for len(s.path) > 0 {
		last := len(s.path) - 1
		if s.path[last]++; s.path[last] < s.widths[last] {
			break
		}
		s.path = s.path[:last]
	}
	s.values, s.widths = map[string]any{}, nil
	return len(s.path) > 0
}

// everySetting runs check under every setting of the parameters that it reads, and returns what it objects to under
// settings that the template's Rules let through, and the number of settings.
func everySetting(t *Template, check func(*View, *objections)) (found []string, runs int) {
	s := &setting{values: map[string]any{}}
	for more := true; more; more = s.next() {
		runs++
		v := t.View(func(name string) any { return s.read(t, name) })
		var o objections
		check(v, &o)
		if err := v.Err(); err != nil {
			o = append(o, err.Error())
		}
		if len(o) == 0 || !v.Allowed() {
			continue
		}
		for _, objection := range o {
			found = append(found, fmt.Sprintf("%s, where %v", objection, s.values))
		}
	}
	return found, runs
}

// objections collects what is wrong.
type objections []string

func (o *objections) unless(holds bool, format string, args ...any) {
	if !holds {
		*o = append(*o, fmt.Sprintf(format, args...))
	}
}

func theTemplate(t testing.TB) *Template {
	t.Helper()
	template, err := Open("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func TestExplorer_WalksEverySettingOfWhatIsRead(t *testing.T) {
	template, err := Parse([]byte(`
Parameters:
  A: {Type: Number, Default: 1, MinValue: 0, MaxValue: 9}
  B: {Type: String, Default: x, AllowedValues: [x, "y"]}
  C: {Type: Number, Default: 1, AllowedValues: [1, 2]}
Conditions: {Small: !Equals [!Ref A, 0]}
Top: !If [Small, !Ref B, !Ref C]
`))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	_, runs := everySetting(template, func(v *View, _ *objections) { seen[fmt.Sprint(v.At("Top"))]++ })
	want := map[string]int{"x": 1, "y": 1, "1": 2, "2": 2} // A=0 looks at B; A=1 and A=9 look at C
	if runs != 6 || !maps.Equal(seen, want) {
		t.Errorf("%d runs saw %v; want 6 and %v", runs, seen, want)
	}
}

func TestParameters_AreBoundedSoThatTheRulesCanBeProven(t *testing.T) {
	template := theTemplate(t)
	for _, name := range template.Parameters() {
		parameter := template.root["Parameters"].(map[string]any)[name].(map[string]any)
		for i, value := range choices(template, name) {
			if value == nil || value == "" && i > 0 {
				t.Errorf("%s has no bounds, allowed values or sample", name)
			}
			if pattern, _ := parameter["AllowedPattern"].(string); !regexp.MustCompile(pattern).MatchString(fmt.Sprint(value)) {
				t.Errorf("%s does not allow %v", name, value)
			}
		}
		if allowed, isList := parameter["AllowedValues"].([]any); isList && !slices.Contains(allowed, parameter["Default"]) {
			t.Errorf("%s does not allow its own default", name)
		}
		if text, _ := parameter["Description"].(string); strings.TrimSpace(text) == "" {
			t.Errorf("%s has no description", name)
		}
	}
}
