package demo

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"abacus/shared/local"
)

// glance is how often the suite is looked at.
const glance = 100 * time.Millisecond

// drain waits until everything that was sent is dealt with. A bad message comes back from the queue only when its
// visibility timeout ends, minutes later, and several times before it is given up: whenever nothing else is left to do
// the queues' clock is put forward by that time. The functions' clock is not.
func (r *run) drain(ctx context.Context) error {
	began := time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	drained := make(chan error, 1)
	go func() { drained <- r.suite.Drained(ctx) }()
	ticks := time.NewTicker(glance)
	defer ticks.Stop()
	var last local.Status
	moved, skips := time.Now(), 0
	for {
		select {
		case err := <-drained:
			if err != nil {
				return err
			}
			r.progress.end("count", "all read, counted or kept in %.1fs: %s", time.Since(began).Seconds(), r.witness.summary())
			return nil
		case <-ticks.C:
		}
		status, err := r.suite.Status(ctx)
		if err != nil {
			return err
		}
		if err := r.suite.Err(); err != nil {
			return err
		}
		if !reflect.DeepEqual(status, last) {
			last, moved = status, time.Now()
		}
		if time.Since(moved) > r.Patience {
			return r.stuck(status)
		}
		r.progress.show("count", "%s", r.describe(status, skips))
		if waitsForVisibility(status) {
			if skipped, err := r.skip(ctx, status); err != nil {
				return err
			} else if skipped {
				skips++
			}
		}
	}
}

const (
	kinesisMapping = "Kinesis.Records"
	sqsMapping     = "Sqs.Messages"
)

// waitsForVisibility reports whether nothing is left to do but for messages of the queue that wait, hidden, for their
// next delivery. While a shard is worked on they had better wait: what they wait for may be an attempt there.
func waitsForVisibility(s local.Status) bool {
	for _, m := range s.Mappings {
		if m.Running > 0 {
			return false
		}
		for _, shard := range m.Shards {
			if shard.Outstanding > 0 {
				return false
			}
		}
	}
	m, q := s.Mappings[sqsMapping], depth(s, "Queue")
	return q.InFlight > 0 && q.Visible == 0 && m.Polled == m.Invoked
}

// skip puts the queues' clock forward, unless a message was taken since before was looked at.
func (r *run) skip(ctx context.Context, before local.Status) (bool, error) {
	now, err := r.suite.Status(ctx)
	if err != nil || !waitsForVisibility(now) || now.Mappings[sqsMapping].Polled != before.Mappings[sqsMapping].Polled {
		return false, err
	}
	wait, err := r.suite.VisibilityTimeout(ctx, "Queue")
	if err != nil {
		return false, err
	}
	r.suite.SkipQueues(wait)
	return true, nil
}

func (r *run) describe(s local.Status, skips int) string {
	k := s.Mappings[kinesisMapping]
	left := depth(s, "Queue")
	text := fmt.Sprintf("Kinesis: %s of %s read, SQS: %s of %s left, %s",
		thousands(int(k.Polled)), thousands(len(r.traffic.kinesis)), thousands(left.Visible+left.InFlight+left.Hidden),
		thousands(len(r.traffic.sqs)), r.witness.summary())
	if skips > 0 {
		text += fmt.Sprintf("; queue clock put forward %d times for bad messages", skips)
	}
	return text
}

// stuck says what did not move, and what the functions said last.
func (r *run) stuck(s local.Status) error {
	return fmt.Errorf("nothing has moved for %v, so the run is given up\n%s\nthe functions' last words:\n%s",
		r.Patience, s, r.witness.last())
}

func depth(s local.Status, queue string) local.Depth {
	for _, q := range s.Queues {
		if q.Queue == queue {
			return q
		}
	}
	return local.Depth{}
}
