package wal

import (
	"context"
	"fmt"
	"iter"
	"sync"
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
	// used only until it returns, and Data only be read. An error means that none was taken and that the same records
	// shall be offered again; after the end of ctx it counts as no failure.
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
	// Acknowledge returns nil once a restart does not deliver the records up to through again, as far as d promises. The
	// end of the caller's context does not reach it; ConsumerConfig.SettleTimeout does. through may be where it already
	// is, and records of which only damage is left may lie before it.
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

// Consumer delivers a log's records to a Sender: in order, at least once, and never past what the Sender took. It
// starts nothing by itself and never closes the log.
type Consumer struct {
	cfg        ConsumerConfig
	durability Durability

	mu      sync.Mutex // guards what follows
	stats   Stats
	counted Position // the last record that is in Stats.PermanentRejections

	// Of whoever has the log to himself.
	acknowledged Position // records up to here are not offered again
	lost         uint64   // of State.Lost, what was passed over
	batch        []Record
	payload      []byte // the Data of batch
}

// NewConsumer checks the configuration; all its faults are reported at once. It starts nothing and reads nothing.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	c := &Consumer{cfg: cfg, durability: Synced}
	if cfg.Guarantee == ProcessLifetime {
		c.durability = Volatile
	}
	if err := c.cfg.fault(); err != nil {
		return nil, fmt.Errorf("new consumer: %w", err)
	}
	if cfg.Acknowledger == nil {
		c.cfg.Acknowledger = truncation{cfg.Source}
	}
	err := c.supported("log", cfg.Source.Supports)
	if err == nil {
		err = c.supported("acknowledger", c.cfg.Acknowledger.Supports)
	}
	if err != nil {
		return nil, fmt.Errorf("new consumer: %w", err)
	}
	c.cfg.applyDefaults()
	return c, nil
}

func (c *Consumer) supported(callback string, supports func(Durability) bool) error {
	return call(callback, ErrUnsupportedDeliveryGuarantee, func() error {
		if !supports(c.durability) {
			return fmt.Errorf("the %s lacks durability %d", callback, c.durability)
		}
		return nil
	})
}

// truncation is the Acknowledger that truncates the log.
type truncation struct{ Source }

func (t truncation) Acknowledge(ctx context.Context, through Position, d Durability) error {
	return t.Truncate(ctx, through, d)
}
