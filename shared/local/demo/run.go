package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"abacus/shared/local"
	"abacus/shared/tally/rules"
)

// ErrInexact reports a run whose counts or dead letters are not what they must be. What differs has been printed.
var ErrInexact = errors.New("the counts are not exact; see what differs above")

// ErrNothing reports a run in which the rules counted nothing at all, so that there was nothing to be exact about.
var ErrNothing = errors.New("nothing was counted: the rules match none of the events, or all of them are bad; " +
	"the reasons stand above, with the line of the rule file")

// Options says what to count. Zero values mean the default that the field names.
type Options struct {
	Root   string    // folder of the module; default: found from the working directory upward
	Events string    // newline-delimited JSON, gzipped or not; default: the sample of flights in events/
	Rules  string    // rule file; default: functions/counters.yaml, whose truth is counted by hand
	Build  string    // where executables are built; default .build under Root
	Seed   uint64    // of everything random
	Out    io.Writer // default: nowhere
	// Patience is how long nothing may move before the run is given up as stuck; default 30 s.
	Patience time.Duration

	adjust func(*local.Options) // lets a test change what is started
}

// sampleEvents is what is counted by default.
const sampleEvents = "events/flights-sample.ndjson.gz"

// parameters of the template for a run: shards enough to be seen working side by side, and bad messages given up as
// soon as the template allows.
var parameters = map[string]any{"ShardCount": 4, "MaxReceiveCount": 5}

// run is one run at work.
type run struct {
	Options
	progress *progress
	witness  witness
	suite    *local.Suite
	traffic  traffic
	truth    func(from, to time.Time) (truth, error) // of what was published and counted between from and to
	sent     time.Time                               // when publishing began
}

// Run counts a file end to end, as the package comment says, and prints how it went. It returns nil only if every
// count is equal to the truth and every bad record is kept with its payload; ErrInexact if not.
func Run(ctx context.Context, o Options) error {
	began := time.Now()
	r, err := prepare(o)
	if err != nil {
		return err
	}
	defer r.progress.leave()
	if err := r.start(ctx); err != nil {
		return err
	}
	err = r.count(ctx)
	if err == nil {
		err = r.judge(ctx, began)
	}
	return errors.Join(err, r.suite.Close())
}

// prepare reads the events and finds out what has to come of them.
func prepare(o Options) (*run, error) {
	if o.Root == "" {
		root, err := local.FindRoot(".")
		if err != nil {
			return nil, err
		}
		o.Root = root
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	o.Events = cmp.Or(o.Events, filepath.Join(o.Root, filepath.FromSlash(sampleEvents)))
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	r := &run{Options: o, progress: newProgress(o.Out)}
	events, err := load(o.Events)
	if err != nil {
		return nil, err
	}
	if o.Rules == "" {
		r.traffic = newTraffic(events, badFlights(), o.Seed)
		known, err := flightTruth(events, r.traffic)
		r.truth = func(time.Time, time.Time) (truth, error) { return known, nil }
		return r, err
	}
	set, err := rules.Load(o.Rules)
	if err != nil {
		return nil, err
	}
	r.traffic = newTraffic(events, badForAnyRules(events[0]), o.Seed)
	r.truth = func(from, to time.Time) (truth, error) { return ruleTruth(set, r.traffic, from, to) }
	return r, nil
}

func (r *run) start(ctx context.Context) error {
	began := time.Now()
	finished := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			r.progress.show("build", "the functions, and the resources of template.yaml: %.0fs", time.Since(began).Seconds())
			select {
			case <-ticks.C:
			case <-finished:
				return
			}
		}
	})
	options := local.Options{
		Root: r.Root, Rules: r.Rules, Build: r.Build, Parameters: parameters, Log: r.witness.line, Report: r.witness.report,
	}
	if r.adjust != nil {
		r.adjust(&options)
	}
	suite, err := local.Start(ctx, options)
	close(finished)
	ticking.Wait()
	if err != nil {
		return err
	}
	r.suite = suite
	r.progress.end("build", "functions built and resources made from template.yaml at %s in %.1fs",
		suite.URL(), time.Since(began).Seconds())
	return nil
}

// count sends everything and waits until it is dealt with.
func (r *run) count(ctx context.Context) error {
	r.sent = time.Now()
	total := len(r.traffic.kinesis) + len(r.traffic.sqs)
	err := publish(ctx, r.suite, r.traffic, func(sent int) {
		r.progress.show("publish", "%s of %s records", thousands(sent), thousands(total))
	})
	if err != nil {
		return err
	}
	r.progress.end("publish",
		"%s records: %s through Kinesis, %s through SQS; %s are second copies, %d are bad; seed %d; %.1fs",
		thousands(total), thousands(len(r.traffic.kinesis)), thousands(len(r.traffic.sqs)), thousands(r.traffic.copies),
		r.traffic.bad, r.Seed, time.Since(r.sent).Seconds())
	return r.drain(ctx)
}

// thousands writes n with a comma between each three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && n > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
