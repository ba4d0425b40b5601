package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutant that nothing notices, stands nowhere, does not compile or has no tests must never pass for one that was
// noticed; and the next one must find the tree as it was.
func TestBench_TellsWhatIsNoticedFromWhatIsNot(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"p/p.go": "package p\n\nfunc Two() int { return 2 }\n\nfunc Idle() int { return 1 }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\n" +
			"func TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal()\n\t}\n}\n",
		".git/p_test.x": "not Go",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{root: dir, limit: time.Minute}
	tree, err := b.copyTree()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tree) })
	one := func(find, replace, run string) mutant {
		return mutant{name: "m", edits: []edit{{"p/p.go", find, replace}}, pkg: "p", run: run}
	}
	if err := b.healthy(t.Context(), []mutant{one("", "", "Two")}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		m    mutant
		want string
	}{
		{one("return 2", "return 3", "Two"), "noticed TestTwo"},
		{one("return 1", "return 3", "Two"), "SURVIVED"},
		{one("return 2", "return 3", "Three"), "UNTESTED"},
		{one("return 2", "return two", "Two"), "BROKEN"},
		{one("return 4", "return 2", "Two"), "MISPLACED"},
		{one("return", "return 0 +", "Two"), "MISPLACED"},
		{one("return 2", "panic(2)", "Two"), "noticed"},
	} {
		if got := b.try(t.Context(), tree, c.m); !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %s, want %s", c.m.edits, got, c.want)
		}
	}
	three := []byte("package p\n\nfunc Two() int { return 3 }\n")
	if err := os.WriteFile(filepath.Join(dir, "p", "p.go"), three, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.healthy(t.Context(), []mutant{one("", "", "Two")}); err == nil {
		t.Error("a tree whose tests fail is taken for a healthy one")
	}
	for _, dir := range b.copies {
		_ = os.RemoveAll(dir)
	}
}
