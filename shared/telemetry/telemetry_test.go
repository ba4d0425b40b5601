package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"
)

// lines returns what was logged, without timestamps, which must be there.
func lines(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	var found []map[string]any
	for text := range strings.Lines(out.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		stamp, _ := line["timestamp"].(string)
		if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
			t.Errorf("timestamp %q: %v", stamp, err)
		}
		delete(line, "timestamp")
		found = append(found, line)
	}
	out.Reset()
	return found
}

func TestLogger_WritesTheNamesOfLambdasOwnLogs(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(&out, slog.LevelInfo)
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1"})
	log.DebugContext(ctx, "not this")
	log.WarnContext(ctx, "this", "n", 5)
	log.With("k", "v").WithGroup("g").InfoContext(t.Context(), "that", "msg", "kept")
	want := []map[string]any{{"level": "WARN", "message": "this", "n": 5.0, "requestId": "r-1"},
		{"level": "INFO", "message": "that", "k": "v", "g": map[string]any{"msg": "kept"}}}
	if diff := cmp.Diff(want, lines(t, &out)); diff != "" {
		t.Error(diff)
	}
}

func TestSums_OneLineForEachInvocation(t *testing.T) {
	var out bytes.Buffer
	s := NewSums(NewLogger(&out, slog.LevelInfo))
	s.Flush(t.Context())
	s.Count("merged", 2, nil)
	s.Count("failed", 1, nil)
	s.Count("failed", 3, errors.New("first"))
	s.Count("failed", 1, errors.New("second"))
	s.Observe("commit", 1500*time.Microsecond)
	s.Observe("commit", 3*time.Millisecond)
	s.Observe("invocation", 10*time.Millisecond)
	s.Count("merged", 5, nil)
	s.Flush(t.Context())
	s.Flush(t.Context())
	s.Count("merged", 1, nil)
	s.Flush(t.Context())
	want := []map[string]any{
		{"level": "INFO", "message": "sums", "merged": 7.0, "failed": 5.0, "failed_cause": "first", "commit_ms": 4.5,
			"commit_n":        2.0,
			"commit_worst_ms": 3.0, "invocation_ms": 10.0},
		{"level": "INFO", "message": "sums", "merged": 1.0},
	}
	if diff := cmp.Diff(want, lines(t, &out)); diff != "" {
		t.Error(diff)
	}
}

func TestSums_LoseNothingBetweenManyGoroutines(t *testing.T) {
	var out bytes.Buffer
	s := NewSums(NewLogger(&out, slog.LevelInfo))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				s.Count("n", 1, nil)
				s.Flush(t.Context())
			}
		})
	}
	all.Wait()
	total := 0.0
	for _, line := range lines(t, &out) {
		total += line["n"].(float64)
	}
	if total != 800 {
		t.Errorf("%v of 800", total)
	}
}
