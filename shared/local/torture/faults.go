package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"abacus/shared/local/mapping"
	"abacus/shared/local/sandbox"
	"abacus/shared/local/table"
	"abacus/shared/local/wire"
)

// tale counts what befell a schedule.
type tale struct {
	kills, calls, twists, splits, deploys, redriven, events, bad atomic.Int64
}

func (t *tale) add(u *tale) {
	for _, p := range [][2]*atomic.Int64{
		{&t.kills, &u.kills}, {&t.calls, &u.calls}, {&t.twists, &u.twists}, {&t.splits, &u.splits},
		{&t.deploys, &u.deploys}, {&t.redriven, &u.redriven}, {&t.events, &u.events}, {&t.bad, &u.bad},
	} {
		p[0].Add(p[1].Load())
	}
}

func (t *tale) String() string {
	return fmt.Sprintf("%d events and %d bad records; %d functions killed, %d calls broken, %d deliveries bent, "+
		"%d shards split, %d deployments, %d dead letters moved back", t.events.Load(), t.bad.Load(), t.kills.Load(),
		t.calls.Load(), t.twists.Load(), t.splits.Load(), t.deploys.Load(), t.redriven.Load())
}

// dice is a seeded source that many goroutines share. Which of them draws what depends on their order, so a seed fixes
// the kinds and shares of faults and nearly, but not quite, their places.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newDice(seed, stream uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, stream))} }

func (d *dice) chance() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64()
}

func (d *dice) upTo(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// faults decides what goes wrong while it is stormy.
type faults struct {
	tale   *tale
	dice   *dice
	calm   atomic.Bool
	broken float64 // share of calls
	killed float64 // share of invocations
	bent   float64 // share of deliveries
	hangs  bool
}

func newFaults(seed uint64, t *tale) *faults {
	d := newDice(seed, 11)
	pick := func(values ...float64) float64 { return values[d.upTo(len(values))] }
	return &faults{
		tale: t, dice: d, broken: pick(0, 0.02, 0.1, 0.25), killed: pick(0, 0.1, 0.3), bent: pick(0, 0.1, 0.4),
		hangs: d.upTo(4) == 0,
	}
}

// counting are the requests by which functions count; the others make the tables.
var counting = map[string]bool{
	"BatchExecuteStatement": true, "BatchGetItem": true, "DeleteItem": true, "GetItem": true, "PutItem": true,
	"TransactWriteItems": true, "UpdateItem": true,
}

// call breaks a request to a stand-in.
func (f *faults) call(c wire.Call) wire.Fault {
	if f.calm.Load() || f.dice.chance() >= f.broken || !counting[c.Name] {
		return wire.Fault{}
	}
	f.tale.calls.Add(1)
	unavailable := &wire.Error{Code: "InternalServerError", Message: "injected", Status: 500}
	throttled := wire.Errorf("ThrottlingException", "injected")
	late := time.Duration(f.dice.upTo(2000)) * time.Millisecond
	switch f.dice.upTo(9) {
	case 0:
		return wire.Fault{Refuse: true}
	case 1:
		return wire.Fault{Lose: true}
	case 2:
		return wire.Fault{Before: unavailable}
	case 3:
		return wire.Fault{After: unavailable}
	case 4:
		return wire.Fault{Before: throttled}
	case 5:
		return wire.Fault{Refuse: true, Late: late}
	case 6:
		return wire.Fault{Before: unavailable, Late: late}
	case 7:
		if f.hangs && f.dice.upTo(4) == 0 {
			return wire.Fault{Hang: true, Lose: f.dice.upTo(2) == 0}
		}
	}
	if c.Name == "TransactWriteItems" {
		return wire.Fault{Before: conflictOf(c)}
	}
	return wire.Fault{Before: throttled}
}

// conflictOf cancels a transaction as one that met another on its last row.
func conflictOf(c wire.Call) error {
	actions := strings.Count(string(c.Body), `"TableName"`)
	codes := make([]string, max(actions, 1))
	for i := range codes {
		codes[i] = "None"
	}
	codes[len(codes)-1] = "TransactionConflict"
	return table.Canceled(codes...)
}

// breakable are the requests of pollers and of the functions to streams and queues; those of the schedule itself are
// others, and healthy.
var breakable = map[string]bool{
	"GetRecords": true, "GetShardIterator": true, "ReceiveMessage": true, "DeleteMessage": true,
	"DeleteMessageBatch": true, "SendMessage": true,
}

// source breaks a poller's or a parker's request; an answer that is lost there costs a delivery.
func (f *faults) source(c wire.Call) wire.Fault {
	if f.calm.Load() || f.dice.chance() >= f.broken/4 || !breakable[c.Name] {
		return wire.Fault{}
	}
	f.tale.calls.Add(1)
	switch f.dice.upTo(3) {
	case 0:
		return wire.Fault{Refuse: true}
	case 1:
		return wire.Fault{Lose: true}
	default:
		return wire.Fault{Before: &wire.Error{Code: "InternalFailure", Message: "injected", Status: 500}}
	}
}

// invocation kills a function, or loses its answer.
func (f *faults) invocation(string, sandbox.Call) sandbox.Fault {
	if f.calm.Load() || f.dice.chance() >= f.killed {
		return sandbox.Fault{}
	}
	f.tale.kills.Add(1)
	if f.dice.upTo(4) == 0 {
		return sandbox.Fault{LoseAnswer: true}
	}
	return sandbox.Fault{Kill: true, After: time.Duration(f.dice.upTo(120)) * time.Millisecond}
}

// delivery bends what at-least-once delivery allows to be bent.
func (f *faults) delivery(d mapping.Delivery) mapping.Twist {
	if f.calm.Load() || f.dice.chance() >= f.bent {
		return mapping.Twist{}
	}
	f.tale.twists.Add(1)
	switch f.dice.upTo(3) {
	case 0:
		if len(d.IDs) > 1 {
			return mapping.Twist{Cut: 1 + f.dice.upTo(len(d.IDs)-1)}
		}
		return mapping.Twist{Repeat: true}
	case 1:
		return mapping.Twist{Repeat: true}
	default:
		return mapping.Twist{Lapse: d.Source == "aws:sqs", Repeat: d.Source != "aws:sqs"}
	}
}
