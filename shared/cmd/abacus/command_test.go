package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestExecute_ExitCodesAndMessages(t *testing.T) {
	events := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(events, []byte(`{"n":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"version"}, 0, "abacus "},
		{[]string{"help"}, 0, "run"},
		{[]string{"run", "--events", "absent.ndjson"}, 1, "abacus: read events: open absent.ndjson"},
		{[]string{"run", "--events", events}, 1, "event 1 is no flight"},
		{[]string{"run", "--rules", "absent.yaml"}, 1, "absent.yaml"},
		{[]string{"run", "surplus"}, 1, "surplus"},
		{[]string{"run", "--seed", "x"}, 1, "--seed"},
		{[]string{"local", "--rules", "absent.yaml"}, 1, "no rule file"},
		{[]string{"count"}, 1, "unknown command"},
	} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), c.args, &out, &errs)
		if text := out.String() + errs.String(); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("abacus %s: exit code %d, want %d, and %q in\n%s", strings.Join(c.args, " "), code, c.code, c.says, text)
		}
		if c.code == 0 && errs.Len() > 0 {
			t.Errorf("abacus %s: complains %q", strings.Join(c.args, " "), errs.String())
		}
	}
}

// The suite stays up until it is interrupted, answers at the address that it prints, and leaves cleanly.
func TestLocal_ServesUntilInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	code := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		defer writer.Close()
		code <- execute(ctx, []string{"local"}, writer, &errs)
	}()
	var text []byte
	_ = reader.SetReadDeadline(time.Now().Add(5 * time.Minute)) // the functions may have to be compiled
	for buffer := make([]byte, 4096); !bytes.Contains(text, []byte("the suite is up")); {
		n, err := reader.Read(buffer)
		if err != nil {
			t.Fatalf("%v after %q; %s", err, text, errs.String())
		}
		text = append(text, buffer[:n]...)
	}
	for _, want := range []string{
		`(?m)^AWS_ENDPOINT_URL=http://127\.0\.0\.1:\d+$`, `(?m)^CountersTable=local-CountersTable$`,
		`(?m)^Queue=http://127\.0\.0\.1:\d+/\d{12}/local-Queue$`, `(?m)^Stream=local-Stream$`,
	} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
	interrupt()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d after an interrupt, want 0; %s", got, errs.String())
	}
}

func TestExecute_AnInterruptIsNoSuccess(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, errs bytes.Buffer
	if code := execute(ctx, []string{"run"}, &out, &errs); code != 1 || errs.String() != "abacus: interrupted\n" {
		t.Errorf("exit code %d with %q, want 1 and that it was interrupted", code, errs.String())
	}
}
