package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// ruleText is what is counted: three cells an event, one of them in every event.
const ruleText = `
counters:
  - name: sales
    id: order
    keys: ["{shop}", "{shop}|{item}", "all"]
    add: n
    windows: {all: forever}
`

// nextRules is a deployment that changes nothing for what is under way.
const nextRules = ruleText + `
  - name: returns
    match: kind == "return"
    id: order
    keys: ["all"]
`

// truth is the value of each key of the counter sales.
type truth map[string]int64

// traffic is what is published, dealt out to the two sources.
type traffic struct {
	stream, queue [][]byte
	bad           map[string]bool // payloads that can never be counted
	truth         truth
	events        int
}

// newTraffic draws events for both sources. Under the claim guard some come twice, by either source.
func newTraffic(seed uint64, positions bool) traffic {
	rng := rand.New(rand.NewPCG(seed, 3))
	t := traffic{bad: map[string]bool{}, truth: truth{}, events: 40 + rng.IntN(160)}
	for i := range t.events {
		shop, item, n := rng.IntN(6), rng.IntN(9), int64(rng.IntN(9)-2)
		payload := fmt.Appendf(nil, `{"order":"o%04d","shop":"s%d","item":"i%d","n":%d}`, i, shop, item, n)
		for _, key := range []string{fmt.Sprintf("s%d", shop), fmt.Sprintf("s%d|i%d", shop, item), "all"} {
			t.truth[key] += n
		}
		inStream := rng.IntN(2) == 0
		t.put(payload, inStream)
		// The position guard counts a producer's own duplicates twice, so there only the queue may repeat its own.
		if rng.IntN(8) == 0 && (!positions || !inStream) {
			t.put(payload, !positions && rng.IntN(2) == 0)
		}
	}
	for i := range rng.IntN(4) {
		payload := []byte([]string{
			fmt.Sprintf(`{"order":"b%d","shop":"s1","n":1}`, i), fmt.Sprintf(`not JSON %d`, i),
			fmt.Sprintf(`{"order":"b%d","shop":"s1","item":"i1","n":"1"}`, i),
		}[rng.IntN(3)])
		t.bad[string(payload)] = true
		t.put(payload, rng.IntN(2) == 0)
	}
	rng.Shuffle(len(t.stream), func(i, j int) { t.stream[i], t.stream[j] = t.stream[j], t.stream[i] })
	rng.Shuffle(len(t.queue), func(i, j int) { t.queue[i], t.queue[j] = t.queue[j], t.queue[i] })
	return t
}

func (t *traffic) put(payload []byte, inStream bool) {
	if inStream {
		t.stream = append(t.stream, payload)
	} else {
		t.queue = append(t.queue, payload)
	}
}

// differences compares counts with the truth, a line for each key that is off.
func (t truth) differences(counted map[string]string) string {
	var lines []string
	for key, want := range t {
		got := counted[key]
		if got == "" {
			got = "0"
		}
		if got != fmt.Sprint(want) {
			lines = append(lines, fmt.Sprintf("%s is %s, want %d", key, got, want))
		}
	}
	for key, got := range counted {
		if _, known := t[key]; !known && got != "0" {
			lines = append(lines, fmt.Sprintf("%s is %s, and should not be", key, got))
		}
	}
	return strings.Join(lines, "; ")
}
