package deploy

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abacus/shared/tally/rules"
)

var built = flag.String("built", "", "folder that `sam build` has filled, such as .aws-sam/build")

// What Lambda gets is looked at rather than trusted: go and SAM both build something else without a word when a setting
// is missing.
func TestBuilt_FunctionsAreWhatLambdaRuns(t *testing.T) {
	if *built == "" {
		t.Skip("needs what `sam build` makes; `make validate` builds it and runs this test")
	}
	for _, function := range []string{"Kinesis", "Sqs"} {
		folder := filepath.Join(*built, function)
		if names := namesIn(t, folder); !slices.Equal(names, []string{"bootstrap"}) {
			t.Errorf("%s holds %v; want bootstrap alone", function, names)
		}
		path := filepath.Join(folder, "bootstrap")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Fatalf("%s cannot be executed: %v", path, err)
		}
		checkBinary(t, path)
		settings := settingsOf(t, path)
		for key, want := range map[string]string{
			"GOOS": "linux", "GOARCH": "arm64", "CGO_ENABLED": "0", "-tags": "lambda.norpc", "-trimpath": "true", "vcs": "",
		} {
			if settings[key] != want {
				t.Errorf("%s: built with %s=%q, want %q", function, key, settings[key], want)
			}
		}
		if want := "abacus/functions/" + strings.ToLower(function); settings["path"] != want {
			t.Errorf("%s is %s, want %s", function, settings["path"], want)
		}
	}
}

func TestBuilt_LayerHoldsTheRuleFileAlone(t *testing.T) {
	if *built == "" {
		t.Skip("needs what `sam build` makes; `make validate` builds it and runs this test")
	}
	folder := filepath.Join(*built, "RulesLayer")
	if names := namesIn(t, folder); !slices.Equal(names, []string{"counters.yaml"}) {
		t.Fatalf("the layer holds %v; want counters.yaml alone, at the top: that is /opt/counters.yaml", names)
	}
	got, err := os.ReadFile(filepath.Join(folder, "counters.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../functions/counters.yaml")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the layer's rule file is not functions/counters.yaml: %v", err)
	}
	if _, err := rules.Load(filepath.Join(folder, "counters.yaml")); err != nil {
		t.Errorf("no function would start with the layer's rule file: %v", err)
	}
}

func checkBinary(t *testing.T, path string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if file.Machine != elf.EM_AARCH64 {
		t.Errorf("%s is for %v, not for arm64", path, file.Machine)
	}
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("%s needs %v, which Lambda may not have", path, libraries)
	}
	if file.Section(".symtab") != nil {
		t.Errorf("%s carries symbols", path)
	}
}

func settingsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"path": info.Path}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings
}

func namesIn(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
