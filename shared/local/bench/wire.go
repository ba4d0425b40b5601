package bench

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"abacus/shared/dynamo"
	"abacus/shared/envelope"
	"abacus/shared/ingest"
	"abacus/shared/merge"
)

// handlerOn is the function's own handler on a store, without its process. marks, if not nil, counts by position.
func handlerOn(store merge.Store, marks merge.MarkStore, rules string) (*ingest.Handler, error) {
	merger, err := merge.New(merge.Config{Store: store})
	if err != nil {
		return nil, err
	}
	config := ingest.Config{
		Kind: envelope.Kinesis, Rules: mustRules(rules), Sink: merger, Log: slog.New(slog.DiscardHandler),
	}
	if marks != nil {
		config.Sink, config.ByPosition = merger.ByPosition(marks), true
	}
	return ingest.New(config)
}

// subject is one of the two that are compared, on tables of its own.
type subject struct {
	meter  meter
	handle func(context.Context, []byte) error
	stop   func()
}

// starter starts one of those that are compared.
type starter func(ctx context.Context, rules string, latency time.Duration) (*subject, error)

func byClaim(ctx context.Context, rules string, latency time.Duration) (*subject, error) {
	return ours(ctx, rules, latency, false)
}

func byPosition(ctx context.Context, rules string, latency time.Duration) (*subject, error) {
	return ours(ctx, rules, latency, true)
}

func ours(ctx context.Context, rules string, latency time.Duration, position bool) (*subject, error) {
	s := new(subject)
	stand, err := startStand(ctx, latency)
	if err != nil {
		return nil, err
	}
	s.stop = stand.stop
	client := clientOf(stand.url)
	if err := makeTables(ctx, client); err != nil {
		return nil, err
	}
	store, err := dynamo.NewStore(dynamo.Options{
		Client: client, Counters: countersTable, Dedup: dedupTable,
		Meter: func(u dynamo.Usage) { s.meter.note(u.Write) },
	})
	if err != nil {
		return nil, err
	}
	var marks merge.MarkStore
	if position {
		marks = store
	}
	handler, err := handlerOn(store, marks, rules)
	if err != nil {
		return nil, err
	}
	s.handle = func(ctx context.Context, raw []byte) error {
		response, err := handler.Invoke(ctx, raw)
		if err == nil && string(response) != `{"batchItemFailures":[]}` {
			err = fmt.Errorf("the handler answered %s", response)
		}
		return err
	}
	return s, nil
}

func reference(ctx context.Context, rules string, latency time.Duration) (*subject, error) {
	s := new(subject)
	stand, err := startStand(ctx, latency)
	if err != nil {
		return nil, err
	}
	s.stop = stand.stop
	client := clientOf(stand.url)
	if err := makeTables(ctx, client); err != nil {
		return nil, err
	}
	s.handle = (&naive{client: client, rules: rules, meter: &s.meter}).handle
	return s, nil
}

// measureWire counts requests and write units; both are the same in every run.
func measureWire(ctx context.Context, _ Options) ([]figure, error) {
	var figures []figure
	for _, w := range []struct {
		name     string
		rules    string
		records  int
		claim    float64 // targets of write units a record; 0: none
		position float64
	}{
		{"1 key, 100 records", oneKey, 100, 0, 0},
		{"1 key, 1,000 records", oneKey, 1000, 1.11, 0.06},
		{"3 keys, 1,000 records", threeKeys, 1000, 1.6, 0.3},
		{"1 key, 10,000 records", oneKey, 10000, 1.11, 0.06},
		{"3 keys, 10,000 records", threeKeys, 10000, 1.6, 0.3},
	} {
		event := kinesisEvent(views(w.records, "w"))
		var requests, units [3]float64
		for i, start := range []starter{reference, byClaim, byPosition} {
			s, err := start(ctx, w.rules, 0)
			if err != nil {
				return nil, err
			}
			err = s.handle(ctx, event)
			s.stop()
			if err != nil {
				return nil, err
			}
			n := float64(w.records)
			requests[i], units[i] = float64(s.meter.requests)/n, s.meter.units/n
		}
		for i, guard := range []struct {
			name            string
			requests, units float64
		}{{"claim", 0.05, w.claim}, {"position", 0.06, w.position}} {
			if w.rules == threeKeys && guard.name == "position" {
				guard.requests = 0 // one for each row that moves, as its write units
			}
			if guard.units == 0 {
				guard.requests = 0
			}
			figures = append(figures,
				atMost("requests an event, "+w.name+", "+guard.name, requests[0], requests[i+1], guard.requests),
				atMost("write units an event, "+w.name+", "+guard.name, units[0], units[i+1], guard.units))
		}
	}
	return figures, nil
}

// atMost is a figure with an upper bound; 0: none.
func atMost(name string, reference, ours, most float64) figure {
	f := figure{name: name, reference: format(reference), ours: format(ours)}
	if most > 0 {
		f.target, f.met = "at most "+format(most), judge(ours <= most)
	}
	return f
}

// measureCPU measures the processor time of this process alone; the stand-in runs in another.
func measureCPU(ctx context.Context, o Options) ([]figure, error) {
	const records = 1000
	var micros [3]float64
	for i, start := range []starter{reference, byClaim, byPosition} {
		s, err := start(ctx, oneKey, 0)
		if err != nil {
			return nil, err
		}
		at := 0 // in the shard, where each batch begins behind the one before
		next := func() []byte {
			at++
			return kinesisEvent(views(records, fmt.Sprintf("c%d-", at)), at*records)
		}
		if err := s.handle(ctx, next()); err != nil { // connections and caches
			return nil, err
		}
		micros[i], err = median(o.Rounds, func() (float64, error) {
			const batches = 5
			var spent time.Duration
			for range batches {
				event := next()
				began := processorTime()
				if err := s.handle(ctx, event); err != nil {
					return 0, err
				}
				spent += processorTime() - began
			}
			return float64(spent.Microseconds()) / (batches * records), nil
		})
		s.stop()
		if err != nil {
			return nil, err
		}
	}
	return []figure{
		atMost("processor time an event over the wire, us, claim", micros[0], micros[1], 25),
		atMost("processor time an event over the wire, us, position", micros[0], micros[2], 25),
	}, nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measureLatency compares throughput where each DynamoDB call takes 5 ms.
func measureLatency(ctx context.Context, o Options) ([]figure, error) {
	const latency = 5 * time.Millisecond
	var rates [3]float64
	for i, s := range []struct {
		start   starter
		records int
	}{{reference, 300}, {byClaim, 1000}, {byPosition, 1000}} {
		subject, err := s.start(ctx, oneKey, latency)
		if err != nil {
			return nil, err
		}
		round := 0
		rates[i], err = median(o.Rounds, func() (float64, error) {
			round++
			event := kinesisEvent(views(s.records, fmt.Sprintf("l%d-", round)), round*s.records)
			began := time.Now()
			err := subject.handle(ctx, event)
			return float64(s.records) / time.Since(began).Seconds(), err
		})
		subject.stop()
		if err != nil {
			return nil, err
		}
	}
	var figures []figure
	for i, guard := range []string{"claim", "position"} {
		ratio := rates[i+1] / rates[0]
		figures = append(figures, figure{
			name:      "events/s at 5 ms a DynamoDB call, 1,000 records, " + guard,
			reference: format(rates[0]), ours: fmt.Sprintf("%s (%s times)", format(rates[i+1]), format(ratio)),
			target: "at least 100 times", met: judge(ratio >= 100),
		})
	}
	return figures, nil
}
