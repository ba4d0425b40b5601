// Command mutants breaks the core in known ways, one at a time in a copy of the tree, and fails if the tests do not
// notice one of them. It says nothing about faults that are not on its list.
//
//	go run ./shared/local/mutants              all
//	go run ./shared/local/mutants -only mark   those whose name matches
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "run the mutants whose name matches this expression")
	limit := flag.Duration("timeout", 90*time.Second, "for the tests of one mutant; one that hangs them counts as noticed")
	jobs := flag.Int("jobs", min(2, runtime.NumCPU()), "mutants at a time, each in a copy of its own")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *limit, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, limit time.Duration, jobs int) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range mutants {
		if match.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant's name matches %q", only)
	}
	b := &bench{root: root, limit: limit, queue: make(chan mutant)}
	defer func() {
		for _, dir := range b.copies {
			_ = os.RemoveAll(dir)
		}
	}()
	if err := b.healthy(ctx, chosen); err != nil {
		return err
	}
	start := time.Now()
	b.runAll(ctx, chosen, max(jobs, 1))
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	fmt.Printf("%d of %d mutants noticed in %s\n", len(chosen)-len(b.alive), len(chosen),
		time.Since(start).Round(time.Second))
	if len(b.alive) > 0 {
		return fmt.Errorf("not noticed, or not tried: %s", strings.Join(b.alive, "; "))
	}
	return nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	root := filepath.Dir(strings.TrimSpace(string(out)))
	if err != nil || root == "." || root == filepath.Dir(os.DevNull) {
		return "", errors.New("not in the module's folder: run this from a checkout")
	}
	return root, nil
}

// bench tries mutants.
type bench struct {
	root   string
	limit  time.Duration
	queue  chan mutant
	mu     sync.Mutex
	copies []string
	alive  []string
}

// copyTree copies what the tests need to a new folder.
func (b *bench) copyTree() (string, error) {
	dir, err := os.MkdirTemp("", "abacus-mutants-")
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	b.copies = append(b.copies, dir)
	b.mu.Unlock()
	return dir, filepath.WalkDir(b.root, func(from string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // made and removed by somebody's test meanwhile
			return nil
		}
		name := d.Name()
		if err != nil || from == b.root {
			return err
		}
		if strings.HasPrefix(name, ".") || name == "node_modules" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		to := filepath.Join(dir, strings.TrimPrefix(from, b.root))
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	})
}

// healthy runs the tests of all chosen mutants on the tree as it is: what fails there could notice nothing.
func (b *bench) healthy(ctx context.Context, chosen []mutant) error {
	dir, err := b.copyTree()
	if err != nil {
		return err
	}
	patterns := map[string][]string{}
	for _, m := range chosen {
		patterns[m.pkg] = append(patterns[m.pkg], m.run)
	}
	for pkg, runs := range patterns {
		start := time.Now()
		out, err := b.test(ctx, dir, pkg, strings.Join(runs, "|"))
		if err != nil {
			return fmt.Errorf("%s fails without any mutant; mend it first:\n%s", pkg, out)
		}
		fmt.Printf("healthy   %5.1fs  %s\n", time.Since(start).Seconds(), pkg)
	}
	return nil
}

func (b *bench) runAll(ctx context.Context, chosen []mutant, jobs int) {
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			dir, err := b.copyTree()
			for m := range b.queue {
				start, verdict := time.Now(), "NOT TRIED "+fmt.Sprint(err)
				if err == nil {
					verdict = b.try(ctx, dir, m)
				}
				b.note(m, verdict, time.Since(start))
			}
		})
	}
	for _, m := range chosen {
		b.queue <- m
	}
	close(b.queue)
	workers.Wait()
}

const noticed = "noticed"

func (b *bench) note(m mutant, verdict string, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Printf("%-9s %5.1fs  %s\n", strings.Fields(verdict)[0], took.Seconds(), m.name)
	if !strings.HasPrefix(verdict, noticed) {
		b.alive = append(b.alive, m.name+": "+verdict)
		return
	}
	fmt.Printf("                  by %s\n", strings.TrimPrefix(verdict, noticed+" "))
}

// try applies the mutant, runs its tests, and puts the files back as they were.
func (b *bench) try(ctx context.Context, dir string, m mutant) (verdict string) {
	for _, e := range m.edits {
		file := filepath.Join(dir, e.file)
		before, err := os.ReadFile(file)
		if err != nil {
			return "MISPLACED " + err.Error()
		}
		defer func() { _ = os.WriteFile(file, before, 0o600) }()
		if n := strings.Count(string(before), e.find); n != 1 {
			return fmt.Sprintf("MISPLACED %q stands %d times in %s", e.find, n, e.file)
		}
		after := strings.Replace(string(before), e.find, e.replace, 1)
		if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
			return "MISPLACED " + err.Error()
		}
	}
	out, err := b.test(ctx, dir, m.pkg, m.run)
	failed := regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`).FindStringSubmatch(out)
	switch {
	case err == nil && strings.Contains(out, "no tests to run"):
		return "UNTESTED no test matches " + m.run
	case err == nil:
		return "SURVIVED the tests " + m.run + " of " + m.pkg
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "BROKEN it does not compile:\n" + out
	case failed != nil:
		return noticed + " " + failed[1]
	case strings.Contains(out, "panic: "):
		return noticed + " a panic or the time-out of the tests"
	}
	return "BROKEN the tests ended in a way that says nothing:\n" + out
}

func (b *bench) test(ctx context.Context, dir, pkg, pattern string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit+time.Minute) // to build them
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-vet=off", "-timeout", b.limit.String(),
		"-run", pattern, "./"+pkg)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}
