package sandbox

import (
	"os"
	"sync/atomic"
	"time"
)

// environment is a place where one process at a time lives. A process that dies or is killed leaves the environment
// behind, temporary files included, for the next one.
type environment struct {
	id   int
	temp string // made with the first process
	proc atomic.Pointer[process]
}

// run takes one invocation through the environment and returns when the environment can take another.
func (f *Function) run(e *environment, inv *invocation, fault Fault) {
	report := Report{Function: f.config.Name, Environment: e.id, RequestID: inv.id}
	start := time.Now()
	var result answer
	report.Init, result.err = f.prepare(e, inv)
	if result.err == nil {
		start = time.Now()
		result = f.handle(e.proc.Load(), inv, fault)
	}
	report.Duration, report.Err = time.Since(start), result.err
	if f.config.Report != nil {
		f.config.Report(report)
	}
	f.ending.Add(1) // Invoke takes it back once the environment is idle
	inv.result <- result
	f.settle(e.proc.Load(), inv.deadline)
}

// prepare sees to it that the environment has a process that waits for an event, and sets the invocation's deadline.
// The first init of an environment has a limit of its own and does not count against the invocation; every later one,
// after a reset or after a first that failed, runs inside the function's timeout.
func (f *Function) prepare(e *environment, inv *invocation) (init time.Duration, err error) {
	inv.deadline = time.Now().Add(f.config.Timeout)
	if p := e.proc.Load(); p != nil && p.running() {
		return 0, nil
	}
	if e.temp == "" {
		if e.temp, err = os.MkdirTemp(f.config.TempDir, "abacus-"+f.config.Name+"-"); err != nil {
			return 0, newFunctionError(TypeEntrypoint, "make a temporary directory: %v", err)
		}
		init, err = f.init(e, time.Now().Add(f.config.InitTimeout), inv.id)
		inv.deadline = time.Now().Add(f.config.Timeout)
		if err == nil {
			return init, nil
		}
	}
	return f.init(e, inv.deadline, inv.id)
}

// init starts a process and waits until it asks for its first event.
func (f *Function) init(e *environment, limit time.Time, id string) (time.Duration, error) {
	p, err := startProcess(&f.config, e.temp, e.id)
	if err != nil {
		return 0, newFunctionError(TypeEntrypoint, "RequestId: %s Error: %v", id, err)
	}
	e.proc.Store(p)
	timer := time.NewTimer(time.Until(limit))
	defer timer.Stop()
	select {
	case <-p.api.asked:
		return time.Since(p.started), nil
	case failed := <-p.api.inits:
		err = failed
	case <-p.exited:
		err = p.exitError(id)
		select {
		case failed := <-p.api.inits: // it said why before it left
			err = failed
		default:
		}
	case <-timer.C:
		err = newFunctionError(TypeInitTimeout, "RequestId: %s Error: the process asked for no event in time", id)
	case <-f.closing:
		err = ErrClosed
	}
	p.kill()
	return time.Since(p.started), err
}

// handle hands the event out and waits for the end of the invocation. The process lives on only if it has answered.
func (f *Function) handle(p *process, inv *invocation, fault Fault) answer {
	deadline := time.NewTimer(time.Until(inv.deadline))
	defer deadline.Stop()
	var crash <-chan time.Time
	work := p.api.work
	for {
		select {
		case work <- inv:
			work = nil
			if fault.Kill {
				timer := time.NewTimer(fault.After)
				defer timer.Stop()
				crash = timer.C
			}
		case result := <-inv.reply:
			if !fault.LoseAnswer {
				return result
			}
			p.kill()
			return answer{err: p.exitError(inv.id)}
		case <-p.exited:
			select {
			case result := <-inv.reply: // it answered before it left, as after a panic
				return result
			default:
				return answer{err: p.exitError(inv.id)}
			}
		case <-crash:
			p.kill()
			return answer{err: p.exitError(inv.id)}
		case <-deadline.C:
			p.kill()
			return answer{err: newFunctionError(TypeTimedOut, "RequestId: %s Error: Task timed out after %.2f seconds",
				inv.id, f.config.Timeout.Seconds())}
		case <-f.closing:
			return answer{err: ErrClosed}
		}
	}
}

// settle waits until a process that has answered asks for its next event. One that does not before the invocation's
// deadline is killed, and so is one that answered that its init failed.
func (f *Function) settle(p *process, deadline time.Time) {
	if p == nil {
		return
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-p.api.asked:
	case <-p.exited:
	case <-timer.C:
		p.kill()
	case <-f.closing:
	}
}
