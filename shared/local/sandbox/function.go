package sandbox

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// settleTime is how long an invocation waits for an environment that has just answered before it starts another: the
// runtime's next request is a moment away, and a new process is not.
const settleTime = 20 * time.Millisecond

// Function starts a bootstrap as often as its invocations need, up to the bound on concurrency. Its methods may be
// called by many goroutines.
type Function struct {
	config  Config
	used    chan *environment // idle, and have had a process: taken first
	fresh   chan *environment // idle, and never had one
	all     []*environment
	calls   atomic.Int64
	settles time.Duration // settleTime, but in tests
	ending  atomic.Int64  // environments that have answered and not yet asked for the next event
	hoping  atomic.Int64  // callers that look for an environment
	closing chan struct{} // closed by Close

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
	done   chan struct{} // closed when Close has finished
}

// New returns a function that has started nothing yet. Its error names everything that is wrong with the configuration.
func New(c Config) (*Function, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	f := &Function{
		config: c, settles: settleTime, closing: make(chan struct{}), done: make(chan struct{}),
		used: make(chan *environment, c.Concurrency), fresh: make(chan *environment, c.Concurrency),
	}
	for i := range c.Concurrency {
		e := &environment{id: i + 1}
		f.all = append(f.all, e)
		f.fresh <- e
	}
	return f, nil
}

// Invoke runs the function on one event and returns its response. The error is a *FunctionError if the function was
// given the event, or an environment for it, and did not respond. When ctx ends, Invoke returns the context's error; an
// event that was handed out by then goes on by itself, as on Lambda. ErrClosed leaves open whether the function saw the
// event. Above the bound on concurrency Invoke waits for an environment.
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if len(payload) > MaxRequest {
		return nil, ErrRequestTooLarge
	}
	e, err := f.acquire(ctx)
	if err != nil {
		return nil, err
	}
	inv := &invocation{
		id: newRequestID(), payload: payload, reply: make(chan answer, 1), result: make(chan answer, 1),
	}
	var fault Fault
	if n := f.calls.Add(1); f.config.Fault != nil {
		fault = f.config.Fault(Call{N: n, Payload: payload})
	}
	if !f.begin(func() {
		f.run(e, inv, fault)
		f.used <- e
		f.ending.Add(-1)
	}) {
		return nil, ErrClosed
	}
	select {
	case result := <-inv.result:
		return result.payload, result.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin runs work in a goroutine that Close waits for, or returns false.
func (f *Function) begin(work func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.runs.Go(work)
	return true
}

// acquire returns an idle environment, preferably one with a process.
func (f *Function) acquire(ctx context.Context) (*environment, error) {
	select {
	case e := <-f.used:
		return e, nil
	default:
	}
	// No more callers wait for an environment to become idle than there are ones about to.
	hoping := f.hoping.Add(1)
	defer f.hoping.Add(-1)
	if hoping <= f.ending.Load() {
		timer := time.NewTimer(f.settles)
		defer timer.Stop()
		select {
		case e := <-f.used:
			return e, nil
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.closing:
			return nil, ErrClosed
		}
	}
	select {
	case e := <-f.used:
		return e, nil
	case e := <-f.fresh:
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.closing:
		return nil, ErrClosed
	}
}

// Calls returns how many invocations have been given an environment.
func (f *Function) Calls() int64 { return f.calls.Load() }

// Kill ends every process of the function with SIGKILL, idle or at work, and returns how many there were.
func (f *Function) Kill() int {
	killed := 0
	for _, e := range f.all {
		if p := e.proc.Load(); p != nil && p.running() {
			p.kill()
			killed++
		}
	}
	return killed
}

// Close ends the function: invocations under way return ErrClosed, every process gets SIGTERM and, when the grace is
// over, SIGKILL, and the temporary directories are removed. When it returns nothing is left. It may be called again.
func (f *Function) Close() error {
	f.mu.Lock()
	first := !f.closed
	f.closed = true
	f.mu.Unlock()
	if !first {
		<-f.done
		return nil
	}
	defer close(f.done)
	close(f.closing)
	f.runs.Wait()
	var stops sync.WaitGroup
	faults := make([]error, len(f.all))
	for i, e := range f.all {
		stops.Go(func() {
			if p := e.proc.Load(); p != nil {
				p.stop(f.config.Grace)
			}
			if e.temp != "" {
				faults[i] = os.RemoveAll(e.temp)
			}
		})
	}
	stops.Wait()
	return errors.Join(faults...)
}
