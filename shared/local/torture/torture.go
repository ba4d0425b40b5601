// Package torture runs the whole suite under seeded schedules of faults: the real function binaries, the real SDK
// clients, the pollers and the stand-ins, while functions are killed, calls are refused, lost, late, hung, throttled and
// contended, batches come twice, are cut elsewhere and overlap, shards split, messages become visible too early, new
// rules are deployed, and dead letters are moved back. When the faults have stopped and the sources are drained, every
// counter must equal the truth, every bad record must be where bad records are kept, and no claim may be left that
// nothing decides.
package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Options says what to run. Zero values mean the default that the field names.
type Options struct {
	Root      string        // folder of the module; default: found from the working directory upward
	Schedules int           // default 200
	Seed      uint64        // of the first schedule, the next ones count up; default 1
	Parallel  int           // schedules at one time; default 12: they mostly wait
	Patience  time.Duration // longest time of one schedule; default 3 min
	Out       io.Writer     // default: nowhere
	Verbose   bool          // print what the functions of a failed schedule wrote
}

// ErrBroken reports schedules after which the promise did not hold. What was wrong has been printed, with the seeds.
var ErrBroken = errors.New("the promise did not hold; run a seed again with --seed N --schedules 1")

func (o *Options) complete() {
	if o.Schedules == 0 {
		o.Schedules = 200
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Parallel == 0 {
		o.Parallel = 12
	}
	if o.Patience == 0 {
		o.Patience = 3 * time.Minute
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
}

// Run runs the schedules and prints one line for each as it ends. It returns ErrBroken if one failed.
func Run(ctx context.Context, o Options) error {
	o.complete()
	dir, err := os.MkdirTemp("", "abacus-torture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	var mu sync.Mutex
	var total tale
	var broken []uint64
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range min(o.Parallel, o.Schedules) {
		workers.Go(func() {
			for seed := range seeds {
				s := newSchedule(seed, o, dir)
				err := s.run(ctx)
				mu.Lock()
				total.add(&s.tale)
				if err != nil {
					broken = append(broken, seed)
					fmt.Fprintf(o.Out, "seed %d BROKEN: %s: %v\n", seed, s.title(), err)
					if o.Verbose {
						fmt.Fprintln(o.Out, s.lines())
					}
				} else {
					fmt.Fprintf(o.Out, "seed %d exact: %s: %s\n", seed, s.title(), s.tale.String())
				}
				mu.Unlock()
			}
		})
	}
feeding:
	for i := range o.Schedules {
		select {
		case seeds <- o.Seed + uint64(i):
		case <-ctx.Done():
			break feeding
		}
	}
	close(seeds)
	workers.Wait()
	fmt.Fprintf(o.Out, "%d schedules, seeds %d to %d, in %.0fs: %s\n", o.Schedules, o.Seed,
		o.Seed+uint64(o.Schedules)-1, time.Since(began).Seconds(), total.String())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(broken) > 0 {
		fmt.Fprintf(o.Out, "broken: %v\n", broken)
		return ErrBroken
	}
	return nil
}
