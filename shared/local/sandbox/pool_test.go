package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPool_ReusesOneEnvironmentForOneCaller(t *testing.T) {
	r := start(t, nil)
	first := r.see(order{})
	for range 50 {
		if s := r.see(order{}); s.PID != first.PID {
			t.Fatalf("process %d, want %d: callers one after the other need one environment", s.PID, first.PID)
		}
	}
}

func TestPool_RunsOneInvocationPerEnvironmentUpToTheBound(t *testing.T) {
	const bound, callers = 3, 8
	r := start(t, func(c *Config) { c.Concurrency = bound })
	meeting := t.TempDir()
	in := func() int { found, _ := filepath.Glob(filepath.Join(meeting, "in-*")); return len(found) }
	var wg sync.WaitGroup
	pids := make(chan int, callers)
	for range callers {
		wg.Go(func() { pids <- r.see(order{Do: "meet", Text: meeting}).PID })
	}
	eventually(t, "three at once", func() bool { return in() == bound })
	if n := r.Calls(); n != bound {
		t.Errorf("%d invocations given an environment, want %d", n, bound)
	}
	if err := os.WriteFile(filepath.Join(meeting, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	close(pids)
	distinct := map[int]int{}
	for pid := range pids {
		distinct[pid]++
	}
	if len(distinct) != bound {
		t.Errorf("invocations by process: %v, want %d processes", distinct, bound)
	}
}

func TestInvoke_WaitsForAnEnvironmentNoLongerThanItsContext(t *testing.T) {
	r := start(t, func(c *Config) { c.Concurrency = 1 })
	meeting := t.TempDir()
	var wg sync.WaitGroup
	wg.Go(func() { r.see(order{Do: "meet", Text: meeting}) })
	eventually(t, "the only environment is busy", func() bool {
		found, _ := filepath.Glob(filepath.Join(meeting, "in-*"))
		return len(found) == 1
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Invoke(ctx, []byte(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	_ = os.WriteFile(filepath.Join(meeting, "go"), nil, 0o600)
	wg.Wait()
}

func TestInvoke_GoesOnWithoutItsCaller(t *testing.T) {
	r := start(t, func(c *Config) { c.Concurrency = 1 })
	meeting := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := r.Invoke(ctx, []byte(`{"Do":"meet","Text":"`+meeting+`"}`))
		left <- err
	}()
	eventually(t, "the event is at work", func() bool {
		found, _ := filepath.Glob(filepath.Join(meeting, "in-*"))
		return len(found) == 1
	})
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	_ = os.WriteFile(filepath.Join(meeting, "go"), nil, 0o600)
	r.see(order{}) // the environment came back
	if len(r.reports) != 2 || r.reports[0].Err != nil {
		t.Errorf("reports %+v, want two without an error", r.reports)
	}
}

func TestFault_KillAtWork(t *testing.T) {
	r := start(t, func(c *Config) {
		c.Fault = func(call Call) Fault { return Fault{Kill: call.N == 2, After: 10 * time.Millisecond} }
	})
	before := r.see(order{})
	if failure := r.fail(order{Do: "hang"}, TypeExit); !strings.Contains(failure.Message, "signal: killed") {
		t.Errorf("message %q", failure.Message)
	}
	if after := r.see(order{}); after.PID == before.PID {
		t.Error("the killed process answered")
	}
}

func TestFault_LoseTheAnswerAfterTheWorkIsDone(t *testing.T) {
	r := start(t, func(c *Config) { c.Fault = func(call Call) Fault { return Fault{LoseAnswer: call.N == 1} } })
	r.fail(order{Do: "touch", Text: "done"}, TypeExit)
	if s := r.see(order{}); !slices.Contains(s.Files, "done") {
		t.Errorf("files %q: the work was not done before the answer was lost", s.Files)
	}
}

func TestKill_EndsIdleAndBusyProcesses(t *testing.T) {
	r := start(t, nil)
	meeting := t.TempDir()
	idle := r.see(order{})
	broken := make(chan error, 2)
	for range 2 {
		go func() { _, err := r.order(order{Do: "meet", Text: meeting}); broken <- err }()
	}
	eventually(t, "two at work", func() bool {
		found, _ := filepath.Glob(filepath.Join(meeting, "in-*"))
		return len(found) == 2
	})
	if n := r.Kill(); n != 2 || !gone(idle.PID) {
		t.Errorf("killed %d, want the 2 processes, %d among them", n, idle.PID)
	}
	for range 2 {
		var failure *FunctionError
		if err := <-broken; !errors.As(err, &failure) || failure.Type != TypeExit {
			t.Errorf("killed at work: %v", err)
		}
	}
	r.see(order{})
}

func TestRandomCrashes_DependOnSeedAndNumberAlone(t *testing.T) {
	fault, again := RandomCrashes(7, 0.2, time.Second), RandomCrashes(7, 0.2, time.Second)
	killed, lost := 0, 0
	for n := range int64(2000) {
		f := fault(Call{N: n})
		if f != again(Call{N: n}) {
			t.Fatalf("call %d differs between two schedules of one seed", n)
		}
		if f.Kill {
			killed++
		}
		if f.LoseAnswer {
			lost++
		}
		if f.After < 0 || f.After >= time.Second || f.Kill && f.LoseAnswer {
			t.Fatalf("call %d: %+v", n, f)
		}
	}
	if killed < 300 || killed > 500 || lost < 130 || lost > 270 {
		t.Errorf("%d killed and %d lost of 2000, want about 400 and 200", killed, lost)
	}
}
