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

// handlerOn is the function's own handler on a store, without its process.
func handlerOn(store merge.Store, rules string) (*ingest.Handler, error) {
	merger, err := merge.New(merge.Config{Store: store})
	if err != nil {
		return nil, err
	}
	return ingest.New(ingest.Config{
		Kind: envelope.Kinesis, Rules: mustRules(rules), Sink: merger, Log: slog.New(slog.DiscardHandler),
	})
}

// subject is one of the two that are compared, on tables of its own.
type subject struct {
	meter  meter
	handle func(context.Context, []byte) error
	stop   func()
}

func ours(ctx context.Context, rules string, latency time.Duration) (*subject, error) {
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
	handler, err := handlerOn(store, rules)
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
func measureWire(ctx context.Context, o Options) ([]figure, error) {
	var figures []figure
	for _, w := range []struct {
		name    string
		rules   string
		records int
		units   float64 // target a record; 0: none
	}{
		{"1 key, 100 records", oneKey, 100, 0},
		{"1 key, 1,000 records", oneKey, 1000, 1.11},
		{"3 keys, 1,000 records", threeKeys, 1000, 1.6},
		{"1 key, 10,000 records", oneKey, 10000, 1.11},
		{"3 keys, 10,000 records", threeKeys, 10000, 1.6},
	} {
		event := kinesisEvent(views(w.records, "w"))
		var got [2]*subject
		for i, start := range []func(context.Context, string, time.Duration) (*subject, error){reference, ours} {
			s, err := start(ctx, w.rules, 0)
			if err != nil {
				return nil, err
			}
			err = s.handle(ctx, event)
			s.stop()
			if err != nil {
				return nil, err
			}
			got[i] = s
		}
		n := float64(w.records)
		requests := figure{
			name:      "requests an event, " + w.name,
			reference: format(float64(got[0].meter.requests) / n),
			ours:      format(float64(got[1].meter.requests) / n),
		}
		units := figure{
			name:      "write units an event, " + w.name,
			reference: format(got[0].meter.units / n), ours: format(got[1].meter.units / n),
		}
		if w.units > 0 {
			requests.target, requests.met = "at most 0.05", judge(float64(got[1].meter.requests)/n <= 0.05)
			units.target, units.met = "at most "+format(w.units), judge(got[1].meter.units/n <= w.units)
		}
		figures = append(figures, requests, units)
	}
	return figures, nil
}

// measureCPU measures the processor time of this process alone; the stand-in runs in another.
func measureCPU(ctx context.Context, o Options) ([]figure, error) {
	const records = 1000
	var micros [2]float64
	for i, start := range []func(context.Context, string, time.Duration) (*subject, error){reference, ours} {
		s, err := start(ctx, oneKey, 0)
		if err != nil {
			return nil, err
		}
		if err := s.handle(ctx, kinesisEvent(views(records, "warm"))); err != nil { // connections and caches
			return nil, err
		}
		round := 0
		micros[i], err = median(o.Rounds, func() (float64, error) {
			round++
			const batches = 5
			var spent time.Duration
			for b := range batches {
				event := kinesisEvent(views(records, fmt.Sprintf("%d-%d-", round, b)))
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
	return []figure{{
		name:      "processor time an event over the wire, us",
		reference: format(micros[0]), ours: format(micros[1]), target: "at most 25", met: judge(micros[1] <= 25),
	}}, nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measureLatency compares throughput where each DynamoDB call takes 5 ms.
func measureLatency(ctx context.Context, o Options) ([]figure, error) {
	const latency = 5 * time.Millisecond
	var rates [2]float64
	for i, s := range []struct {
		start   func(context.Context, string, time.Duration) (*subject, error)
		records int
	}{{reference, 300}, {ours, 1000}} {
		subject, err := s.start(ctx, oneKey, latency)
		if err != nil {
			return nil, err
		}
		round := 0
		rates[i], err = median(o.Rounds, func() (float64, error) {
			round++
			event := kinesisEvent(views(s.records, fmt.Sprintf("l%d-", round)))
			began := time.Now()
			err := subject.handle(ctx, event)
			return float64(s.records) / time.Since(began).Seconds(), err
		})
		subject.stop()
		if err != nil {
			return nil, err
		}
	}
	ratio := rates[1] / rates[0]
	return []figure{{
		name:      "events/s at 5 ms a DynamoDB call, 1,000 records",
		reference: format(rates[0]), ours: fmt.Sprintf("%s (%s times)", format(rates[1]), format(ratio)),
		target: "at least 100 times", met: judge(ratio >= 100),
	}}, nil
}
