package deploy

import (
	"reflect"
	"strings"
	"testing"
)

const small = `
Parameters:
  Count: {Type: Number, Default: 2}
Mappings: {Sizes: {"2": {Small: 7}}}
Conditions:
  Two: !Equals [!Ref Count, 2]
  NotTwo: !Not [!Equals [!Ref Count, 2]]
Globals: {Function: {Timeout: 3, Layers: [a], Environment: {Variables: {A: 1, B: 2}}}}
Resources:
  F: {Type: Function, Properties: {Timeout: 4, Layers: [b], Environment: {Variables: {B: 3}}}}
  Sometimes: {Type: Function, Condition: NotTwo}
`

func TestView_ResolvesWhatTheTemplateUses(t *testing.T) {
	for text, want := range map[string]any{
		`!Ref Count`:                                   2,
		`!Ref F`:                                       Reference{Resource: "F"},
		`!GetAtt F.Arn`:                                Reference{"F", "Arn"},
		`!GetAtt F.Outputs.Url`:                        Reference{"F", "Outputs.Url"},
		`{"Fn::GetAtt": [F, Arn]}`:                     Reference{"F", "Arn"},
		`!If [Two, yes it is, no]`:                     "yes it is",
		`!If [NotTwo, 1, !Ref Count]`:                  2,
		`!FindInMap [Sizes, !Ref Count, Small]`:        7,
		`!Sub "${Count} of ${F} in ${AWS::StackName}"`: "2 of <F> in <AWS::StackName>",
		`{a: !Ref AWS::NoValue, b: [!Ref AWS::NoValue, 1.5, true]}`: map[string]any{"b": []any{1.5, true}},
	} {
		template, err := Parse([]byte(small + "X: " + text))
		if err != nil {
			t.Fatal(err)
		}
		v := template.View(nil)
		if got := v.At("X"); !reflect.DeepEqual(got, want) || v.Err() != nil {
			t.Errorf("%s is %#v, %v; want %#v", text, got, v.Err(), want)
		}
	}
}

func TestView_RefusesWhatItDoesNotKnow(t *testing.T) {
	for text, want := range map[string]string{
		`!Select [0, [a]]`:                    "Fn::Select",
		`!Ref Nobody`:                         "Nobody",
		`!Ref Sometimes`:                      "Sometimes",
		`!GetAtt Nobody.Arn`:                  "Nobody",
		`!GetAtt Sometimes.Arn`:               "Sometimes",
		`!GetAtt [F]`:                         "GetAtt",
		`!If [Nobody, 1, 2]`:                  "Nobody",
		`!If [Two, 1]`:                        "!If",
		`!Equals [1]`:                         "!Equals",
		`!Not [1]`:                            "!Not",
		`!FindInMap [Sizes, !Ref Count, Big]`: "finds nothing",
		`!FindInMap [Sizes]`:                  "!FindInMap",
		`!Sub ["${A}", {A: 1}]`:               "!Sub",
	} {
		template, err := Parse([]byte(small + "X: " + text))
		if err != nil {
			t.Fatal(err)
		}
		v := template.View(nil)
		if got := v.At("X"); v.Err() == nil || !strings.Contains(v.Err().Error(), want) {
			t.Errorf("%s is %#v, error %v; want an error that names %q", text, got, v.Err(), want)
		}
	}
}

func TestView_MergesGlobalsAsSAMDoes(t *testing.T) {
	template, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	v := template.View(func(string) any { return 3 })
	want := map[string]any{
		"Timeout":     4,
		"Layers":      []any{"a", "b"},
		"Environment": map[string]any{"Variables": map[string]any{"A": 1, "B": 3}},
	}
	for property, value := range want {
		if got := v.Function("F", property); !reflect.DeepEqual(got, value) {
			t.Errorf("%s is %v, want %v", property, got, value)
		}
	}
	if got := v.OfType("Function"); !reflect.DeepEqual(got, []string{"F", "Sometimes"}) {
		t.Errorf("functions are %v where the condition holds", got)
	}
	if got := template.View(nil).OfType("Function"); !reflect.DeepEqual(got, []string{"F"}) {
		t.Errorf("functions are %v where the condition does not hold", got)
	}
	if got := v.At("Resources", "F", "Properties", "Layers", "1"); got != nil || v.Err() != nil {
		t.Errorf("past the end of a list stands %v, %v", got, v.Err())
	}
}

func TestParse_RefusesWhatCloudFormationWouldNotTake(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "empty",
		"- a":                  "mapping",
		"a: &x 1\nb: *x":       "line 2: an alias",
		"a: 1\na: 2":           "twice",
		"b: {<<: {c: 1}}":      "merges",
		"a: [":                 "parse template",
		"a: 2026-13-45T99:00Z": "",
	} {
		_, err := Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that names %q", text, err, want)
		}
	}
	if _, err := Open("no-such-file.yaml"); err == nil {
		t.Error("a missing file is no error")
	}
}
