package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is one run of the bootstrap with its listener. It ends once, and takes its children with it.
type process struct {
	api     *runtimeAPI
	started time.Time
	pid     int
	exited  chan struct{} // closed when the process, its output and its listener are gone
	err     error         // how it ended; read after exited
}

// startProcess starts the bootstrap. The caller must end it with kill or stop.
func startProcess(c *Config, temp string, id int) (*process, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the Runtime API: %w", err)
	}
	p := &process{started: time.Now(), exited: make(chan struct{})}
	gone := make(chan struct{})
	p.api = newRuntimeAPI(c.arn(), gone)
	mux := http.NewServeMux()
	p.api.register(mux)
	server := &http.Server{Handler: mux}

	out := &lineWriter{line: Line{Function: c.Name, Environment: id, Stream: "stdout"}, sink: c.Log}
	errs := &lineWriter{line: Line{Function: c.Name, Environment: id, Stream: "stderr"}, sink: c.Log}
	cmd := &exec.Cmd{
		Path: c.Bootstrap, Args: []string{c.Bootstrap}, Dir: filepath.Dir(c.Bootstrap),
		Env:    c.environ(listener.Addr().String(), temp, id),
		Stdout: out, Stderr: errs,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay:   time.Second, // a grandchild may hold the pipes open
	}
	if err := cmd.Start(); err != nil {
		_ = listener.Close()
		return nil, err
	}
	p.pid = cmd.Process.Pid
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // what it started must not outlive it
		out.flush()
		errs.flush()
		close(gone)
		_ = server.Close()
		<-served
	}()
	return p, nil
}

// kill ends the process at once, as a power cut would, and waits for it.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// stop asks the process to end, and kills it when grace is over.
func (p *process) stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill()
	}
}

func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(-p.pid, s)
	}
}

// running reports whether the process has not been seen to end.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// exitError tells an invocation how its process ended.
func (p *process) exitError(id string) *FunctionError {
	<-p.exited
	var status *exec.ExitError
	if errors.As(p.err, &status) {
		return newFunctionError(TypeExit, "RequestId: %s Error: Runtime exited with error: %v", id, status)
	}
	return newFunctionError(TypeExit, "RequestId: %s Error: Runtime exited without providing a reason", id)
}
