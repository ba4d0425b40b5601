package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const top = "../.."

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{top}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// all returns the distinct texts of the pattern's first group, sorted.
func all(pattern, text string) []string {
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestReadme_NamesOnlyTargetsThatTheMakefileHas(t *testing.T) {
	targets := all(`(?m)^([a-z]+):.*## `, read(t, "Makefile"))
	named := all("(?m)(?:`|^ {4})make ([a-z]+)", read(t, "README.md"))
	if len(named) < 5 {
		t.Fatalf("the README names %v; does this test still find them?", named)
	}
	for _, target := range named {
		if !slices.Contains(targets, target) {
			t.Errorf("README: make %s is not a target of the Makefile", target)
		}
	}
}

// A path in the README is a word in backticks with a slash or an ending, or a line of the repository map.
func TestReadme_NamesOnlyPathsThatExist(t *testing.T) {
	text := read(t, "README.md")
	paths := all("`((?:functions|shared|events|\\.ci|\\.tools)/[\\w./-]*|[\\w-]+\\.(?:yaml|toml|go|md|mod))`", text)
	_, tree, found := strings.Cut(text, "## Where things live")
	if !found {
		t.Fatal("the README has no map of the repository")
	}
	parent := ""
	for _, match := range regexp.MustCompile(`(?m)^ {4}( *)([\w./-]+) {2,}\S`).FindAllStringSubmatch(tree, -1) {
		if match[1] == "" {
			parent = match[2]
			paths = append(paths, match[2])
		} else {
			paths = append(paths, filepath.Join(parent, match[2]))
		}
	}
	paths = append(paths, all(`bash ([\w./-]+)`, text)...)
	if len(paths) < 15 {
		t.Fatalf("the README names %v; does this test still find them?", paths)
	}
	for _, path := range paths {
		if strings.HasPrefix(path, ".tools") {
			continue // made by make
		}
		if _, err := os.Stat(filepath.Join(top, path)); err != nil {
			t.Errorf("README: %s is not there", path)
		}
	}
}

func TestReadme_NamesOnlyParametersAndResourcesOfTheTemplate(t *testing.T) {
	template := theTemplate(t)
	known := slices.Concat(template.Parameters(), template.View(nil).Keys("Resources"), template.View(nil).Keys("Outputs"))
	text := read(t, "README.md")
	for _, name := range all("`([A-Z][a-z]+(?:[A-Z][a-z]+)+)(?:=[^`]*)?`", text) {
		aws := []string{"IteratorAge", "ApproximateAgeOfOldestMessage", "ParallelizationFactor"}
		if !slices.Contains(known, name) && !slices.Contains(aws, name) {
			t.Errorf("README: the template has no %s", name)
		}
	}
	for _, name := range all(`name (\w+)\)`, text) {
		if !slices.Contains(template.View(nil).Keys("Outputs"), name) {
			t.Errorf("README: the stack has no output %s", name)
		}
	}
}

// What the code reads, what the README documents and what the template sets are the same variables.
func TestEnvironment_CodeReadmeAndTemplateAgree(t *testing.T) {
	code := variablesInCode(t)
	readme := all("(?m)^\\| `(ABACUS_[A-Z_]+)`", read(t, "README.md"))
	if !slices.Equal(code, readme) {
		t.Errorf("the code reads %v; the README's table has %v", code, readme)
	}
	v := theTemplate(t).View(nil)
	var set []string
	for _, function := range v.OfType("AWS::Serverless::Function") {
		for name := range environment(v, function) {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	if set = slices.Compact(set); !slices.Equal(set, code) {
		t.Errorf("the template sets %v; the code reads %v", set, code)
	}
}

// variablesInCode returns the ABACUS_ variables that appear in code which a function can hold.
func variablesInCode(t *testing.T) []string {
	t.Helper()
	var text strings.Builder
	for _, root := range []string{"functions", "shared"} {
		err := filepath.WalkDir(filepath.Join(top, root), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "local" || entry.Name() == "cmd" || entry.Name() == "testdata"):
				return fs.SkipDir
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				source, err := os.ReadFile(path)
				text.Write(source)
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all(`"(ABACUS_[A-Z_]+)"`, text.String())
}
