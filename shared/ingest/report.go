package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/merge"
)

// Names under which a Recorder hears of records and documents, beside those of package merge. Each record of a batch is
// counted under exactly one of done, bad, failed and merge.MetricParked.
const (
	MetricRecords   = "records"          // records that came in
	MetricDone      = "records_done"     // records that need not come again
	MetricBad       = "records_bad"      // bad records left to their source's own dead-letter queue
	MetricFailed    = "records_failed"   // records that come again
	MetricDocuments = "documents"        // documents read
	MetricSkipped   = "documents_skip"   // documents that no rule counts
	MetricPassed    = "envelope_skip"    // log lines that are no JSON objects, control messages and test notifications
	MetricExpired   = "adds_expired"     // adds left out because their bucket's retention was over
	MetricErrors    = "invocation_error" // invocations whose whole batch comes again

	TimeInvocation = "invocation" // how long an invocation took
)

// maxReasons bounds how many different reasons one invocation logs.
const maxReasons = 10

type silent struct{}

func (silent) Count(string, int, error)      {}
func (silent) Observe(string, time.Duration) {}
func (silent) Flush(context.Context)         {}

func (d *documents) add(events, expired int) {
	d.read++
	d.expired += expired
	if events == 0 {
		d.skipped++
	}
}

// report tells the recorder and the log what became of the records.
func (in *invocation) report(ctx context.Context) {
	var n [parked + 1]int
	var first [parked + 1]error
	for _, f := range in.fates {
		n[f.verdict]++
		if first[f.verdict] == nil {
			first[f.verdict] = f.reason
		}
	}
	in.tell(MetricRecords, len(in.fates), nil)
	in.tell(MetricDocuments, in.docs.read, nil)
	in.tell(MetricSkipped, in.docs.skipped, nil)
	in.tell(MetricPassed, in.docs.passed, nil)
	in.tell(MetricExpired, in.docs.expired, nil)
	for verdict, name := range [...]string{failed: MetricFailed, done: MetricDone, bad: MetricBad,
		parked: merge.MetricParked} {
		in.tell(name, n[verdict], first[verdict])
	}
	if n[done] < len(in.fates) {
		in.logReasons(ctx)
	}
}

// reason is why some records did not end well, for the log.
type reason struct {
	verdict verdict
	text    string
	records int
	first   int
	stack   []byte
}

// logReasons writes one line for each different reason. A reason names rules and limits, never what a record says; the
// position of its first record is its source's own.
func (in *invocation) logReasons(ctx context.Context) {
	var reasons []reason
	more := 0
	for i, f := range in.fates {
		if f.verdict == done {
			continue
		}
		text := "unknown"
		if f.reason != nil {
			text = f.reason.Error()
		}
		at := slices.IndexFunc(reasons, func(r reason) bool { return r.verdict == f.verdict && r.text == text })
		switch {
		case at >= 0:
			reasons[at].records++
		case len(reasons) == maxReasons:
			more++
		default:
			reasons = append(reasons, reason{f.verdict, text, 1, i, stackOf(f.reason)})
		}
	}
	for _, r := range reasons {
		in.logReason(ctx, r)
	}
	if more > 0 {
		in.log.WarnContext(ctx, "records with further reasons", "records", more)
	}
}

func (in *invocation) logReason(ctx context.Context, r reason) {
	message, level := "records failed and come again", slog.LevelWarn
	switch {
	case r.stack != nil:
		level = slog.LevelError
	case r.verdict == bad && !in.parks():
		message = "bad records come again until their source gives them up"
	case r.verdict == parked:
		message = "bad records parked"
	}
	attributes := []slog.Attr{slog.Int("records", r.records), slog.String("reason", r.text), slog.String("source",
		in.batch.Source)}
	if id := in.batch.Records[r.first].ID; in.batch.Kind == envelope.Kinesis {
		attributes = append(attributes, slog.String("shard", in.batch.Shard), slog.String("first", id))
	} else {
		attributes = append(attributes, slog.String("first", id))
	}
	if r.stack != nil {
		attributes = append(attributes, slog.String("stack", string(r.stack)))
	}
	in.log.LogAttrs(ctx, level, message, attributes...)
}

func stackOf(err error) []byte {
	var p *merge.PanicError
	if errors.As(err, &p) {
		return p.Stack
	}
	return nil
}

// finish ends an invocation's report; err is what the invocation returns.
func (h *Handler) finish(ctx context.Context, start time.Time, err error) {
	var ignored error
	defer contain(&ignored)
	if err != nil {
		h.tell(MetricErrors, 1, err)
		attributes := []slog.Attr{slog.String("error", err.Error())}
		if stack := stackOf(err); stack != nil {
			attributes = append(attributes, slog.String("stack", string(stack)))
		}
		h.log.LogAttrs(ctx, slog.LevelError, "the whole batch comes again", attributes...)
	}
	h.recorder.Observe(TimeInvocation, h.now().Sub(start))
	h.recorder.Flush(ctx)
}

func (h *Handler) tell(name string, n int, cause error) {
	if n > 0 {
		var ignored error
		defer contain(&ignored)
		h.recorder.Count(name, n, cause)
	}
}
