package mapping

import (
	"context"
	"errors"
	"slices"
	"time"
)

// lane works off the records of one shard that fall to it, one batch at a time, in order. With factor 1 a shard has
// one.
type lane struct {
	d       *shard
	in      chan []*record
	pending []*record
	closed  bool
}

// run works until the shard has ended or ctx ends.
func (l *lane) run(ctx, work context.Context) {
	for {
		batch := l.gather(ctx)
		if len(batch) == 0 || !l.settle(ctx, work, batch) {
			return
		}
	}
}

// gather returns the next batch. It closes on the first of: batch size, batching window, 6 MB. Without a window it
// holds what is there (https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html).
func (l *lane) gather(ctx context.Context) []*record {
	if len(l.pending) == 0 && !l.wait(ctx, nil) {
		return nil
	}
	var window <-chan time.Time
	if w := l.d.k.c.BatchingWindow; w > 0 {
		window = l.d.k.c.Pace.After(w)
	}
	for !l.full() && !l.closed {
		if l.d.k.c.BatchingWindow > 0 {
			if !l.wait(ctx, window) {
				break
			}
			continue
		}
		select {
		case part, open := <-l.in:
			l.pending, l.closed = append(l.pending, part...), !open
			continue
		default:
		}
		break
	}
	if ctx.Err() != nil {
		return nil
	}
	n := min(l.d.k.c.BatchSize, len(l.pending))
	n = max(1, min(n, fitting(texts(l.pending[:n]))))
	batch := slices.Clone(l.pending[:n])
	l.pending = slices.Delete(l.pending, 0, n)
	return batch
}

func (l *lane) full() bool {
	return len(l.pending) >= l.d.k.c.BatchSize || fitting(texts(l.pending)) < len(l.pending)
}

// wait adds one part to what is pending. It returns false when the window closes, the shard has ended or ctx ends.
func (l *lane) wait(ctx context.Context, window <-chan time.Time) bool {
	if l.closed {
		return false
	}
	select {
	case part, open := <-l.in:
		l.pending, l.closed = append(l.pending, part...), !open
		return open
	case <-window:
		return false
	case <-ctx.Done():
		return false
	}
}

func texts(records []*record) [][]byte {
	out := make([][]byte, len(records))
	for i, r := range records {
		out[i] = r.text
	}
	return out
}

func numbers(records []*record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.number
	}
	return out
}

// outcome is how one invocation went.
type outcome struct {
	failedAt  int // index of the lowest failed record; the length of the batch where all is well
	err       error
	throttled bool // the function was not invoked
	function  bool // the function failed as a whole, rather than naming records
}

// invoke runs the function on records.
func (l *lane) invoke(work context.Context, records []*record) outcome {
	k := l.d.k
	for _, r := range records {
		r.tries++
	}
	k.started()
	response, err := k.c.Invoke(work, event(texts(records)))
	o := outcome{failedAt: len(records), err: err, throttled: errors.Is(err, ErrThrottled)}
	if err == nil {
		v := judge(response, numbers(records), k.c.ReportBatchItemFailures)
		o.err = v.err
		// The checkpoint is the lowest sequence number returned; records come in the order of these.
		if at := slices.IndexFunc(records, func(r *record) bool { return v.failed[r.number] }); at >= 0 {
			o.failedAt = at
		}
	}
	if o.err != nil {
		o.failedAt, o.function = 0, true
	}
	k.ended(len(records), len(records)-o.failedAt)
	return o
}
