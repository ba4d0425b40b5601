package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"abacus/shared/wal"
)

func TestWALInspect_PrintsTheLogInWordsAndAsJSON(t *testing.T) {
	dir := t.TempDir()
	l, _, err := wal.Open(wal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := l.Append(t.Context(), []wal.Entry{{ID: id}}, wal.Volatile); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Truncate(t.Context(), 1, wal.Volatile); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"wal", "inspect", dir}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	for _, part := range []string{", running", "truncated  through 1", "records    2", "00000000000000000001.wal"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in:\n%s", part, out.String())
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := execute(t.Context(), []string{"wal", "inspect", dir, "--json"}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	var in wal.Inspection
	if err := json.Unmarshal(out.Bytes(), &in); err != nil || in.Records != 2 || !in.Segments[0].Closed {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if code := execute(t.Context(), []string{"wal", "inspect", dir + "/nowhere"}, &out, &errs); code != 1 {
		t.Fatal("a directory that is not there was inspected")
	}
}
