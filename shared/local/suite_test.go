package local

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"abacus/shared/dynamo"
	"abacus/shared/local/sandbox"
	"abacus/shared/tally"
)

// builds is where the functions are built once for all tests of this package.
var builds string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "abacus-local-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		builds = dir
		return m.Run()
	}())
}

// seedOf returns the seed; set ABACUS_SEED to repeat a run.
func seedOf(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("ABACUS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("ABACUS_SEED=%d", seed)
	return seed
}

// put publishes n flights to the stream, in batches small enough to make many invocations.
func put(t *testing.T, s *Suite, n int) {
	t.Helper()
	type entry struct {
		Data         []byte
		PartitionKey string
	}
	var entries []entry
	for i := range n {
		entries = append(entries, entry{fmt.Appendf(nil,
			`{"flight_id":"f%d","date":"2001/01/%02d 00:47","delay":%d,"distance":%d,"origin":"A%d","destination":"B"}`,
			i, 1+i%28, i, 900+i%2*100, i%5), strconv.Itoa(i)})
	}
	var answer struct{ FailedRecordCount int }
	body := map[string]any{"StreamName": s.Name("Stream"), "Records": entries}
	err := s.Call(t.Context(), "Kinesis_20131202.PutRecords", body, &answer)
	if err != nil || answer.FailedRecordCount > 0 {
		t.Fatalf("%d records refused, %v", answer.FailedRecordCount, err)
	}
}

// drain waits until all mappings are done, or says what is left.
func drain(t *testing.T, s *Suite) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	if err := s.Drained(ctx); err != nil {
		status, _ := s.Status(t.Context())
		t.Fatalf("%v\n%v", err, status)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// counted holds counts against what they must be.
func counted(t *testing.T, s *Suite, want map[tally.Cell]int64) {
	t.Helper()
	options := dynamo.Options{Client: dynamo.NewClient(s.Config()), Counters: s.Name("CountersTable")}
	reader, err := dynamo.NewReader(options)
	if err != nil {
		t.Fatal(err)
	}
	for cell, n := range want {
		if got, err := reader.Get(t.Context(), cell); err != nil || got != tally.SumOf(n) {
			t.Errorf("%s %s: %v, %v; want %d", cell.Counter, cell.Key, got, err, n)
		}
	}
}

// Real processes are killed by the dozen, at work and with their answer on the way, while they count a stream.
func TestSuite_KilledProcessesLoseAndDoubleNothing(t *testing.T) {
	const flights = 300
	before := runtime.NumGoroutine()
	crashes := sandbox.RandomCrashes(seedOf(t), 0.5, 100*time.Millisecond)
	var killed atomic.Int64
	s, err := Start(t.Context(), Options{
		Root: "../..", Build: builds, Parameters: map[string]any{"ShardCount": 2, "KinesisBatchSize": 20},
		FunctionFault: func(_ string, call sandbox.Call) sandbox.Fault {
			if call.N > 40 {
				return sandbox.Fault{} // so that it ends
			}
			return crashes(call)
		},
		Report: func(r sandbox.Report) {
			if r.Err != nil {
				killed.Add(1)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, flights)
	drain(t, s)
	if killed.Load() < 5 {
		t.Errorf("%d invocations were cut short; too few to prove anything", killed.Load())
	}
	counted(t, s, map[tally.Cell]int64{
		{Counter: "flights", Key: "all", Window: "all"}:       flights,
		{Counter: "flights", Key: "origin/A3", Window: "all"}: flights / 5,
		{Counter: "delay_minutes", Key: "all", Window: "all"}: flights * (flights - 1) / 2,
		{Counter: "long_flights", Key: "all", Window: "all"}:  flights / 2,
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	settled := func() bool { return runtime.NumGoroutine() <= before+2 } // the SDK's idle connections go by themselves
	for range 200 {
		if settled() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before and %d after", before, runtime.NumGoroutine())
}

func TestSuite_KillAndStatusShowWhatIsGoingOn(t *testing.T) {
	s, err := Start(t.Context(), Options{Root: "../..", Build: builds})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	put(t, s, 10)
	drain(t, s)
	status, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m := status.Mappings["Kinesis.Records"]; m.Polled != 10 || m.Invoked != 10 || m.FailedInvoke != 0 {
		t.Errorf("mapping %+v, want 10 records read and given to the function", m)
	}
	if len(status.Queues) != 3 || len(status.Mappings) != 2 {
		t.Errorf("status of %d queues and %d mappings, want 3 and 2:\n%v", len(status.Queues), len(status.Mappings), status)
	}
	if n := s.Function("Kinesis").Kill(); n < 1 {
		t.Errorf("killed %d processes, want those that counted", n)
	}
	put(t, s, 20) // ten of them again
	drain(t, s)
	counted(t, s, map[tally.Cell]int64{{Counter: "flights", Key: "all", Window: "all"}: 20})
}
