package merge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"reflect"
	"sync"
	"time"
)

// Defaults of Config, and its limits.
const (
	DefaultAttempts    = 3
	DefaultContended   = 12
	DefaultBackoff     = 50 * time.Millisecond
	DefaultBackoffCap  = 5 * time.Second
	DefaultCallTimeout = 5 * time.Second
	DefaultTimeout     = 15 * time.Minute // the longest that Lambda lets a function run
	DefaultLeaseMargin = 5 * time.Second
	DefaultHorizon     = 35 * 24 * time.Hour
	DefaultCacheWait   = 250 * time.Millisecond
	DefaultWorkers     = 16
	DefaultSlots       = 8
	DefaultChunkEvents = 1000

	MinHorizon = time.Hour // longer than any invocation and its lease
	MaxSlots   = 256
)

// Config says how a Merger works. The zero value of every field but Store stands for its default.
type Config struct {
	Store    Store    // keeps claims, commit records and counters; required
	Recorder Recorder // hears what happens; nil: nobody does
	Cache    Cache    // is told of totals once they are durable; nil: none

	Now      func() time.Time // the wall clock, for leases and expiries; nil: time.Now
	Sleep    Sleep            // waits between tries; nil: a timer
	Rand     mathrand.Source  // draws jitter and slots; nil: the runtime's own. It need not be safe for many goroutines
	NewToken func() Token     // names attempts, never the same twice; nil: 128 random bits

	Attempts    int           // tries of a call whose outcome is unknown; 0: 3
	Contended   int           // tries of a call that throttling or another transaction turns away; 0: 12
	Backoff     time.Duration // longest first wait between two tries; it doubles, and is jittered down to 0; 0: 50 ms
	BackoffCap  time.Duration // longest wait of all, jitter included; 0: 5 s, or Backoff if that is longer
	CallTimeout time.Duration // longest single call of the Store; 0: 5 s
	Timeout     time.Duration // of a merge whose context has no deadline; 0: 15 minutes

	LeaseMargin    time.Duration // a claim's lease ends this long after the deadline, or after 15 minutes; 0: 5 s
	Horizon        time.Duration // how long an identity is remembered; 0: 35 days, at least one hour
	ReserveRelease time.Duration // most time kept back for giving claims back; 0: 30 s
	CacheWait      time.Duration // longest that a merge waits for the Cache; 0: 250 ms

	Workers     int // chunks, takeovers and releases under way at once; 0: 16
	Slots       int // rows that one counter is spread over when it is hot; 0: 8, at most 256
	ChunkEvents int // events in one attempt at most; 0: 1000
}

// Sleep waits for d or until ctx is done, and then returns its error.
type Sleep func(ctx context.Context, d time.Duration) error

// Merger counts events exactly once. It may be used by many goroutines, and should live as long as the process: it
// remembers which slots are contended.
type Merger struct {
	cfg   Config
	draw  func(n int64) int64 // uniform in [0, n)
	slots slots
	gains chan struct{} // one for each call of the Cache under way, abandoned ones included
}

// New returns a Merger, or an error that names every fault of cfg.
func New(cfg Config) (*Merger, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	m := &Merger{cfg: cfg, draw: mathrand.Int64N, slots: slots{width: cfg.Slots}, gains: make(chan struct{}, cfg.Workers)}
	if cfg.Rand != nil {
		source := mathrand.New(cfg.Rand)
		var mu sync.Mutex
		m.draw = func(n int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			return source.Int64N(n)
		}
	}
	return m, nil
}

// complete fills in the defaults and reports every fault.
func (c *Config) complete() error {
	var faults []error
	if isNil(c.Store) {
		faults = append(faults, errors.New("Store is nil: pass the store that keeps claims and counters"))
	}
	faults = append(faults,
		whole("Attempts", &c.Attempts, DefaultAttempts, math.MaxInt),
		whole("Contended", &c.Contended, DefaultContended, math.MaxInt),
		whole("Workers", &c.Workers, DefaultWorkers, math.MaxInt),
		whole("Slots", &c.Slots, DefaultSlots, MaxSlots),
		whole("ChunkEvents", &c.ChunkEvents, DefaultChunkEvents, math.MaxInt32),
		c.completeBackoff(),
		span("CallTimeout", &c.CallTimeout, DefaultCallTimeout, 1),
		span("Timeout", &c.Timeout, DefaultTimeout, 1),
		span("LeaseMargin", &c.LeaseMargin, DefaultLeaseMargin, 1),
		span("Horizon", &c.Horizon, DefaultHorizon, MinHorizon),
		span("ReserveRelease", &c.ReserveRelease, maxReleaseBudget, 1),
		span("CacheWait", &c.CacheWait, DefaultCacheWait, 1),
	)
	if isNil(c.Cache) {
		c.Cache = nil
	}
	if isNil(c.Recorder) {
		c.Recorder = silent{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.NewToken == nil {
		c.NewToken = func() Token { return Token(rand.Text()) }
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("merge configuration: %w", err)
	}
	return nil
}

// completeBackoff derives the one that is not set from the one that is.
func (c *Config) completeBackoff() error {
	base, limit := DefaultBackoff, DefaultBackoffCap
	if c.BackoffCap > 0 {
		base = min(base, c.BackoffCap)
	}
	if c.Backoff > 0 {
		limit = max(limit, c.Backoff)
	}
	err := errors.Join(span("Backoff", &c.Backoff, base, 1), span("BackoffCap", &c.BackoffCap, limit, 1))
	if err == nil && c.BackoffCap < c.Backoff {
		return fmt.Errorf("BackoffCap %v is below Backoff %v: raise it, or leave one of them 0", c.BackoffCap, c.Backoff)
	}
	return err
}

func whole(name string, field *int, otherwise, most int) error {
	if *field == 0 {
		*field = otherwise
	}
	if *field < 0 || *field > most {
		return fmt.Errorf("%s is %d: set it between 1 and %d, or to 0 for %d", name, *field, most, otherwise)
	}
	return nil
}

func span(name string, field *time.Duration, otherwise, least time.Duration) error {
	if *field == 0 {
		*field = otherwise
	}
	if *field < least {
		return fmt.Errorf("%s is %v: set it to at least %v, or to 0 for %v", name, *field, least, otherwise)
	}
	return nil
}

// isNil also sees through an interface that holds a nil pointer or function.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return r.IsNil()
	default:
		return false
	}
}
