package wal_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

func errorTexts() map[string]error {
	return map[string]error{
		"ErrRunning": wal.ErrRunning, "ErrUnsupportedDeliveryGuarantee": wal.ErrUnsupportedDeliveryGuarantee,
		"ErrBatchTooLarge": wal.ErrBatchTooLarge, "ErrInvalidSendResult": wal.ErrInvalidSendResult,
		"ErrPermanentRejection": wal.ErrPermanentRejection, "ErrConsumerStalled": wal.ErrConsumerStalled,
		"ErrPanic": wal.ErrPanic, "ErrSend": wal.ErrSend, "ErrDeadLetter": wal.ErrDeadLetter,
		"ErrAcknowledge": wal.ErrAcknowledge, "ErrDisposed": wal.ErrDisposed, "ErrLog": wal.ErrLog,
		"ErrFull": wal.ErrFull, "ErrTooLarge": wal.ErrTooLarge, "ErrEmptyID": wal.ErrEmptyID,
		"ErrClosed": wal.ErrClosed, "ErrDisk": wal.ErrDisk, "ErrVersion": wal.ErrVersion,
		"ErrUncertain": wal.ErrUncertain,
	}
}

// declaredErrors are the exported error variables of the package's source.
func declaredErrors(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
				names = append(names, spec.Names[0].Name)
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

// TestW1_TextsSayWhatToDo pins the text of every exported error of the package and of every refused configuration.
func TestW1_TextsSayWhatToDo(t *testing.T) {
	var got strings.Builder
	texts := errorTexts()
	for _, name := range declaredErrors(t) {
		if texts[name] == nil {
			t.Errorf("%s is not in the golden file: add it to errorTexts", name)
			continue
		}
		fmt.Fprintf(&got, "%s: %v\n", name, texts[name])
	}
	_, err := wal.NewConsumer(wal.ConsumerConfig{
		Acknowledger: (*cursor)(nil), Guarantee: 9, Policy: 9, MaxBatch: -1, MaxBytes: -1, StallAttempts: -1,
		IdleDelay: -1, RetryDelay: -1, MaxRetryDelay: -1, SettleTimeout: -1, StallAfter: -1,
	})
	fmt.Fprintf(&got, "\nall refused at once:\n%v\n", err)
	path := filepath.Join("testdata", "errors.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Fatalf("the texts are\n%s\nwant\n%s", &got, want)
	}
}

// TestW1_NothingToCallIsRefused: an interface that holds a nil pointer or function is as good as none.
func TestW1_NothingToCallIsRefused(t *testing.T) {
	for name, cfg := range map[string]wal.ConsumerConfig{
		"Source is nil": {Sender: &downstream{}}, "Sender is nil": {Source: newSource(t)},
		"Source is nil:":             {Source: (*wal.Log)(nil), Sender: &downstream{}},
		"Sender is nil:":             {Source: newSource(t), Sender: wal.SenderFunc(nil)},
		"Acknowledger is a nil poin": {Source: newSource(t), Sender: &downstream{}, Acknowledger: (*cursor)(nil)},
	} {
		if _, err := wal.NewConsumer(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want it to say %q", err, name)
		}
	}
}

func TestW2_ZeroConfigIsTheSafeProfile(t *testing.T) {
	if wal.CrashPersistent != 0 {
		t.Fatal("the zero value is another guarantee")
	}
	for guarantee, want := range map[wal.Guarantee]wal.Durability{
		wal.CrashPersistent: wal.Synced, wal.ProcessLifetime: wal.Volatile,
	} {
		r := newRig(t, abc(), wal.ConsumerConfig{Guarantee: guarantee})
		r.wantNext(t, 3, nil)
		did := r.fake.did()
		if !slices.Contains(did, fmt.Sprintf("flush %d", want)) || !slices.Contains(did, fmt.Sprintf("truncate 3 %d", want)) {
			t.Errorf("guarantee %d: %q", guarantee, did)
		}
	}
	_, err := wal.NewConsumer(wal.ConsumerConfig{Source: newSource(t), Sender: &downstream{}, Guarantee: 2})
	if !errors.Is(err, wal.ErrUnsupportedDeliveryGuarantee) {
		t.Errorf("unknown guarantee: %v", err)
	}
}

// TestW2_OnlyWhatIsSyncedIsOffered: what the downstream has must not be missing from the log after a crash.
func TestW2_OnlyWhatIsSyncedIsOffered(t *testing.T) {
	disk := waltest.New()
	l := mustOpen(t, small(disk))
	mustAppend(t, l, "a", 1, wal.Volatile)
	c := mustConsume(t, wal.ConsumerConfig{Source: l, Sender: wal.SenderFunc(
		func(context.Context, []wal.Record) (wal.Result, error) {
			if s := l.State(); s.Synced != s.Written {
				t.Errorf("offered while %+v", s)
			}
			return wal.Result{Through: 1}, nil
		})})
	if n, err := c.Next(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func TestW3_BothSidesMustSupportTheGuarantee(t *testing.T) {
	lacking := newSource(t)
	lacking.unsupported[wal.Synced] = true
	down := &downstream{}
	for _, cfg := range []wal.ConsumerConfig{
		{Source: lacking, Sender: down},
		{Source: newSource(t), Sender: down, Acknowledger: &cursor{lacks: wal.Synced}},
		{Source: newSource(t), Sender: down, Acknowledger: &cursor{lacks: wal.Volatile}, Guarantee: wal.ProcessLifetime},
	} {
		if _, err := wal.NewConsumer(cfg); !errors.Is(err, wal.ErrUnsupportedDeliveryGuarantee) {
			t.Errorf("%v", err)
		}
	}
	mustConsume(t, wal.ConsumerConfig{Source: lacking, Sender: down, Guarantee: wal.ProcessLifetime})
}

func TestW4_WithoutAnAcknowledgerTheLogIsTruncated(t *testing.T) {
	onBoth(t, func(t *testing.T, rigged rigger) {
		r := rigged(t, abc(), wal.ConsumerConfig{})
		r.wantNext(t, 3, nil)
		r.wantAt(t, 3)
	})
	own := &cursor{lacks: 9}
	r := newRig(t, abc(), wal.ConsumerConfig{Acknowledger: own})
	r.wantNext(t, 3, nil)
	r.wantAt(t, 0)
	if own.through != 3 || own.durability != wal.Synced {
		t.Errorf("%+v", own)
	}
	r.wantNext(t, 0, nil)
	r.wantOffered(t, "1=a 2=b 3=c") // a mark outside of the log counts as well
}

func TestW5_PolicyAndHandlerMatch(t *testing.T) {
	handler := func(context.Context, wal.Record, error) error { return nil }
	for _, row := range []struct {
		policy  wal.Policy
		handler bool
		ok      bool
	}{
		{wal.StopOnRejection, false, true}, {wal.StopOnRejection, true, false},
		{wal.DiscardRejected, false, true}, {wal.DiscardRejected, true, false},
		{wal.DeadLetterRejected, true, true}, {wal.DeadLetterRejected, false, false},
		{wal.DiscardRejected + 1, false, false}, {wal.DiscardRejected + 1, true, false},
	} {
		cfg := wal.ConsumerConfig{Source: newSource(t), Sender: &downstream{}, Policy: row.policy}
		if row.handler {
			cfg.DeadLetter = handler
		}
		if _, err := wal.NewConsumer(cfg); (err == nil) != row.ok {
			t.Errorf("%+v: %v", row, err)
		}
	}
}

func TestW6_LimitsAndDefaults(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct {
		cfg wal.ConsumerConfig
		ok  bool
	}{
		{wal.ConsumerConfig{}, true},
		{wal.ConsumerConfig{MaxBatch: 1, MaxBytes: 1, StallAttempts: 1}, true},
		{wal.ConsumerConfig{MaxBatch: wal.MaxBatchLimit, MaxBytes: math.MaxInt64}, true},
		{wal.ConsumerConfig{MaxBatch: wal.MaxBatchLimit + 1}, false}, {wal.ConsumerConfig{MaxBatch: -1}, false},
		{wal.ConsumerConfig{MaxBytes: -1}, false}, {wal.ConsumerConfig{StallAttempts: -1}, false},
		{wal.ConsumerConfig{IdleDelay: -1}, false}, {wal.ConsumerConfig{RetryDelay: -1}, false},
		{wal.ConsumerConfig{MaxRetryDelay: -1}, false}, {wal.ConsumerConfig{StallAfter: -1}, false},
		{wal.ConsumerConfig{SettleTimeout: -1}, false},
		{wal.ConsumerConfig{RetryDelay: 2, MaxRetryDelay: 1}, false},
		{wal.ConsumerConfig{RetryDelay: 2, MaxRetryDelay: 2}, true},
		{wal.ConsumerConfig{MaxRetryDelay: 500 * time.Millisecond}, true}, // the other one follows
		{wal.ConsumerConfig{RetryDelay: day}, true},
	} {
		row.cfg.Source, row.cfg.Sender = newSource(t), &downstream{}
		if _, err := wal.NewConsumer(row.cfg); (err == nil) != row.ok {
			t.Errorf("%+v: %v", row.cfg, err)
		}
	}
}

func TestW6_DefaultBytesAndBatch(t *testing.T) {
	half := strings.Repeat("x", 2<<20)
	r := newRig(t, []string{half, half, "y"}, wal.ConsumerConfig{})
	r.wantNext(t, 2, nil)
	r = newRig(t, make([]string, 129), wal.ConsumerConfig{})
	r.wantNext(t, 128, nil)
	r = newRig(t, make([]string, wal.MaxBatchLimit+1), wal.ConsumerConfig{MaxBatch: wal.MaxBatchLimit})
	r.wantNext(t, wal.MaxBatchLimit, nil)
}

func TestW7_ConstructionIsInert(t *testing.T) {
	before := runtime.NumGoroutine()
	r := newRig(t, abc(), wal.ConsumerConfig{})
	for _, call := range r.fake.did() {
		if call != "supports" {
			t.Errorf("called %s", call)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}
