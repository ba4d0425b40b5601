package wal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"
)

// Source is what a Consumer needs of a log; *Log is one.
type Source interface {
	Supports(Durability) bool
	// Flush returns the last position that has d, after making it so for all that was appended before the call.
	Flush(context.Context, Durability) (Position, error)
	State() State
	// Scan yields records in order; Data may be reused as soon as the next one is asked for.
	Scan(from, through Position) iter.Seq2[Record, error]
	Truncate(ctx context.Context, through Position, d Durability) error
	// Consume makes the caller the log's only consumer until it calls release; false where there is one already.
	Consume() (release func(), ok bool)
}

// Sender is the downstream.
type Sender interface {
	// Send offers records in order and says how far it has taken them for good. The records, their Data included, may be
	// used only until it returns. An error means that none was taken and that the same records shall be offered again.
	Send(ctx context.Context, records []Record) (Result, error)
}

// SenderFunc is a Sender of one function.
type SenderFunc func(context.Context, []Record) (Result, error)

// Send calls f.
func (f SenderFunc) Send(ctx context.Context, records []Record) (Result, error) {
	return f(ctx, records)
}

// Result is how far a Sender got. It must show progress: a prefix, a rejection, or both.
type Result struct {
	Through  Position   // the last record taken; 0: none
	Rejected *Rejection // the record right behind the prefix can never be taken
}

// Rejection says that the downstream will never take a record.
type Rejection struct {
	Position Position
	Reason   error
}

// Acknowledger moves the mark up to which records count as delivered. The default truncates the log.
type Acknowledger interface {
	Supports(Durability) bool
	// Acknowledge returns nil once a restart does not deliver the records up to through again, as far as d promises.
	Acknowledge(ctx context.Context, through Position, d Durability) error
}

// Guarantee says across which failures a Consumer delivers every record at least once.
type Guarantee uint8

const (
	// CrashPersistent offers only what is Synced, and so delivers it also after the end of the host.
	CrashPersistent Guarantee = iota
	// ProcessLifetime offers what is Volatile.
	ProcessLifetime
)

// Policy says what becomes of a record that can never be delivered.
type Policy uint8

const (
	// StopOnRejection keeps the record and ends Run, Drain and Next with ErrPermanentRejection.
	StopOnRejection Policy = iota
	// DeadLetterRejected hands the record to DeadLetter and goes on.
	DeadLetterRejected
	// DiscardRejected forgets the record and goes on.
	DiscardRejected
)

// Sentinels of a Consumer. Their errors hold no payload, id or text of a cause; errors.As and errors.Is find the cause.
var (
	ErrRunning = errors.New("another Run, Drain or Next has the log: wait until it returns")

	ErrUnsupportedDeliveryGuarantee = errors.New("the guarantee is not available: " +
		"choose one that the log and the acknowledger support")
	ErrBatchTooLarge = errors.New("the next record is larger than MaxBytes: " +
		"raise it, or choose another rejection policy")
	ErrInvalidSendResult = errors.New("the sender's result does not fit what it was offered: " +
		"name a prefix by its last position, and reject only the record behind it")
	ErrPermanentRejection = errors.New("the downstream will never take the next record: " +
		"remove its cause, or choose another rejection policy")
	ErrConsumerStalled = errors.New("the next record is not getting through: look at the downstream")
	ErrPanic           = errors.New("a callback panicked: mend it, then start again")
	ErrSend            = errors.New("the sender failed: the same records are offered again")
	ErrDeadLetter      = errors.New("the dead-letter handler failed: the same record is handed to it again")
	ErrAcknowledge     = errors.New("the downstream accepted records but the truncation failed: " +
		"they are offered again after a restart")
	ErrLog = errors.New("the log failed: look at its disk, then start again")
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
	DeadLetter      func(ctx context.Context, r Record, reason error) error
	IdleDelay       time.Duration // Run's wait when nothing is left; default 250 ms
	RetryDelay      time.Duration // Run's first wait after a failed Send; default 1 s, or MaxRetryDelay if that is shorter
	MaxRetryDelay   time.Duration // default 30 s, or RetryDelay if that is longer
	StallAfter      time.Duration // the head is stalled when it is this old; default 1 min
	StallAttempts   int           // or has failed this often; default 10
	OnInternalError func(error)   // told of what Run retries; nil: Logf
	Logf            func(format string, args ...any)
	Now             func() time.Time                                 // wall clock
	Sleep           func(ctx context.Context, d time.Duration) error // returns early with ctx
	Rand            func(n int64) int64                              // uniform in [0, n)
}

// Consumer delivers a log's records to a Sender: in order, at least once, and never past what the Sender took. It
// starts nothing by itself and never closes the log.
type Consumer struct {
	cfg        ConsumerConfig
	durability Durability
	truncates  bool

	mu    sync.Mutex
	stats Stats

	batch   []Record
	payload []byte
}

// NewConsumer checks the configuration; all its faults are reported at once.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	c := &Consumer{cfg: cfg, truncates: absent(cfg.Acknowledger)}
	faults := []error{
		missing(cfg.Source, "Source", "pass an open *Log"),
		missing(cfg.Sender, "Sender", "pass what takes the records"),
		c.cfg.policyFault(),
		c.cfg.limitFault(),
	}
	switch cfg.Guarantee {
	case CrashPersistent:
		c.durability = Synced
	case ProcessLifetime:
		c.durability = Volatile
	default:
		faults = append(faults, ErrUnsupportedDeliveryGuarantee)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("new consumer: %w", err)
	}
	if !cfg.Source.Supports(c.durability) || !c.truncates && !cfg.Acknowledger.Supports(c.durability) {
		return nil, fmt.Errorf("new consumer: %w", ErrUnsupportedDeliveryGuarantee)
	}
	c.cfg.applyDefaults()
	if c.truncates {
		c.cfg.Acknowledger = truncation{cfg.Source}
	}
	return c, nil
}

func missing(value any, field, remedy string) error {
	if !absent(value) {
		return nil
	}
	return fmt.Errorf("%s is nil: %s", field, remedy)
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
		{"MaxRetryDelay", c.MaxRetryDelay}, {"StallAfter", c.StallAfter},
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
	c.MaxBatch = orElse(c.MaxBatch, 128)
	c.MaxBytes = orElse(c.MaxBytes, 4<<20)
	c.IdleDelay = orElse(c.IdleDelay, 250*time.Millisecond)
	switch {
	case c.RetryDelay == 0 && c.MaxRetryDelay == 0:
		c.RetryDelay, c.MaxRetryDelay = time.Second, 30*time.Second
	case c.RetryDelay == 0:
		c.RetryDelay = min(time.Second, c.MaxRetryDelay)
	case c.MaxRetryDelay == 0:
		c.MaxRetryDelay = max(30*time.Second, c.RetryDelay)
	}
	c.StallAfter = orElse(c.StallAfter, time.Minute)
	c.StallAttempts = orElse(c.StallAttempts, 10)
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

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
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

type truncation struct{ Source }

func (t truncation) Acknowledge(ctx context.Context, through Position, d Durability) error {
	return t.Truncate(ctx, through, d)
}
