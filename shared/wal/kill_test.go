package wal_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"abacus/shared/wal"
)

// childEnv makes the test binary a process that appends to the log in the directory it names until it is killed.
const childEnv = "ABACUS_WAL_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func diskOptions(dir string) wal.Options {
	return wal.Options{Dir: dir, SegmentBytes: 64 << 10, MaxBytes: 1 << 20, MaxFrame: 16 << 10}
}

// child appends from four goroutines and truncates, and prints what was acknowledged: "open", "+first last id" for an
// append, "-through" before a truncation.
func child(dir string) error {
	l, report, err := wal.Open(diskOptions(dir))
	if err != nil {
		return err
	}
	if len(report.Damage) > 0 {
		return fmt.Errorf("damage after a kill: %v", report.Damage)
	}
	ctx := context.Background()
	fmt.Println("open")
	errs := make(chan error)
	for w := range 4 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(w)))
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d/%d/%d", os.Getpid(), w, i)
				entries := make([]wal.Entry, 1+rng.IntN(4))
				for j := range entries {
					entries[j] = wal.Entry{ID: id, Data: bytes.Repeat([]byte(id), rng.IntN(80))}
				}
				got, err := l.Append(ctx, entries, wal.Durability(min(1, rng.IntN(8)/7)))
				switch {
				case errors.Is(err, wal.ErrFull):
					through := l.State().Written - wal.Position(rng.IntN(200))
					fmt.Printf("-%d\n", through)
					err = l.Truncate(ctx, through, wal.Volatile)
				case err == nil:
					fmt.Printf("+%d %d %s\n", got.First, got.Last, id)
				}
				if err != nil {
					errs <- err
				}
			}
		}()
	}
	return <-errs
}

// TestE8_KilledProcessKeepsWhatItAcknowledged kills a process that appends, again and again on one directory: all that
// it printed as acknowledged is there, under its position, whole.
func TestE8_KilledProcessKeepsWhatItAcknowledged(t *testing.T) {
	runs := 30
	if testing.Short() {
		runs = 5
	}
	if text := os.Getenv("ABACUS_KILLS"); text != "" {
		runs, _ = strconv.Atoi(text)
	}
	seed := rand.Uint64()
	t.Logf("%d runs (ABACUS_KILLS), seed %d", runs, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	owner := map[wal.Position]string{}
	truncated, last := wal.Position(0), wal.Position(0)
	for run := range runs {
		acked, cut := killed(t, dir, time.Duration(rng.IntN(40_000))*time.Microsecond)
		truncated = max(truncated, cut)
		for p, id := range acked {
			if p <= last {
				t.Fatalf("run %d: position %d was used before", run, p)
			}
			owner[p] = id
		}
		l := mustOpen(t, diskOptions(dir))
		found := map[wal.Position]string{}
		for r, err := range l.Scan(1, ^wal.Position(0)) {
			if err != nil || string(r.Data) != strings.Repeat(r.ID, len(r.Data)/len(r.ID)) {
				t.Fatalf("run %d: record %d %s: %v", run, r.Position, r.ID, err)
			}
			found[r.Position], last = r.ID, r.Position
		}
		for p, id := range owner {
			if p > truncated && found[p] != id {
				t.Fatalf("run %d: record %s at %d was acknowledged; there is %q; %+v", run, id, p, found[p], l.State())
			}
		}
		if s := l.State(); s.Damage != 0 {
			t.Fatalf("run %d: %+v", run, s)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d records acknowledged", len(owner))
}

// killed runs the child for a while, kills it, and returns what it said.
func killed(t *testing.T, dir string, after time.Duration) (acked map[wal.Position]string, cut wal.Position) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked = map[wal.Position]string{}
	var once sync.Once
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		var first, end wal.Position
		var id string
		switch {
		case line == "open":
			once.Do(func() { time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) })
		case strings.HasPrefix(line, "-"):
			if _, err := fmt.Sscanf(line, "-%d", &first); err == nil {
				cut = max(cut, first)
			}
		default:
			if _, err := fmt.Sscanf(line, "+%d %d %s", &first, &end, &id); err != nil {
				t.Errorf("the child said %q", line)
			}
			for ; first <= end; first++ {
				acked[first] = id
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return acked, cut
}

func TestOwner_SecondProcessIsToldWhoHasTheLog(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, diskOptions(dir))
	want := fmt.Sprintf("pid %d", os.Getpid())
	_, _, err := wal.Open(diskOptions(dir))
	var locked *wal.LockedError
	if !errors.As(err, &locked) || locked.Owner != want || locked.Dir != dir {
		t.Fatalf("second opener in this process: %v", err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.Output()
	if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "use another directory") {
		t.Fatalf("second process: %v, %s", err, out)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	killed(t, dir, 0) // the directory is free
	mustOpen(t, diskOptions(dir))
}
