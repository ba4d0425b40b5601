package demo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"abacus/shared/local"
	"abacus/shared/local/wire"
)

// builds is where the functions are built once for all tests of this package.
var builds string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "abacus-demo-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		builds = dir
		return m.Run()
	}())
}

// output is a buffer that a run and its test may use at one time.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// take returns what was written since the last take.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.text.Reset()
	return o.text.String()
}

// file writes events to a file of their own.
func file(t *testing.T, events [][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(path, bytes.Join(events, []byte("\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flights(t *testing.T, n int) [][]byte {
	t.Helper()
	events, err := load(sample)
	if err != nil {
		t.Fatal(err)
	}
	return events[:n]
}

// The whole suite, its real binaries included, counts a hundred flights; then its tables are spoilt in every way that
// a broken suite could spoil them, and the verdict has to say so.
func TestRun_IsExactThroughTheRealBinariesAndSaysSoWhenItIsNot(t *testing.T) {
	t.Parallel()
	ctx, out := t.Context(), &output{}
	r, err := prepare(Options{Root: "../../..", Events: file(t, flights(t, 100)), Build: builds, Seed: 7, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.suite.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := r.count(ctx); err != nil {
		t.Fatalf("%v\n%s", err, out.take())
	}
	if err := r.judge(ctx, time.Now()); err != nil {
		t.Fatalf("%v\n%s", err, out.take())
	}
	exact := out.take()
	for _, want := range []string{
		"115 records", "10 are second copies, 5 are bad; seed 7",
		"5 of 5 bad records are kept, byte for byte", "DeadLetterQueue", "ParkQueue", "exact: every count is the truth",
	} {
		if !strings.Contains(exact, want) {
			t.Errorf("no %q in\n%s", want, exact)
		}
	}
	table := r.suite.Name("CountersTable")
	add := func(pk, sk string, n int) {
		t.Helper()
		err := r.suite.Call(ctx, "DynamoDB_20120810.UpdateItem", map[string]any{
			"TableName": table, "UpdateExpression": "ADD n :d",
			"Key":                       map[string]any{"pk": map[string]string{"S": pk}, "sk": map[string]string{"S": sk}},
			"ExpressionAttributeValues": map[string]any{":d": map[string]string{"N": fmt.Sprint(n)}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	judged := func(wants ...string) {
		t.Helper()
		if err := r.judge(ctx, time.Now()); !errors.Is(err, ErrInexact) {
			t.Errorf("verdict %v, want ErrInexact", err)
		}
		text := out.take()
		for _, want := range append(wants, "0 of 5 bad records", "MISSING") { // the first verdict took the letters out
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if strings.Contains(text, "exact:") {
			t.Errorf("it calls itself exact:\n%s", text)
		}
	}
	add("flights|all", "all|-|0", 1)
	judged("WRONG flights all all: 101 by the reader, truth 100", "101    100  <-- differs")
	add("flights|all", "all|-|0", -2)
	judged("WRONG flights all all: 99 by the reader, truth 100")
	add("flights|all", "all|-|0", 1)
	add("flights|origin/XXX", "1d|2001-01-01T00:00:00Z|0", 1)
	judged("WRONG flights 1d 2001-01-01T00:00Z origin/XXX: 1 by the table's rows, truth 0")
}

func TestRun_CountsOtherEventsByTheirOwnRules(t *testing.T) {
	t.Parallel()
	events := make([][]byte, 200)
	for i := range events {
		events[i] = fmt.Appendf(nil, `{"user":"u%d","cents":%d}`, i%7, i)
	}
	events[50] = []byte(`{"user":"u1","cents":"many"}`) // bad under these rules, and so kept
	ruleFile := filepath.Join(t.TempDir(), "rules.yaml")
	rules := "counters:\n  - {name: spent, keys: [all, 'user/{user}'], add: cents}\n"
	if err := os.WriteFile(ruleFile, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	out := &output{}
	o := Options{Root: "../../..", Events: file(t, events), Rules: ruleFile, Build: builds, Seed: 2, Out: out}
	if err := Run(t.Context(), o); err != nil {
		t.Fatalf("%v\n%s", err, out.take())
	}
	text := out.take()
	for _, want := range []string{
		"counted from the file by the rules themselves", "8 of 8 counts", "6 of 6 bad records are kept", "exact:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestRun_CountingNothingIsNoSuccess(t *testing.T) {
	t.Parallel()
	rules := filepath.Join(t.TempDir(), "counters.yaml")
	text := "counters:\n  - name: c\n    id: order\n    keys: [\"{nowhere}\"]\n"
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := &output{}
	events := [][]byte{[]byte(`{"order":"1"}`), []byte(`{"order":"2"}`)}
	err := Run(t.Context(), Options{Root: "../../..", Events: file(t, events), Rules: rules, Build: builds, Out: out})
	if !errors.Is(err, ErrNothing) {
		t.Errorf("error %v, want ErrNothing", err)
	}
	if text := out.take(); !strings.Contains(text, "2 of the bad records are your own") {
		t.Errorf("it does not say whose the bad records are:\n%s", text)
	}
}

func TestRun_SaysWhatIsStuck(t *testing.T) {
	t.Parallel()
	out := &output{}
	o := Options{Root: "../../..", Events: file(t, flights(t, 20)), Build: builds, Out: out, Patience: 3 * time.Second}
	o.adjust = func(l *local.Options) {
		l.TableFault = func(c wire.Call) wire.Fault { return wire.Fault{Hang: c.Name == "TransactWriteItems"} }
	}
	err := Run(t.Context(), o)
	if err == nil {
		t.Fatalf("no error\n%s", out.take())
	}
	for _, want := range []string{
		"nothing has moved for 3s", "Kinesis.Records has read ", "invocations under way", "shardId-000000000000",
		"Queue has 0 messages visible, ", "the functions' last words",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

func TestRun_MistakesAreToldBeforeAnythingStarts(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"events":  {Options{Events: "absent.ndjson"}, "absent.ndjson"},
		"rules":   {Options{Rules: "absent.yaml"}, "absent.yaml"},
		"flights": {Options{Events: file(t, numbered(3))}, "event 1 is no flight"},
	} {
		c.options.Root, c.options.Build = "../../..", builds
		if err := Run(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}
