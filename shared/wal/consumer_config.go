package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"reflect"
	"time"
)

// MaxBatchLimit is the largest MaxBatch.
const MaxBatchLimit = 4096

// ConsumerConfig configures a Consumer. Source and Sender are required; zero values of the others are their defaults.
type ConsumerConfig struct {
	Source       Source
	Sender       Sender
	Acknowledger Acknowledger // nil: truncates Source
	Guarantee    Guarantee
	MaxBatch     int   // records a Send; default 128, at most MaxBatchLimit
	MaxBytes     int64 // of their Data; default 4 MiB
	Policy       Policy
	// DeadLetter keeps a rejected record somewhere else. It may see one again after a restart, and must then not keep two.
	DeadLetter func(ctx context.Context, r Record, reason error) error
	IdleDelay  time.Duration // Run's wait when nothing is left; default 250 ms
	// RetryDelay is Run's first wait after a failed Send; default 1 s, or MaxRetryDelay if that is shorter.
	RetryDelay    time.Duration
	MaxRetryDelay time.Duration // default 30 s, or RetryDelay if that is longer
	// SettleTimeout bounds each Acknowledge and DeadLetter, which no end of ctx stops; default 30 s.
	SettleTimeout   time.Duration
	StallAfter      time.Duration // the head is stalled when it is this old; default 1 min
	StallAttempts   int           // or has failed this often; default 10
	OnInternalError func(error)   // told of what Run retries, and once of a stalled head; nil: Logf

	// What follows has defaults of the standard library: log.Printf, time.Now, a timer, math/rand.

	Logf  func(format string, args ...any)
	Now   func() time.Time                                 // wall clock
	Sleep func(ctx context.Context, d time.Duration) error // returns early with ctx; its error is not looked at
	Rand  func(n int64) int64                              // uniform in [0, n)
}

// fault returns all that is wrong with the configuration.
func (c *ConsumerConfig) fault() error {
	faults := []error{c.policyFault(), c.limitFault()}
	if absent(c.Source) {
		faults = append(faults, errors.New("Source is nil: pass an open *Log"))
	}
	if absent(c.Sender) {
		faults = append(faults, errors.New("Sender is nil: pass what takes the records"))
	}
	if c.Acknowledger != nil && absent(c.Acknowledger) {
		faults = append(faults, errors.New("Acknowledger is a nil pointer: leave it out, or pass one"))
	}
	if c.Guarantee > ProcessLifetime {
		faults = append(faults, fmt.Errorf("Guarantee %d: %w", c.Guarantee, ErrUnsupportedDeliveryGuarantee))
	}
	return errors.Join(faults...)
}

// absent reports whether an interface holds nothing that could be called.
func absent(value any) bool {
	if value == nil {
		return true
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Interface, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}

func (c *ConsumerConfig) policyFault() error {
	switch {
	case c.Policy > DiscardRejected:
		return fmt.Errorf("unknown Policy %d: use StopOnRejection, DeadLetterRejected or DiscardRejected", c.Policy)
	case c.Policy == DeadLetterRejected && c.DeadLetter == nil:
		return errors.New("DeadLetter is nil: DeadLetterRejected needs a handler")
	case c.Policy != DeadLetterRejected && c.DeadLetter != nil:
		return errors.New("DeadLetter is set but never called: choose DeadLetterRejected, or leave it out")
	}
	return nil
}

func (c *ConsumerConfig) limitFault() error {
	var faults []error
	if c.MaxBatch < 0 || c.MaxBatch > MaxBatchLimit {
		faults = append(faults, fmt.Errorf("MaxBatch %d: use 1 to %d, or 0 for 128", c.MaxBatch, MaxBatchLimit))
	}
	if c.MaxBytes < 0 {
		faults = append(faults, fmt.Errorf("MaxBytes %d: use 1 or more, or 0 for 4 MiB", c.MaxBytes))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"IdleDelay", c.IdleDelay}, {"RetryDelay", c.RetryDelay},
		{"MaxRetryDelay", c.MaxRetryDelay}, {"SettleTimeout", c.SettleTimeout}, {"StallAfter", c.StallAfter},
	} {
		if d.value < 0 {
			faults = append(faults, fmt.Errorf("%s %s: use a positive duration, or 0 for the default", d.name, d.value))
		}
	}
	if c.StallAttempts < 0 {
		faults = append(faults, fmt.Errorf("StallAttempts %d: use 1 or more, or 0 for 10", c.StallAttempts))
	}
	if c.RetryDelay > 0 && c.MaxRetryDelay > 0 && c.MaxRetryDelay < c.RetryDelay {
		faults = append(faults, fmt.Errorf("MaxRetryDelay %s is below RetryDelay %s: swap them, or leave one out",
			c.MaxRetryDelay, c.RetryDelay))
	}
	return errors.Join(faults...)
}

func (c *ConsumerConfig) applyDefaults() {
	c.MaxBatch = cmp.Or(c.MaxBatch, 128)
	c.MaxBytes = cmp.Or(c.MaxBytes, 4<<20)
	c.IdleDelay = cmp.Or(c.IdleDelay, 250*time.Millisecond)
	switch {
	case c.RetryDelay == 0 && c.MaxRetryDelay == 0:
		c.RetryDelay, c.MaxRetryDelay = time.Second, 30*time.Second
	case c.RetryDelay == 0:
		c.RetryDelay = min(time.Second, c.MaxRetryDelay)
	case c.MaxRetryDelay == 0:
		c.MaxRetryDelay = max(30*time.Second, c.RetryDelay)
	}
	c.SettleTimeout = cmp.Or(c.SettleTimeout, 30*time.Second)
	c.StallAfter = cmp.Or(c.StallAfter, time.Minute)
	c.StallAttempts = cmp.Or(c.StallAttempts, 10)
	if c.Logf == nil {
		c.Logf = log.Printf
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Rand == nil {
		c.Rand = rand.Int64N
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
