package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"abacus/shared/local"
	"abacus/shared/local/mapping"
	"abacus/shared/local/sandbox"
)

// timeouts of an invocation are short, and with them the lease that a killed function's claims have. The shorter one
// ends functions that wait for a call that hangs.
var timeouts = []time.Duration{2 * time.Second, 4 * time.Second}

// schedule is one run of the suite from an empty start to the verdict.
type schedule struct {
	seed     uint64
	options  Options
	dir      string
	guard    string
	shards   int
	traffic  traffic
	faults   *faults
	rng      *rand.Rand
	suite    *local.Suite
	tale     tale
	mu       sync.Mutex
	lastSaid []string
}

func newSchedule(seed uint64, o Options, dir string) *schedule {
	rng := rand.New(rand.NewPCG(seed, 5))
	s := &schedule{
		seed: seed, options: o, dir: filepath.Join(dir, strconv.FormatUint(seed, 10)), rng: rng,
		guard: []string{"claim", "position"}[rng.IntN(2)], shards: 1 + rng.IntN(3),
	}
	s.traffic = newTraffic(seed, s.guard == "position")
	s.faults = newFaults(seed, &s.tale)
	s.tale.events.Store(int64(s.traffic.events))
	s.tale.bad.Store(int64(len(s.traffic.bad)))
	return s
}

func (s *schedule) title() string {
	return fmt.Sprintf("%s guard, %d shards, %g of calls broken, %g of functions killed, %g of deliveries bent",
		s.guard, s.shards, s.faults.broken, s.faults.killed, s.faults.bent)
}

// run returns nil if the promise held.
func (s *schedule) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Patience)
	defer cancel()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.deploy(ruleText); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() {
		if closed := s.suite.Close(); err == nil {
			err = closed
		}
	}()
	if err := s.storm(ctx); err != nil {
		return fmt.Errorf("while faults went on: %w", err)
	}
	s.faults.calm.Store(true)
	if err := s.settle(ctx); err != nil {
		return err
	}
	return s.audit(ctx)
}

func (s *schedule) start(ctx context.Context) (err error) {
	s.suite, err = local.Start(ctx, local.Options{
		Root: s.options.Root, Rules: s.rules(), FunctionTimeout: timeouts[s.rng.IntN(len(timeouts))],
		Parameters: map[string]any{
			"ShardCount": s.shards, "KinesisGuard": s.guard, "MaxReceiveCount": 8,
			"KinesisBatchSize": 5 + s.rng.IntN(60), "SqsBatchSize": 5 + s.rng.IntN(30),
		},
		Pace:          mapping.Pace{Chaos: s.faults.delivery},
		Log:           s.said,
		FunctionFault: s.faults.invocation, TableFault: s.faults.call,
		StreamFault: s.faults.source, QueueFault: s.faults.source,
	})
	return err
}

func (s *schedule) rules() string { return filepath.Join(s.dir, "counters.yaml") }

// deploy lays down a rule file whole, as a new version of the layer is.
func (s *schedule) deploy(text string) error {
	temporary := s.rules() + ".new"
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, s.rules())
}

// storm publishes everything, bit by bit, while everything that can go wrong does.
func (s *schedule) storm(ctx context.Context) error {
	const rounds = 8
	splitting, deployment := s.rng.IntN(rounds), s.rng.IntN(rounds)
	for round := range rounds {
		if err := s.publish(ctx, part(s.traffic.stream, round, rounds), part(s.traffic.queue, round, rounds)); err != nil {
			return err
		}
		if round == splitting {
			if err := s.split(ctx); err != nil {
				return err
			}
		}
		if round == deployment {
			if err := s.redeploy(); err != nil {
				return err
			}
		}
		if s.rng.IntN(3) == 0 { // messages come back while they are being worked on
			s.suite.SkipQueues(visibility)
		}
		if err := pause(ctx, time.Duration(100+s.rng.IntN(500))*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// part is the i-th of n nearly equal parts of all.
func part(all [][]byte, i, n int) [][]byte { return all[len(all)*i/n : len(all)*(i+1)/n] }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// redeploy puts other rules beside functions that are at work; the next processes read them.
func (s *schedule) redeploy() error {
	s.tale.deploys.Add(1)
	if err := s.deploy(nextRules); err != nil {
		return err
	}
	for _, name := range []string{"Kinesis", "Sqs"} {
		s.tale.kills.Add(int64(s.suite.Function(name).Kill()))
	}
	return nil
}

// said keeps the last lines that functions wrote.
func (s *schedule) said(line sandbox.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastSaid = append(s.lastSaid, fmt.Sprintf("%s[%d] %s", line.Function, line.Environment, line.Text))
	if len(s.lastSaid) > 400 {
		s.lastSaid = append([]string(nil), s.lastSaid[200:]...)
	}
}

func (s *schedule) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lastSaid, "\n")
}
