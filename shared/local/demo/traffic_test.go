package demo

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sample = "../../../events/flights-sample.ndjson.gz"

func numbered(n int) [][]byte {
	events := make([][]byte, n)
	for i := range events {
		events[i] = fmt.Appendf(nil, `{"n":%d}`, i)
	}
	return events
}

func TestTraffic_HalfThroughEachEveryTenthTwiceAndFiveBad(t *testing.T) {
	events := numbered(1000)
	traffic := newTraffic(events, badFlights(), 1)
	k, s := len(traffic.kinesis), len(traffic.sqs)
	if k+s != 1105 || k < 520 || s < 520 || traffic.copies != 100 || traffic.bad != 5 {
		t.Errorf("%d through Kinesis, %d through SQS, %d copies, %d bad; want halves of 1,000 + 100 + 5",
			k, s, traffic.copies, traffic.bad)
	}
	times, bad := map[string]int{}, map[string]int{}
	for source, list := range [][]record{traffic.kinesis, traffic.sqs} {
		for _, r := range list {
			if r.bad {
				bad[fmt.Sprint(source)]++
				continue
			}
			times[string(r.payload)]++
		}
	}
	if bad["0"] != 3 || bad["1"] != 2 {
		t.Errorf("bad records by source %v, want 3 through Kinesis and 2 through SQS", bad)
	}
	for i, event := range events {
		want := 1
		if i%10 == 9 {
			want = 2
		}
		if times[string(event)] != want {
			t.Fatalf("event %d is sent %d times, want %d", i, times[string(event)], want)
		}
	}
}

func TestTraffic_DependsOnTheSeedAlone(t *testing.T) {
	payloads := func(seed uint64) []string {
		var all []string
		traffic := newTraffic(numbered(200), badFlights(), seed)
		for _, r := range slices.Concat(traffic.kinesis, traffic.sqs) {
			all = append(all, string(r.payload))
		}
		return all
	}
	if !slices.Equal(payloads(1), payloads(1)) {
		t.Error("one seed gives two orders")
	}
	if slices.Equal(payloads(1), payloads(2)) {
		t.Error("two seeds give one order")
	}
}

func TestLoad_ReadsTheSamplePackedAndUnpacked(t *testing.T) {
	events, err := load(sample)
	if err != nil || len(events) != 2000 {
		t.Fatalf("%d events, %v; want 2000", len(events), err)
	}
	plain := filepath.Join(t.TempDir(), "events.ndjson")
	text := append(bytes.Join(events, []byte("\r\n\n")), '\n')
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := load(plain)
	if err != nil || !slices.EqualFunc(events, again, bytes.Equal) {
		t.Errorf("unpacked, with empty lines: %d events, %v; want the same", len(again), err)
	}
}

func TestLoad_SaysWhatIsWrongWithAFile(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(bytes.Repeat([]byte("{}\n"), 1000))
	_ = w.Close()
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"empty":     {[]byte("\n \n"), "holds none"},
		"too long":  {[]byte("{}\n" + strings.Repeat("x", maxEvent+2)), "after line 1"},
		"truncated": {packed.Bytes()[:packed.Len()-9], "unexpected EOF"},
	} {
		path := filepath.Join(t.TempDir(), "events")
		if err := os.WriteFile(path, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
	if _, err := load(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a missing file is no error")
	}
	longest := filepath.Join(t.TempDir(), "longest")
	_ = os.WriteFile(longest, bytes.Repeat([]byte("x"), maxEvent), 0o600)
	if events, err := load(longest); err != nil || len(events) != 1 {
		t.Errorf("an event at the limit: %d events, %v", len(events), err)
	}
}
