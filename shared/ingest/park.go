package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"abacus/shared/envelope"
)

const (
	parkWidth = 8 // documents on their way at once
	// Counting ends a tenth of its time before the deadline, but at most this much; parking ends a quarter of what is then
	// left before it, but at most half of this.
	maxParkTime = 3 * time.Second
)

var (
	// errNoTime reports a bad record that was not parked for want of time.
	errNoTime = errors.New("no time left to park the record; allow the function more time, or give it smaller batches")
	// errBehind reports a bad record that was not parked because it comes again anyhow.
	errBehind = errors.New("it is parked once the records before it need not come again")
)

// parks reports whether bad records of this source are parked by the function.
func (h *Handler) parks() bool { return h.kind == envelope.Kinesis && h.parker != nil }

// leaveTimeToPark returns the context of counting, which ends early enough for bad records to be parked afterwards.
func (in *invocation) leaveTimeToPark(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok || !in.parks() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(time.Until(end)/10, maxParkTime)))
}

// park parks the bad records, the first ones first, so that a shard moves on even if time runs out. What is not
// parked in time must come again.
func (in *invocation) park(ctx context.Context) {
	if !in.parks() || in.position { // under it the bad records are parked by now
		return
	}
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-min(time.Until(end)/4, maxParkTime/2)))
		defer cancel()
	}
	lowest, again := in.lowestFailed()
	free := make(chan struct{}, parkWidth)
	var under sync.WaitGroup
	for i := range in.fates {
		if in.fates[i].verdict != bad {
			continue
		}
		if again && in.number(i).Compare(lowest) > 0 {
			in.fates[i] = fate{failed, fmt.Errorf("%w: %w", errBehind, in.fates[i].reason)}
			continue
		}
		free <- struct{}{}
		under.Go(func() {
			defer func() { <-free }()
			in.fates[i] = in.parkOne(ctx, i, in.fates[i].reason)
		})
	}
	under.Wait()
}

// parkInOrder parks a bad record at once under the position guard; otherwise it leaves it for later. A mark that
// passes a record makes it a duplicate for ever, and a record that was parked must not come again, since it might be
// countable by then: so all before it is counted first, and nothing behind it before it is parked.
func (in *invocation) parkInOrder(ctx context.Context, i int, f fate) fate {
	if !in.position || f.verdict != bad || !in.parks() {
		return f
	}
	in.merge(ctx)
	if in.held[in.record.Group] {
		return fate{failed, errHeld}
	}
	return in.parkOne(ctx, i, f.reason)
}

// lowestFailed returns the position from which the shard will be read again, if it is known already.
func (in *invocation) lowestFailed() (lowest envelope.SequenceNumber, ok bool) {
	for i, f := range in.fates {
		if n := in.number(i); f.verdict == failed && (!ok || n.Compare(lowest) < 0) {
			lowest, ok = n, true
		}
	}
	return lowest, ok
}

func (in *invocation) number(i int) envelope.SequenceNumber {
	return envelope.SequenceNumber(in.batch.Records[i].ID)
}

func (in *invocation) parkOne(ctx context.Context, i int, reason error) fate {
	if ctx.Err() != nil {
		return fate{failed, fmt.Errorf("%w: %w", errNoTime, reason)}
	}
	if err := in.send(ctx, i, reason); err != nil {
		return fate{failed, fmt.Errorf("%w; it was not parked: %w", reason, err)}
	}
	return fate{parked, reason}
}

func (in *invocation) send(ctx context.Context, i int, reason error) (err error) {
	defer contain(&err)
	record := envelope.Park(in.batch, i, reason.Error(), in.rules.Digest(), in.now().UTC())
	document, err := json.Marshal(record)
	if errors.Is(err, envelope.ErrParkedSize) {
		in.announce(ctx, record)
	}
	if err != nil {
		return err
	}
	return in.parker.Park(ctx, document)
}

// announce sends a notice of a record that is too large to park, which therefore comes again. It does so once for each
// record, as far as it remembers, and gives nothing for a failure: the record is reported and logged all the same.
func (in *invocation) announce(ctx context.Context, record envelope.Parked) {
	if !in.announced.add(record.Identity) {
		return
	}
	if notice, err := record.Notice(); err != nil || in.parker.Park(ctx, notice) != nil {
		in.announced.remove(record.Identity)
	}
}

// memory remembers up to maxAnnounced names. It may be used by many goroutines.
type memory struct {
	mu    sync.Mutex
	names map[string]struct{}
}

const maxAnnounced = 1000

// add reports whether name is new.
func (m *memory) add(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.names[name]; ok {
		return false
	}
	if m.names == nil || len(m.names) == maxAnnounced {
		m.names = map[string]struct{}{}
	}
	m.names[name] = struct{}{}
	return true
}

func (m *memory) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.names, name)
}
