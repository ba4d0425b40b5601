package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

// Rules say what a document counts. *rules.Set is one.
type Rules interface {
	// Events appends the events of a document to dst, all or none; an error that wraps rules.ErrBadRecord says that it can
	// never be counted. It keeps nothing of doc.JSON.
	Events(dst []tally.Event, doc rules.Document, now time.Time) (events []tally.Event, expired int, err error)
	// Digest names the rules.
	Digest() string
	// Envelopes are the wrappings that are opened before Events sees what is in them.
	Envelopes() tally.Envelopes
}

// Sink counts events. *merge.Merger is one; a Sink must give the same promises.
type Sink interface {
	// MergeMany answers each event in order, within ctx and with time to spare. A Done outcome is durable.
	MergeMany(ctx context.Context, events []tally.Event) []merge.Outcome
}

// Parker keeps bad records where they can be replayed from.
type Parker interface {
	// Park keeps one document of package envelope's Parked. It returns nil once the document is durable, and obeys its
	// context. It is called by many goroutines; keeping a document twice does no harm.
	Park(ctx context.Context, document []byte) error
}

// Recorder hears what happens, like merge.Recorder, and when an invocation is over.
type Recorder interface {
	merge.Recorder
	// Flush ends what was recorded since the last Flush.
	Flush(ctx context.Context)
}

// Config says how a Handler works.
type Config struct {
	Kind  envelope.Kind // the source that the function serves; required
	Rules Rules         // required
	Sink  Sink          // required
	// Parker keeps bad Kinesis records. Where it is nil they are reported failed, like all bad SQS messages, which the
	// queue's redrive policy moves on.
	Parker Parker
	// ByPosition gives each event the position of its Kinesis record, for a Sink that counts by it.
	ByPosition bool

	Recorder Recorder         // nil: nobody hears
	Log      *slog.Logger     // nil: discarded
	Now      func() time.Time // the wall clock; nil: time.Now
}

// Handler serves the invocations of one function. It may be used by many goroutines.
type Handler struct {
	kind      envelope.Kind
	rules     Rules
	sink      Sink
	parker    Parker
	position  bool
	recorder  Recorder
	log       *slog.Logger
	now       func() time.Time
	opener    *envelope.Opener
	announced *memory // records too large to park
	mergeAt   int     // events that wait at most for one merge, and those of one record
}

// New returns a Handler, or an error that names every fault of c.
func New(c Config) (*Handler, error) {
	var faults []error
	if c.Kind != envelope.Kinesis && c.Kind != envelope.SQS {
		faults = append(faults, fmt.Errorf("kind %q: set it to %q or %q", c.Kind, envelope.Kinesis, envelope.SQS))
	}
	if c.ByPosition && c.Kind != envelope.Kinesis {
		faults = append(faults, fmt.Errorf("kind %q has no positions: count it without ByPosition", c.Kind))
	}
	if c.Rules == nil {
		faults = append(faults, errors.New("no rules: pass those that say what to count"))
	}
	if c.Sink == nil {
		faults = append(faults, errors.New("no sink: pass what counts events"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("ingest configuration: %w", err)
	}
	h := &Handler{kind: c.Kind, rules: c.Rules, sink: c.Sink, parker: c.Parker, position: c.ByPosition,
		recorder: c.Recorder, log: c.Log, now: c.Now, announced: new(memory), mergeAt: maxPending,
		opener: envelope.NewOpener(c.Rules.Envelopes())}
	if h.recorder == nil {
		h.recorder = silent{}
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.now == nil {
		h.now = time.Now
	}
	return h, nil
}

func (h *Handler) invocation(batch *envelope.Batch, start time.Time) *invocation {
	n := len(batch.Records)
	return &invocation{
		Handler: h, batch: batch, start: start, serial: batch.Serial(), fates: make([]fate, n),
		events: make([]tally.Event, 0, n), pending: make([]pending, 0, n),
		busy: map[string]bool{}, held: map[string]bool{},
	}
}

// place gives the events of a record its position.
func (in *invocation) place(events []tally.Event) {
	position := envelope.SequenceNumber(in.record.ID).Position()
	for i := range events {
		events[i].Position = position
	}
}
