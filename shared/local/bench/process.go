package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"abacus/shared/local/sandbox"
)

// measureProcess measures the function's own binary: how long from exec to its first answer, beside one that does
// nothing, and how much memory a batch of 6 MB takes.
func measureProcess(ctx context.Context, o Options) ([]figure, error) {
	dir, err := os.MkdirTemp("", "abacus-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ours, err := buildFunction(ctx, o.Root, "functions/kinesis", filepath.Join(dir, "kinesis"))
	if err != nil {
		return nil, err
	}
	empty, err := buildFunction(ctx, o.Root, "shared/local/bench/testdata/empty", filepath.Join(dir, "empty"))
	if err != nil {
		return nil, err
	}
	rules := filepath.Join(dir, "counters.yaml")
	if err := os.WriteFile(rules, []byte(oneKey), 0o600); err != nil {
		return nil, err
	}
	stand, err := startStand(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer stand.stop()
	if err := makeTables(ctx, clientOf(stand.url)); err != nil {
		return nil, err
	}
	env := map[string]string{
		"ABACUS_COUNTERS_TABLE": countersTable, "ABACUS_DEDUP_TABLE": dedupTable, "ABACUS_RULES": rules,
		"AWS_ENDPOINT_URL": stand.url,
	}
	cold, err := coldStart(ctx, o, empty, ours, env)
	if err != nil {
		return nil, err
	}
	peak, err := peakMemory(ctx, ours, env)
	if err != nil {
		return nil, err
	}
	return append(cold, figure{
		name: "peak resident memory for a batch of 6 MB, MiB", ours: format(peak),
		target: "at most 64", met: judge(peak <= 64),
	}), nil
}

func buildFunction(ctx context.Context, root, folder, to string) (string, error) {
	bootstrap := filepath.Join(to, "bootstrap")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w",
		"-o", bootstrap, "./"+folder)
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return bootstrap, nil
}

// coldStart interleaves starts of both, so that a busy moment of the machine falls on both.
func coldStart(ctx context.Context, o Options, empty, ours string, env map[string]string) ([]figure, error) {
	answers := []byte(`{"Records":[]}`)
	start := func(bootstrap string) (float64, error) {
		f, err := sandbox.New(sandbox.Config{Name: "bench", Bootstrap: bootstrap, Env: env, Timeout: 30 * time.Second})
		if err != nil {
			return 0, err
		}
		defer f.Close()
		event := answers
		if bootstrap == ours {
			event = kinesisEvent(nil) // no records: what is measured is the start
		}
		began := time.Now()
		_, err = f.Invoke(ctx, event)
		return float64(time.Since(began).Microseconds()) / 1000, err
	}
	var none, with []float64
	for range 7 * o.Rounds {
		a, err := start(empty)
		if err != nil {
			return nil, err
		}
		b, err := start(ours)
		if err != nil {
			return nil, err
		}
		none, with = append(none, a), append(with, b)
	}
	i, j := -1, -1
	a, _ := median(len(none), func() (float64, error) { i++; return none[i], nil })
	b, _ := median(len(with), func() (float64, error) { j++; return with[j], nil })
	return []figure{{
		name: "cold start, exec to first answer, ms", reference: format(a) + " (empty handler)",
		ours: fmt.Sprintf("%s (%s more)", format(b), format(b-a)), target: "at most 15 more", met: judge(b-a <= 15),
	}}, nil
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory runs one batch as large as Lambda sends and reads the process's high-water mark before it ends.
func peakMemory(ctx context.Context, bootstrap string, env map[string]string) (float64, error) {
	all := views(20000, "m")
	n := len(all)
	for len(kinesisEvent(all[:n])) > sandbox.MaxRequest {
		n -= 100
	}
	f, err := sandbox.New(sandbox.Config{
		Name: "bench", Bootstrap: bootstrap, Env: env, Timeout: time.Minute, Concurrency: 1,
	})
	if err != nil {
		return 0, err
	}
	defer f.Close()
	response, err := f.Invoke(ctx, kinesisEvent(all[:n]))
	if err != nil {
		return 0, err
	}
	if !strings.Contains(string(response), `"batchItemFailures":[]`) {
		return 0, fmt.Errorf("the batch of 6 MB was not counted: %.200s", response)
	}
	return residentPeak(bootstrap)
}

// residentPeak finds the running process by its executable.
func residentPeak(bootstrap string) (float64, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("peak memory is read from /proc, which this system does not have: %w", err)
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe")); err != nil || target != bootstrap {
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil {
			return 0, err
		}
		if m := highWater.FindSubmatch(status); m != nil {
			kib, err := strconv.ParseFloat(string(m[1]), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no process runs %s", bootstrap)
}
