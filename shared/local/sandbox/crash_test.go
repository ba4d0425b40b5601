package sandbox

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTimeout_KillsTheProcessAndKeepsItsFiles(t *testing.T) {
	r := start(t, nil)
	before := r.see(order{})
	r.within(2*time.Second, func() {
		failure := r.fail(order{Do: "touch-and-hang", Text: "kept"}, TypeTimedOut)
		if !strings.Contains(failure.Message, "timed out after 2.00 seconds") {
			t.Errorf("message %q", failure.Message)
		}
	})
	if !gone(before.PID) {
		t.Error("the process outlived its timeout")
	}
	after := r.see(order{})
	if after.PID == before.PID || !slices.Contains(after.Files, "kept") {
		t.Errorf("next invocation in process %d (was %d) with files %q; want a new one that finds the file",
			after.PID, before.PID, after.Files)
	}
	if last := r.reports[len(r.reports)-1]; last.Environment != 1 || last.Init == 0 {
		t.Errorf("report %+v, want a new init in environment 1", last)
	}
}

func TestCrash_IsAFunctionErrorAndTheNextEventGetsANewProcess(t *testing.T) {
	for _, c := range []struct {
		name, kind, message string
		order               order
	}{
		{"exit", TypeExit, "exit status 5", order{Do: "exit", N: 5}},
		{"exit 0", TypeExit, "without providing a reason", order{Do: "exit"}},
		{"panic", "string", "kaboom", order{Do: "panic", Text: "kaboom"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, nil)
			before := r.see(order{})
			failure := r.fail(c.order, c.kind)
			if !strings.Contains(failure.Message, c.message) {
				t.Errorf("message %q, want %q in it", failure.Message, c.message)
			}
			after := r.see(order{})
			if after.PID == before.PID || !gone(before.PID) {
				t.Errorf("process %d before and %d after; want a new one and the old one gone", before.PID, after.PID)
			}
		})
	}
}

func TestCrash_TakesTheProcessesChildrenWithIt(t *testing.T) {
	r := start(t, nil)
	r.fail(order{Do: "spawn-and-exit"}, TypeExit)
	child, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(r.logged(), "stdout: ")))
	if err != nil {
		t.Fatalf("logged %q, want the child's process id", r.logged())
	}
	eventually(t, "the child is gone", func() bool { return gone(child) })
}

func TestAnswer_CountsThoughTheExitIsSeenFirst(t *testing.T) {
	r := start(t, nil)
	for range 100 { // the select that sees both picks at random
		exited := make(chan struct{})
		p := &process{exited: exited, api: newRuntimeAPI("", exited)}
		inv := &invocation{deadline: time.Now().Add(time.Hour), reply: make(chan answer, 1)}
		inv.reply <- answer{payload: []byte("done")}
		close(exited)
		if got := r.handle(p, inv, Fault{}); string(got.payload) != "done" {
			t.Fatalf("answer %+v, want the one the process gave before it left", got)
		}
	}
}

func TestAnswer_ReachesTheCallerThoughTheProcessEndsRightAfter(t *testing.T) {
	r := start(t, func(c *Config) { c.Concurrency = 1 })
	for _, do := range []string{"answer-and-exit", "answer-and-hang"} {
		r.see(order{}) // a process is up
		r.within(2*time.Second, func() {
			if body, err := r.order(order{Do: do}); err != nil || string(body) != `"bye"` {
				t.Errorf("%s: %q, %v", do, body, err)
			}
		})
		r.see(order{Do: "touch", Text: do})
	}
	s := r.see(order{})
	if want := []string{"answer-and-exit", "answer-and-hang"}; !slices.Equal(s.Files, want) {
		t.Errorf("files %q, want both in one environment's directory", s.Files)
	}
}
