package env

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func from(values map[string]string) *Settings {
	return New(func(name string) string { return values[name] })
}

func TestSettings_EveryFaultIsReportedAtOnceAndSaysWhatToDo(t *testing.T) {
	s := from(map[string]string{"HORIZON": "soon", "SHORT": "1m", "LEVEL": "loud", "QUEUE": "parked",
		"FIFO":  "https://sqs/1/a.fifo",
		"BLANK": " \t"})
	s.Required("TABLE", "the table of counters")
	s.Required("BLANK", "something")
	s.Duration("HORIZON", time.Hour, time.Hour)
	s.Duration("SHORT", time.Hour, time.Hour)
	s.Level("LEVEL")
	s.QueueURL("QUEUE")
	s.QueueURL("FIFO")
	err := s.Err()
	if err == nil {
		t.Fatal("no fault")
	}
	lines := strings.Split(err.Error(), "\n")
	want := []string{"TABLE is not set: set it to the table of counters", "BLANK is not set: set it to something",
		"HORIZON: ", "SHORT is 1m: set it between 1h and",
		`LEVEL is "LOUD": set it to DEBUG`, "QUEUE is no queue's URL: set it to one such as",
		"FIFO is a FIFO queue: set it to a standard queue"}
	if len(lines) != len(want) {
		t.Fatalf("%d faults, want %d:\n%v", len(lines), len(want), err)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("fault %d is %q, want %q", i, line, want[i])
		}
	}
}

func TestSettings_DefaultsHoldWhereNothingIsSet(t *testing.T) {
	s := from(nil)
	if got := s.Text("A", "b"); got != "b" {
		t.Errorf("Text %q", got)
	}
	if got := s.Duration("A", time.Minute, time.Hour); got != time.Minute {
		t.Errorf("Duration %v", got)
	}
	if got := s.Level("A"); got != slog.LevelInfo {
		t.Errorf("Level %v", got)
	}
	if got := s.QueueURL("A"); got != "" {
		t.Errorf("QueueURL %q", got)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

func TestSettings_Durations(t *testing.T) {
	for text, want := range map[string]time.Duration{"35d": 35 * 24 * time.Hour, "840h": 840 * time.Hour,
		"840h0m0s": 840 * time.Hour, " 5w ": 35 * 24 * time.Hour,
		"90m30s": 90*time.Minute + 30*time.Second, "1h": time.Hour} {
		s := from(map[string]string{"D": text})
		if got := s.Duration("D", 0, time.Hour); got != want || s.Err() != nil {
			t.Errorf("%q is %v, %v, want %v", text, got, s.Err(), want)
		}
	}
	for _, text := range []string{"59m", "0", "-5h", "1.5d", "36501d", "2562047h47m", "9999999999999999999d", "d", "5",
		"five hours"} {
		s := from(map[string]string{"D": text})
		if got := s.Duration("D", time.Minute, time.Hour); s.Err() == nil || got != time.Minute {
			t.Errorf("%q became %v without a fault", text, got)
		}
	}
}

func TestSettings_LevelsAndQueues(t *testing.T) {
	for text, want := range map[string]slog.Level{"debug": slog.LevelDebug, "WARN": slog.LevelWarn,
		"Error": slog.LevelError} {
		s := from(map[string]string{"L": text})
		if got := s.Level("L"); got != want || s.Err() != nil {
			t.Errorf("%q is %v, %v", text, got, s.Err())
		}
	}
	for _, text := range []string{"https://sqs.eu-west-1.amazonaws.com/111122223333/parked",
		"http://127.0.0.1:4566/000000000000/q"} {
		s := from(map[string]string{"Q": text})
		if got := s.QueueURL("Q"); got != text || s.Err() != nil {
			t.Errorf("%q is %q, %v", text, got, s.Err())
		}
	}
	for _, text := range []string{"arn:aws:sqs:eu-west-1:111122223333:parked", "https://sqs", "https://sqs/",
		"ftp://sqs/1/q", "://", "/1/q"} {
		s := from(map[string]string{"Q": text})
		if s.QueueURL("Q"); s.Err() == nil {
			t.Errorf("%q passed for a queue's URL", text)
		}
	}
}
