package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// rig is a function under test with what it logged and reported.
type rig struct {
	*Function
	t       *testing.T
	temp    string
	mu      sync.Mutex
	lines   []Line
	reports []Report
}

// start makes a function of this very test binary. Its timeout is long enough never to pass by accident.
func start(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, temp: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Name: "under-test", Bootstrap: self, Timeout: 30 * time.Second, InitTimeout: 30 * time.Second, TempDir: r.temp,
		Log:    func(l Line) { r.mu.Lock(); defer r.mu.Unlock(); r.lines = append(r.lines, l) },
		Report: func(p Report) { r.mu.Lock(); defer r.mu.Unlock(); r.reports = append(r.reports, p) },
	}
	if change != nil {
		change(&c)
	}
	if c.Env == nil {
		c.Env = map[string]string{"GORACE": "atexit_sleep_ms=0"} // or an exit under -race takes a second
	}
	if r.Function, err = New(c); err != nil {
		t.Fatal(err)
	}
	r.settles = 30 * time.Second // a busy machine is slow to ask for the next event
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func (r *rig) order(o order) ([]byte, error) {
	r.t.Helper()
	payload, err := json.Marshal(o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	return r.Invoke(ctx, payload)
}

func (r *rig) see(o order) seen {
	r.t.Helper()
	body, err := r.order(o)
	if err != nil {
		r.t.Fatalf("%+v: %v", o, err)
	}
	var s seen
	if err := json.Unmarshal(body, &s); err != nil {
		r.t.Fatalf("%+v answered %s: %v", o, body, err)
	}
	return s
}

// fail runs an order that must end in a function error of the given type.
func (r *rig) fail(o order, kind string) *FunctionError {
	r.t.Helper()
	body, err := r.order(o)
	var failure *FunctionError
	if !errors.As(err, &failure) {
		r.t.Fatalf("%+v: response %q, error %v, want a function error %s", o, body, err, kind)
	}
	if failure.Type != kind {
		r.t.Fatalf("%+v: %v, want type %s", o, failure, kind)
	}
	return failure
}

// within gives the function a short timeout while run makes its invocations. The rig's own is long enough for a busy
// machine to start a process in.
func (r *rig) within(timeout time.Duration, run func()) {
	usual := r.config.Timeout
	r.config.Timeout = timeout
	defer func() { r.config.Timeout = usual }()
	run()
}

func (r *rig) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, l := range r.lines {
		b.WriteString(l.Stream + ": " + l.Text + "\n")
	}
	return b.String()
}

// eventually waits for a condition that other processes bring about.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	for range 2000 {
		if met() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("not within 10 s: %s", what)
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestInvoke_HandsOverTheEventAndItsHeaders(t *testing.T) {
	r := start(t, nil)
	s := r.see(order{})
	if s.ARN != "arn:aws:lambda:us-east-1:000000000000:function:under-test" {
		t.Errorf("arn %q", s.ARN)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(s.Request) {
		t.Errorf("request id %q", s.Request)
	}
	if !regexp.MustCompile(`^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0$`).MatchString(s.Trace) {
		t.Errorf("trace id %q", s.Trace)
	}
	if s.Left <= 0 || s.Left > 30*time.Second {
		t.Errorf("%v left until the deadline, want up to the timeout of 30s", s.Left)
	}
	if next := r.see(order{}); next.Request == s.Request {
		t.Errorf("two invocations have the request id %s", s.Request)
	}
}

func TestEnvironment_HoldsOnlyWhatLambdaSetsAndTheFunctionsOwn(t *testing.T) {
	t.Setenv("LEAKED_FROM_THE_PARENT", "x")
	t.Setenv("AWS_PROFILE", "production")
	r := start(t, func(c *Config) { c.Env = map[string]string{"TABLE": "counters"}; c.MemoryMB = 512 })
	s := r.see(order{})
	var names []string
	for _, pair := range s.Env {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "_X_AMZN") && name != "PWD" { // set by the runtime and by exec
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{
		"AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_NAME",
		"AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME",
		"AWS_LAMBDA_LOG_STREAM_NAME", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT", "LANG", "PATH", "TABLE", "TMPDIR", "TZ", "_HANDLER",
	}
	if !slices.Equal(names, want) {
		t.Errorf("variables\n%q, want\n%q", names, want)
	}
	self, _ := os.Executable()
	for _, pair := range []string{
		"TABLE=counters", "_HANDLER=bootstrap", "AWS_LAMBDA_FUNCTION_NAME=under-test", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"AWS_REGION=us-east-1", "LAMBDA_TASK_ROOT=" + filepath.Dir(self),
	} {
		if !slices.Contains(s.Env, pair) {
			t.Errorf("no %s in the environment", pair)
		}
	}
	if s.Dir != filepath.Dir(self) {
		t.Errorf("working directory %s, want the task root", s.Dir)
	}
}

func TestHandlerError_ReachesTheCallerAndKeepsTheProcess(t *testing.T) {
	r := start(t, nil)
	before := r.see(order{})
	failure := r.fail(order{Do: "fail", Text: "table is gone"}, "errorString")
	if failure.Message != "table is gone" {
		t.Errorf("message %q", failure.Message)
	}
	if want := `{"errorMessage":"table is gone","errorType":"errorString"}`; string(failure.Payload) != want {
		t.Errorf("document %s, want %s", failure.Payload, want)
	}
	if after := r.see(order{}); after.PID != before.PID {
		t.Error("a handler error cost the process")
	}
}

func TestResponse_UpToTheLimitAndNotOneByteMore(t *testing.T) {
	r := start(t, nil)
	body, err := r.order(order{Do: "bytes", N: MaxResponse})
	if err != nil || len(body) != MaxResponse {
		t.Fatalf("response at the limit: %d bytes, %v", len(body), err)
	}
	r.fail(order{Do: "bytes", N: MaxResponse + 1}, TypeTooLarge)
	r.see(order{}) // the runtime left; the next one came
}

func TestResponse_BrokenOffMidwayIsAnError(t *testing.T) {
	failure := start(t, nil).fail(order{Do: "broken"}, "errorString")
	if failure.Message != "reader broke" {
		t.Errorf("message %q", failure.Message)
	}
}

func TestRequest_BeyondTheLimitIsNotHandedOut(t *testing.T) {
	r := start(t, nil)
	for size, want := range map[int]error{MaxRequest: nil, MaxRequest + 1: ErrRequestTooLarge} {
		payload := []byte(`{"Text":"` + strings.Repeat("x", size-len(`{"Text":""}`)) + `"}`)
		if _, err := r.Invoke(t.Context(), payload); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", len(payload), err, want)
		}
	}
	if r.Calls() != 1 {
		t.Errorf("%d calls, want 1", r.Calls())
	}
}

func TestMissingBootstrap_SaysSo(t *testing.T) {
	r := start(t, func(c *Config) { c.Bootstrap = filepath.Join(t.TempDir(), "absent") })
	if failure := r.fail(order{}, TypeEntrypoint); !strings.Contains(failure.Message, "absent") {
		t.Errorf("message %q does not name the file", failure.Message)
	}
}

func TestClose_LeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	r := start(t, nil)
	s := r.see(order{Do: "spawn"})
	hung := make(chan error, 1)
	go func() {
		_, err := r.order(order{Do: "touch-and-hang", Text: "busy"})
		hung <- err
	}()
	eventually(t, "the second event is at work", func() bool {
		found, _ := filepath.Glob(filepath.Join(r.temp, "*", "busy"))
		return len(found) == 1
	})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-hung; !errors.Is(err, ErrClosed) {
		t.Errorf("invocation under way: %v, want ErrClosed", err)
	}
	if _, err := r.order(order{}); !errors.Is(err, ErrClosed) {
		t.Errorf("invocation after close: %v, want ErrClosed", err)
	}
	eventually(t, "processes gone", func() bool { return gone(s.PID) && gone(s.Followed) })
	if left, _ := os.ReadDir(r.temp); len(left) > 0 {
		t.Errorf("temporary directory keeps %v", left)
	}
	eventually(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before })
}

func TestClose_AsksFirstAndKillsAfterTheGrace(t *testing.T) {
	polite := start(t, func(c *Config) { c.Env = map[string]string{"INIT": "polite"}; c.Grace = time.Minute })
	polite.see(order{})
	if err := polite.Close(); err != nil || !strings.Contains(polite.logged(), "asked to leave") {
		t.Errorf("close: %v, logged %q; want the answer to SIGTERM", err, polite.logged())
	}
	stubborn := start(t, func(c *Config) {
		c.Env, c.Grace = map[string]string{"INIT": "stubborn"}, 50*time.Millisecond
	})
	pid := stubborn.see(order{}).PID
	if err := stubborn.Close(); err != nil || !gone(pid) {
		t.Errorf("close: %v, process gone: %t", err, gone(pid))
	}
}
