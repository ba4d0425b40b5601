package rules

import (
	"errors"
	"fmt"
	"testing"
)

func TestPath_TemplateWhereANameBelongsIsAFault(t *testing.T) {
	for _, member := range []string{
		`id: "{order_id}"`, `time: "{placed_at}"`, `add: "{total}"`, `add: {path: "items[].qty"}`,
		`keys: ["{items[].sku}"]`, `id: "order_id}"`,
	} {
		if member[:2] != "ke" {
			member += "\n    keys: [all]"
		}
		_, err := Parse("counters.yaml", fmt.Appendf(nil, "counters:\n  - name: c\n    %s\n", member))
		var fault *Fault
		if !errors.As(err, &fault) || fault.Line != 3 {
			t.Errorf("%s: %v, want a fault on line 3", member, err)
		}
	}
}

func TestPath_EscapedBracketIsPartOfTheName(t *testing.T) {
	names, list, err := parsePath(`\{a\}.b\[]`)
	if err != nil || list || fmt.Sprint(names) != "[{a} b[]]" {
		t.Errorf("%q %t %v", names, list, err)
	}
}
