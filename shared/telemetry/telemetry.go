// Package telemetry writes what a function does to its log: JSON lines, and one of them for each invocation with the
// sums of all that was recorded during it.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// NewLogger returns a logger that writes one JSON object a line to w, under the names that Lambda's own JSON logs have:
// timestamp, level, message and, during an invocation, requestId
// (https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html).
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(requests{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: rename})})
}

func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "timestamp"
	case slog.MessageKey:
		a.Key = "message"
	}
	return a
}

// requests adds the id of the invocation that a line belongs to.
type requests struct{ slog.Handler }

func (r requests) Handle(ctx context.Context, line slog.Record) error {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		line.AddAttrs(slog.String("requestId", lc.AwsRequestID))
	}
	return r.Handler.Handle(ctx, line)
}

func (r requests) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requests{r.Handler.WithAttrs(attrs)}
}
func (r requests) WithGroup(name string) slog.Handler { return requests{r.Handler.WithGroup(name)} }

// Sums adds up what is recorded, and logs it as one line at each Flush. It is a merge.Recorder, and may be used by many
// goroutines; invocations that run at once share one line.
type Sums struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[string]int
	causes map[string]error
	times  map[string]span
}

type span struct {
	n            int
	total, worst time.Duration
}

// NewSums returns Sums that log to log.
func NewSums(log *slog.Logger) *Sums {
	return &Sums{log: log, counts: map[string]int{}, causes: map[string]error{}, times: map[string]span{}}
}

// Count adds n to name, and keeps the first cause.
func (s *Sums) Count(name string, n int, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name] += n
	if cause != nil && s.causes[name] == nil {
		s.causes[name] = cause
	}
}

// Observe adds took to name.
func (s *Sums) Observe(name string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.times[name]
	s.times[name] = span{at.n + 1, at.total + took, max(at.worst, took)}
}

// Flush logs one line with every count by its name, its first cause as <name>_cause, and of every time its sum and, if
// there were several, its number and the longest, in milliseconds: <name>_ms, <name>_n, <name>_worst_ms. It then begins
// anew. Nothing recorded: no line.
func (s *Sums) Flush(ctx context.Context) {
	s.mu.Lock()
	var attrs []slog.Attr
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		attrs = append(attrs, slog.Int(name, s.counts[name]))
		if cause := s.causes[name]; cause != nil {
			attrs = append(attrs, slog.String(name+"_cause", cause.Error()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.times)) {
		at := s.times[name]
		attrs = append(attrs, slog.Float64(name+"_ms", milliseconds(at.total)))
		if at.n > 1 {
			attrs = append(attrs, slog.Int(name+"_n", at.n), slog.Float64(name+"_worst_ms", milliseconds(at.worst)))
		}
	}
	clear(s.counts)
	clear(s.causes)
	clear(s.times)
	s.mu.Unlock()
	if len(attrs) > 0 {
		s.log.LogAttrs(ctx, slog.LevelInfo, "sums", attrs...)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
