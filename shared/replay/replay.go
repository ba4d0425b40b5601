package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/ingest"
)

// DefaultRounds is how many replays of a record may fail before it is parked for good.
const DefaultRounds = 3

// Counter counts records under the identities that they have. *ingest.Handler is one.
type Counter interface {
	// Replay answers for each record of b in order. What is Counted, Duplicate or Skipped is durable and done; Bad never
	// counts as it stands; Failed may count on another try. Records counted before are duplicates.
	Replay(ctx context.Context, b *envelope.Batch) []ingest.Outcome
}

// Parker keeps documents. *park.Queue is one.
type Parker interface {
	// Park keeps a parked record's document. It returns nil once the document is durable, and obeys its context. Keeping
	// a document twice does no harm.
	Park(ctx context.Context, document []byte) error
}

// Objects reads on-failure documents.
type Objects interface {
	// Get returns the whole of an object, or an error; it obeys its context.
	Get(ctx context.Context, o Object) ([]byte, error)
}

// Destination is a queue that bad records are parked in.
type Destination struct {
	ARN    string
	Parker Parker
}

// Config says how a Replayer works.
type Config struct {
	Queues  Queues
	Counter Counter // required
	Reader  *Reader // reads the ranges of notices; nil: notices are kept
	Objects Objects // fetches documents; nil: S3 notifications are kept
	// Feeds are the ARNs of the queues that trigger the replay. Neither Again nor Final may be one of them.
	Feeds []string
	// Again takes the records that a replay could not count, to be replayed once the rules are mended. Where it is nil,
	// their letters are kept.
	Again *Destination
	// Final takes them once their rounds are used up. Where it is nil, their letters are kept and reported as exhausted.
	Final  *Destination
	Rounds int    // 0: DefaultRounds
	Rules  string // digest of the rules, for what is parked

	Log *slog.Logger     // nil: discarded
	Now func() time.Time // the wall clock; nil: time.Now
}

// Replayer replays dead letters. It may be used by many goroutines.
type Replayer struct {
	c      Config
	memory memory
}

// New returns a Replayer, or an error that names every fault of c.
func New(c Config) (*Replayer, error) {
	var faults []error
	if c.Counter == nil {
		faults = append(faults, errors.New("no counter: pass what counts records"))
	}
	if c.Rounds < 0 {
		faults = append(faults, fmt.Errorf("%d rounds: allow at least one", c.Rounds))
	}
	for name, d := range map[string]*Destination{"again": c.Again, "final": c.Final} {
		switch {
		case d == nil:
		case d.Parker == nil || !plain(d.ARN) || !strings.Contains(d.ARN, ":sqs:"):
			faults = append(faults, fmt.Errorf("destination %s: pass a queue's ARN and what sends to it", name))
		case slices.Contains(c.Feeds, d.ARN):
			faults = append(faults, fmt.Errorf("destination %s: queue %s triggers the replay, which would go round in a loop; "+
				"name another queue", name, d.ARN))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("replay configuration: %w", err)
	}
	if c.Rounds == 0 {
		c.Rounds = DefaultRounds
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Replayer{c: c}, nil
}

// Counts say what became of the records of a letter in one replay.
type Counts struct {
	Counted, Duplicate, Skipped int // done
	Again                       int // parked, to be replayed again
	Final                       int // parked for good
	Bad                         int // bad, and still in the letter alone
	Failed                      int // to be tried again
}

// Result is what became of one message.
type Result struct {
	Message string // its id
	// Delete says that all that the message stands for is durable elsewhere: it should be deleted. Otherwise it must stay.
	Delete bool
	// Exhausted says that a record of it has used up its rounds, and stays here for want of a final queue.
	Exhausted bool
	Counts    Counts
	Lost      *LostError // records of a range that no longer exist; the message stays
	Err       error      // why it stays; nil with Delete
}

// Handle replays messages, one after the other, and returns what became of each, in order. It deletes none. Messages
// that it has no time left for stay. On a FIFO queue, what stands behind one that stays in its group stays too,
// untried.
func (r *Replayer) Handle(ctx context.Context, messages []Message) []Result {
	results := make([]Result, len(messages))
	type line struct{ queue, group string }
	held := map[line]bool{}
	for i, m := range messages {
		group := line{m.Queue, m.Attributes[attributeGroup]}
		fifo := strings.HasSuffix(m.Queue, ".fifo")
		if fifo && held[group] {
			results[i] = Result{Message: m.ID, Err: errHeld}
			continue
		}
		results[i] = r.replay(ctx, m)
		held[group] = held[group] || !results[i].Delete
		r.log(ctx, m, results[i])
	}
	return results
}

// Invoke handles one invocation by a queue: raw is the event, the answer names the messages that stay, for a mapping
// with ReportBatchItemFailures, which deletes the others. An error says that none may be deleted.
func (r *Replayer) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	messages, err := Messages(raw)
	if err != nil {
		return nil, err
	}
	batch, stay := envelope.Batch{Kind: envelope.SQS}, []int{}
	for i, result := range r.Handle(ctx, messages) {
		batch.Records = append(batch.Records, envelope.Record{ID: result.Message})
		if !result.Delete {
			stay = append(stay, i)
		}
	}
	return envelope.Respond(&batch, stay)
}

// log writes a line for each message that does not simply end; it says where, never what.
func (r *Replayer) log(ctx context.Context, m Message, result Result) {
	c := result.Counts
	attributes := []slog.Attr{slog.String("queue", m.Queue), slog.String("message", m.ID), slog.Int("counted", c.Counted),
		slog.Int("duplicate", c.Duplicate), slog.Int("skipped", c.Skipped), slog.Int("parked_again", c.Again),
		slog.Int("parked_for_good", c.Final), slog.Int("bad", c.Bad), slog.Int("failed", c.Failed)}
	if lost := result.Lost; lost != nil {
		attributes = append(attributes, slog.Int("lost_at_least", lost.Lost()), slog.Int("of", lost.Of),
			slog.Int("found", lost.Found), slog.String("range", lost.Range.String()))
	}
	if result.Delete {
		r.c.Log.LogAttrs(ctx, slog.LevelInfo, "letter replayed", attributes...)
		return
	}
	attributes = append(attributes, slog.Bool("exhausted", result.Exhausted), slog.String("error", result.Err.Error()))
	r.c.Log.LogAttrs(ctx, slog.LevelWarn, "letter stays in its queue", attributes...)
}

// memory is what a Replayer knows of letters that stay, so that their next delivery does not begin again or park a
// record once more. It may be forgotten at any time: all that it saves is work.
type memory struct {
	mu       sync.Mutex
	progress map[Range]Progress
	parked   map[string]Counts // by identity
}

const maxProgress, maxParked = 64, 4096

func (m *memory) reached(of Range) Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress[of]
}

func (m *memory) reach(of Range, p Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.progress == nil || len(m.progress) >= maxProgress {
		m.progress = map[Range]Progress{}
	}
	m.progress[of] = p
}

func (m *memory) forget(of Range) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.progress, of)
}

func (m *memory) wasParked(identity string) (Counts, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.parked[identity]
	return c, ok
}

func (m *memory) park(identity string, c Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parked == nil || len(m.parked) >= maxParked {
		m.parked = map[string]Counts{}
	}
	m.parked[identity] = c
}
