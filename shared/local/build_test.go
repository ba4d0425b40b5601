package local

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// module writes a module with one main package.
func module(t *testing.T, code string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n", "functions/f/main.go": "package main\n\nfunc main() { " + code + " }\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestBuild_UsesTheDeploymentsFlagsForThisMachine(t *testing.T) {
	root := module(t, "")
	paths, err := build(t.Context(), root, filepath.Join(root, "out"), []string{"functions/f"})
	if err != nil || len(paths) != 1 {
		t.Fatalf("executables %q, %v", paths, err)
	}
	info, err := buildinfo.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"GOOS": runtime.GOOS, "GOARCH": runtime.GOARCH, "CGO_ENABLED": "0", "-tags": "lambda.norpc", "-trimpath": "true",
		"-ldflags": "", // -trimpath keeps them out
		"vcs":      "",
	} {
		if settings[key] != want {
			t.Errorf("built with %s=%q, want %q", key, settings[key], want)
		}
	}
}

func TestBuild_ShowsWhatTheCompilerSays(t *testing.T) {
	root := module(t, "undefinedName()")
	_, err := build(t.Context(), root, filepath.Join(root, "out"), []string{"functions/f"})
	if err == nil || !strings.Contains(err.Error(), "undefinedName") || !strings.Contains(err.Error(), "build functions") {
		t.Errorf("error %v, want the compiler's", err)
	}
}
