package mapping

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Invoke runs the function on one event, up to its end or its timeout. An error means that the function failed, timed
// out or crashed, so that nothing of the event counts as processed.
type Invoke func(ctx context.Context, event []byte) (response []byte, err error)

// ErrThrottled marks an error of Invoke after which the function has certainly not seen the event. Such a try does not
// count against MaximumRetryAttempts.
var ErrThrottled = errors.New("the function was not invoked: throttled")

// maxPayload bounds one event: 6 MB, metadata and base64 included
// (https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html).
const maxPayload = 6 << 20

// callTimeout bounds each call of a source, which may wait 20 seconds for messages.
const callTimeout = 30 * time.Second

// Pace is what Lambda does not let its users set. The zero value suits one machine.
type Pace struct {
	Now   func() time.Time                     // nil: time.Now
	After func(time.Duration) <-chan time.Time // nil: time.After. Set it together with Now
	// PollInterval is the pause after a read that found nothing; 0: 100 ms. AWS polls a shard once a second.
	PollInterval time.Duration
	// After the nth failure in a row a mapping waits a random time below BackoffBase doubled n times, at most BackoffCap.
	// 0: 50 ms, 1 s.
	BackoffBase, BackoffCap time.Duration
	// Grace is how long invocations under way may go on when the mapping is stopped; 0: 30 s. After it their context ends.
	Grace time.Duration
	// Chaos, if set, is asked before each invocation, by many goroutines.
	Chaos func(Delivery) Twist
}

func (p Pace) complete() Pace {
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.After == nil {
		p.After = time.After
	}
	p.PollInterval = cmp.Or(p.PollInterval, 100*time.Millisecond)
	p.BackoffBase, p.BackoffCap = cmp.Or(p.BackoffBase, 50*time.Millisecond), cmp.Or(p.BackoffCap, time.Second)
	p.Grace = cmp.Or(p.Grace, 30*time.Second)
	return p
}

// sleep waits for d, or returns false at once when ctx ends.
func (p Pace) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-p.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// backoff waits with full jitter after the nth failure in a row, from 1.
func (p Pace) backoff(ctx context.Context, n int) bool {
	ceiling := p.BackoffCap
	if n < 32 && p.BackoffBase<<n > 0 {
		ceiling = min(ceiling, p.BackoffBase<<n)
	}
	return p.sleep(ctx, 1+rand.N(ceiling))
}

// working returns the context of invocations: it outlives stop by the grace, and ends at the latest when done is
// called.
func (p Pace) working(stop context.Context) (work context.Context, done func()) {
	work, cancel := context.WithCancel(context.WithoutCancel(stop))
	over := make(chan struct{})
	unhook := context.AfterFunc(stop, func() {
		select {
		case <-p.After(p.Grace):
			cancel()
		case <-over:
		}
	})
	return work, func() {
		unhook()
		close(over)
		cancel()
	}
}

// Delivery is an invocation about to be made, as Chaos sees it.
type Delivery struct {
	Source string   // "aws:kinesis" or "aws:sqs"
	Shard  string   // Kinesis only
	IDs    []string // sequence numbers or message ids, in order
	Try    int      // 1 for the first invocation with the first of these records
}

// Twist bends a delivery in ways that at-least-once delivery allows. The zero value changes nothing.
type Twist struct {
	// Cut delivers only the first Cut records now, and the others as a batch of their own.
	Cut int
	// Repeat delivers the records again although the function processed them: those of a stream are put back before the
	// next batch is gathered, as after a lost checkpoint; those of a queue are not deleted and made visible at once. A
	// record is repeated at most once by a stream's mapping.
	Repeat bool
	// Lapse makes a queue's messages visible again before the function is invoked, as if their timeout had run out.
	Lapse bool
}

func (p Pace) twist(d Delivery) Twist {
	if p.Chaos == nil {
		return Twist{}
	}
	return p.Chaos(d)
}
