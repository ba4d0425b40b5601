package mapping_test

import (
	"strings"
	"testing"
	"time"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
)

// on returns a chaos that twists one delivery, by its first record's try.
func on(try int, twist mapping.Twist) mapping.Pace {
	return mapping.Pace{Chaos: func(d mapping.Delivery) mapping.Twist {
		if d.Try == try {
			return twist
		}
		return mapping.Twist{}
	}}
}

func TestChaos_RepeatDeliversAStreamsBatchAgainWithWhatCameAfter(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b c")
		f := &function{}
		pace := on(1, mapping.Twist{Repeat: true})
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 2, Pace: pace})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "ab ab c c")
		if s := m.Stats(); s.Invoked != 6 || s.Shards["shardId-000000000000"].Outstanding != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestChaos_RepeatChangesWhereAStreamsBatchesEnd(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b c d")
		f := &function{}
		calls := 0
		pace := mapping.Pace{Chaos: func(mapping.Delivery) mapping.Twist {
			calls++
			return []mapping.Twist{{Cut: 1}, {Repeat: true}, {}, {}, {}, {}}[calls-1]
		}}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, BatchSize: 3, Pace: pace})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "a bc bcd") // a alone; then b and c; then, as after a lost checkpoint, another batch around them
	})
}

func TestChaos_AlwaysRepeatingEnds(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		w.stream(1)
		w.put("k", "a b c")
		f := &function{}
		pace := mapping.Pace{Chaos: func(mapping.Delivery) mapping.Twist { return mapping.Twist{Repeat: true, Cut: 2} }}
		m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, Pace: pace})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "ab ab c c")
	})
}

func TestChaos_RepeatBringsAQueuesMessagesBack(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q")
		w.send(url, "a b")
		f := &function{}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, Pace: on(1, mapping.Twist{Repeat: true})})
		w.start(m)
		w.drained(m)
		f.wantSeen(w.t, "ab ab")
	})
}

func TestChaos_LapseLetsTwoInvocationsHoldOneMessage(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q")
		w.send(url, "a")
		f := &function{hold: time.Second}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, Pace: on(1, mapping.Twist{Lapse: true})})
		w.start(m)
		w.drained(m)
		if f.wantSeen(w.t, "a a"); f.most != 2 {
			t.Errorf("%d invocations at once, want 2", f.most)
		}
	})
}

func TestChaos_CutSplitsAQueuesBatch(t *testing.T) {
	bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
		url, _ := w.queue("q")
		w.send(url, "a b c d e")
		f := &function{}
		pace := mapping.Pace{Chaos: func(d mapping.Delivery) mapping.Twist {
			if d.Source != "aws:sqs" || len(d.IDs) == 0 || d.Shard != "" {
				t.Errorf("delivery %+v", d)
			}
			return mapping.Twist{Cut: 2}
		}}
		m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, Pace: pace})
		w.start(m)
		w.drained(m)
		if got := strings.Join(strings.Fields(f.seen()), ""); got != "abcde" {
			t.Errorf("invoked with %q", f.seen())
		}
		f.wantSeen(w.t, "ab cd e")
	})
}
