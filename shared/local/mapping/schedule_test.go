package mapping_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
)

// dice decides at random, for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 1))} }

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// trouble makes one in five calls of the data path go wrong in some way.
func (d *dice) trouble(c wire.Call) wire.Fault {
	if strings.HasPrefix(c.Name, "Put") || strings.HasPrefix(c.Name, "Send") || strings.HasPrefix(c.Name, "Create") ||
		strings.HasPrefix(c.Name, "Split") {
		return wire.Fault{}
	}
	switch d.below(20) {
	case 0:
		return wire.Fault{Lose: true}
	case 1:
		return wire.Fault{Refuse: true}
	case 2:
		if c.Name == "GetRecords" {
			return wire.Fault{Before: wire.Errorf("ExpiredIteratorException", "injected")}
		}
		return wire.Fault{Before: &wire.Error{Code: "ServiceUnavailable", Status: 503}}
	case 3:
		return wire.Fault{After: &wire.Error{Code: "InternalFailure", Status: 500}}
	}
	return wire.Fault{}
}

func (d *dice) twist(mapping.Delivery) mapping.Twist {
	return mapping.Twist{Cut: d.below(4), Repeat: d.below(4) == 0, Lapse: d.below(8) == 0}
}

// log is a function that fails at random, and holds every delivery against the rule that no record of a key is
// delivered before each one ahead of it was processed.
type log struct {
	dice    *dice
	ordered bool
	mu      sync.Mutex
	next    map[string]int // by key: number of records processed without a gap
	seen    map[string]int // times each record was processed
	broken  []string
}

func (l *log) answer(_ int, words, ids []string) (string, error) {
	good := len(words)
	switch l.dice.below(5) {
	case 0:
		good = l.dice.below(len(words))
	case 1:
		return "", errors.New("down")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, word := range words {
		var key string
		var n int
		_, _ = fmt.Sscanf(word, "%1s%d", &key, &n)
		if i < good {
			if l.ordered && n > l.next[key] {
				l.broken = append(l.broken, fmt.Sprintf("%s was delivered when only %d of its key were processed", word,
					l.next[key]))
			}
			l.next[key] = max(l.next[key], n+1)
			l.seen[word]++
		}
	}
	return failing(words, ids, words[good:]...), nil
}

func words(key string, n int) string {
	out := []string{}
	for i := range n {
		out = append(out, fmt.Sprint(key, i))
	}
	return strings.Join(out, " ")
}

// check reports what is wrong when each key's n records should have been processed.
func (l *log) check(keys []string, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		for _, word := range strings.Fields(words(key, n)) {
			if l.seen[word] == 0 {
				l.broken = append(l.broken, word+" was never processed")
			}
		}
	}
	if len(l.broken) > 0 {
		return errors.New(strings.Join(l.broken, "; "))
	}
	return nil
}

func TestKinesis_NoScheduleOfTroubleLosesOrReordersARecord(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(rt *rapid.T) {
		d := newDice(rapid.Uint64().Draw(rt, "seed"))
		l := &log{dice: d, ordered: true, next: map[string]int{}, seen: map[string]int{}}
		c := mapping.KinesisConfig{MaximumRetryAttempts: -1, ReportBatchItemFailures: true,
			BatchSize:                  rapid.IntRange(1, 9).Draw(rt, "batch size"),
			ParallelizationFactor:      rapid.IntRange(1, 4).Draw(rt, "factor"),
			BatchingWindow:             time.Duration(rapid.IntRange(0, 1).Draw(rt, "window")) * time.Second,
			BisectBatchOnFunctionError: rapid.Bool().Draw(rt, "bisect"), SplitStuck: rapid.Bool().Draw(rt, "split stuck"),
			Pace: mapping.Pace{Chaos: d.twist}}
		reshard := rapid.Bool().Draw(rt, "reshard")
		var failure error
		bubble(t, stream.Config{Fault: d.trouble}, queue.Config{}, func(w *world) {
			w.stream(1)
			c.Invoke = (&function{answer: l.answer, hold: time.Duration(d.below(2)) * time.Second}).invoke
			m := w.fromKinesis(c)
			w.start(m)
			for i, key := range keys {
				if i == 3 && reshard {
					w.split()
				}
				w.put(key, words(key, 10))
			}
			w.drained(m)
			failure = l.check(keys, 10)
			for id, s := range m.Stats().Shards {
				if s.Outstanding != 0 {
					failure = errors.Join(failure, fmt.Errorf("%s has %d records outstanding", id, s.Outstanding))
				}
			}
		})
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}

func TestSQS_NoScheduleOfTroubleLosesOrReordersAMessage(t *testing.T) {
	keys := []string{"a", "b", "c"}
	rapid.Check(t, func(rt *rapid.T) {
		d := newDice(rapid.Uint64().Draw(rt, "seed"))
		fifo := rapid.Bool().Draw(rt, "fifo")
		l := &log{dice: d, ordered: fifo, next: map[string]int{}, seen: map[string]int{}}
		c := mapping.SQSConfig{ReportBatchItemFailures: true, BatchSize: rapid.IntRange(1, 10).Draw(rt, "batch size"),
			Pace: mapping.Pace{PollInterval: time.Second}}
		if !fifo { // in a FIFO queue both twists break what AWS keeps
			c.Pace.Chaos = d.twist
		}
		var failure error
		bubble(t, stream.Config{}, queue.Config{Fault: d.trouble}, func(w *world) {
			name, attributes := "q", []string{"VisibilityTimeout", "5"}
			if fifo {
				name, attributes = "q.fifo", append(attributes, "FifoQueue", "true")
			}
			url, _ := w.queue(name, attributes...)
			c.Invoke = (&function{answer: l.answer, hold: time.Duration(d.below(2)) * time.Second}).invoke
			m := w.fromSQS(url, c)
			w.start(m)
			for _, key := range keys {
				w.send(url, words(key, 10))
			}
			w.drained(m)
			failure = l.check(keys, 10)
		})
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}
