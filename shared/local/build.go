package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildTimeout is long enough to fetch and compile everything on a slow machine.
const buildTimeout = 15 * time.Minute

// build compiles main packages, given by their folders under root, as the deployment does but for this machine, and
// returns their executables in order. Executables that are up to date in dir are not linked again.
func build(ctx context.Context, root, dir string, folders []string) ([]string, error) {
	if len(folders) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("build functions: %w", err)
	}
	args := []string{"build", "-buildvcs=false", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w",
		"-o", dir + string(filepath.Separator)}
	paths := make([]string, len(folders))
	for i, folder := range folders {
		args = append(args, "./"+filepath.ToSlash(folder))
		paths[i] = filepath.Join(dir, filepath.Base(folder))
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=", "GOARCH=", "GOFLAGS=-mod=readonly")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("not done in %v; run go build ./functions/... to see what it waits for", buildTimeout)
		}
		return nil, fmt.Errorf("build functions: %w:\n%s", err, strings.TrimSpace(output.String()))
	}
	return paths, nil
}

// FindRoot returns the folder of the module that holds template.yaml, looking in dir and upward from there.
func FindRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if exists(filepath.Join(at, "go.mod")) && exists(filepath.Join(at, "template.yaml")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no template.yaml beside a go.mod in %s or above it; run this inside the repository", dir)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
