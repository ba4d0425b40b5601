package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The list is useless where the code has moved on from under it; the mutants themselves take minutes and are run by
// `make mutants`.
func TestMutants_EachStandsWhereItSays(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	names := map[string]bool{}
	if len(mutants) < 20 {
		t.Errorf("%d mutants", len(mutants))
	}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("%s: there are two", m.name)
		}
		names[m.name] = true
		for _, e := range m.edits {
			source, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), e.find); n != 1 || e.find == e.replace {
				t.Errorf("%s: %q stands %d times in %s; find what has become of it", m.name, e.find, n, e.file)
			}
		}
		tests, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		pattern, found := regexp.MustCompile(m.run), false
		for _, file := range tests {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(source), -1) {
				found = found || pattern.MatchString(test[1])
			}
		}
		if !found {
			t.Errorf("%s: no test of %s matches %s", m.name, m.pkg, m.run)
		}
	}
}
