package wal_test

import (
	"context"
	"fmt"
	"time"

	"abacus/shared/wal"
)

// spec says what a Consumer does, as plainly as possible: one log as a list, one call after the other, no buffers, no
// locks. env answers its calls as it answers the real consumer's.
type spec struct {
	settings
	env       *env
	log       []int // size of the record at position i+1; below 0: damaged
	truncated wal.Position
	lost      uint64 // damaged records so far, and those that were passed over
	excused   uint64
	done      wal.Position // acknowledged to this consumer
	counted   wal.Position
	stats     wal.Stats
	now       time.Time
	delay     time.Duration
	did       []string
}

// settings are what differs between consumers.
type settings struct {
	policy   wal.Policy
	maxBatch int
	maxBytes int
}

const (
	stallAfter, stallAttempts       = time.Minute, 4
	idleDelay, retryDelay, maxDelay = 250 * time.Millisecond, time.Second, 5 * time.Second
)

// outcome is an error: nil, or a sentinel with what else it must be.
type outcome []error

func (o outcome) retryable() bool {
	return o != nil && (o[0] == wal.ErrSend || o[0] == wal.ErrDeadLetter)
}

// call makes one call of the environment that fails as kind; ok says that its effect took place.
func (s *spec) call(name string, kind error, cancelExcuses bool) (failure outcome, ok bool) {
	f := s.env.draw(name)
	switch {
	case f.panics:
		return outcome{wal.ErrPanic}, false
	case kind == nil: // a call that cannot fail
		return nil, true
	case f.fails && cancelExcuses && s.env.cancelled:
		return outcome{context.Canceled}, false
	case f.fails:
		return outcome{kind, errBroken}, f.after
	}
	return nil, true
}

func (s *spec) next() (int, outcome) {
	mark, failure := s.watermark()
	if failure != nil {
		return 0, failure
	}
	return s.step(mark)
}

func (s *spec) drain() (total int, failure outcome) {
	mark, failure := s.watermark()
	for first := true; failure == nil && (first || s.done < mark); first = false {
		if s.env.cancelled {
			return total, outcome{context.Canceled}
		}
		var n int
		n, failure = s.step(mark)
		total += n
	}
	return total, failure
}

func (s *spec) run() (int, outcome) {
	s.delay = retryDelay
	for {
		n, failure := s.next()
		if n > 0 || failure == nil {
			s.delay = retryDelay
		}
		switch {
		case failure == nil && n == 0:
			s.sleep(idleDelay)
		case failure.retryable():
			s.did = append(s.did, "told "+failure[0].Error())
			s.sleep(s.delay)
			s.delay = min(2*s.delay, maxDelay)
		case failure != nil:
			return 0, failure
		}
	}
}

func (s *spec) sleep(d time.Duration) {
	s.did = append(s.did, "slept "+d.String())
	s.env.draw("sleep")
	s.now = s.now.Add(d)
}

func (s *spec) watermark() (wal.Position, outcome) {
	if s.env.cancelled {
		return 0, outcome{context.Canceled}
	}
	mark := wal.Position(len(s.log))
	failure, _ := s.call("flush", wal.ErrLog, true)
	return mark, failure
}

func (s *spec) step(mark wal.Position) (n int, failure outcome) {
	if failure, _ := s.call("state", nil, false); failure != nil {
		return 0, failure
	}
	s.passed(s.truncated)
	if s.done >= mark {
		return 0, nil
	}
	if failure, _ := s.call("scan", wal.ErrLog, false); failure != nil {
		return 0, failure
	}
	batch := s.batch(mark)
	if len(batch) == 0 {
		return 0, s.passOver(mark)
	}
	s.offer(batch[0])
	if s.log[batch[0]-1] > s.maxBytes {
		n, failure = s.dispose(batch[0], wal.ErrBatchTooLarge, wal.ErrBatchTooLarge)
	} else {
		n, failure = s.send(batch)
	}
	if failure != nil && failure[0] != context.Canceled {
		s.stats.Failures++
		s.stats.HeadAttempts++
	}
	h := &s.stats
	if h.Head != 0 && !h.Stalled && (h.HeadAttempts >= stallAttempts || s.now.Sub(h.HeadSince) >= stallAfter) {
		h.Stalled = true
		s.did = append(s.did, "told "+wal.ErrConsumerStalled.Error())
	}
	return n, failure
}

// batch are the positions to be offered; one that is too large stands alone.
func (s *spec) batch(mark wal.Position) (batch []wal.Position) {
	bytes := 0
	for p := s.done + 1; p <= mark && len(batch) < s.maxBatch; p++ {
		size := s.log[p-1]
		if size < 0 {
			continue
		}
		if bytes += size; bytes > s.maxBytes {
			if len(batch) == 0 {
				batch = append(batch, p)
			}
			break
		}
		batch = append(batch, p)
	}
	return batch
}

func (s *spec) passOver(mark wal.Position) outcome {
	if failure, _ := s.call("state", nil, false); failure != nil {
		return failure
	}
	if s.lost == s.excused {
		return outcome{wal.ErrLog}
	}
	if failure := s.acknowledge(mark, wal.ErrLog); failure != nil {
		return failure
	}
	s.excused = s.lost
	s.passed(mark)
	return nil
}

func (s *spec) send(batch []wal.Position) (int, outcome) {
	s.did = append(s.did, fmt.Sprint("offered ", batch))
	s.now = s.now.Add(s.env.slowness("send"))
	if failure, _ := s.call("send", wal.ErrSend, true); failure != nil {
		return 0, failure
	}
	result, accepted := s.env.answer(batch)
	if accepted < 0 {
		return 0, outcome{wal.ErrInvalidSendResult}
	}
	if accepted > 0 {
		if failure := s.acknowledge(result.Through, wal.ErrAcknowledge); failure != nil {
			return 0, failure
		}
		s.stats.Delivered += uint64(accepted)
		s.passed(result.Through)
	}
	if result.Rejected == nil {
		return accepted, nil
	}
	n, failure := s.dispose(batch[accepted], wal.ErrPermanentRejection, errReason)
	return accepted + n, failure
}

func (s *spec) dispose(p wal.Position, kind, reason error) (int, outcome) {
	s.offer(p)
	if s.counted != p {
		s.counted = p
		s.stats.PermanentRejections++
	}
	count := &s.stats.Discarded
	switch s.policy {
	case wal.StopOnRejection:
		return 0, outcome{kind, reason}
	case wal.DeadLetterRejected:
		s.did = append(s.did, fmt.Sprint("handled ", p, " ", reason))
		if failure, _ := s.call("handler", wal.ErrDeadLetter, false); failure != nil {
			return 0, failure
		}
		count = &s.stats.DeadLettered
	}
	if failure := s.acknowledge(p, wal.ErrDisposed); failure != nil {
		return 0, failure
	}
	*count++
	s.passed(p)
	return 1, nil
}

func (s *spec) acknowledge(through wal.Position, kind error) outcome {
	s.did = append(s.did, fmt.Sprint("acknowledged ", through))
	failure, applied := s.call("truncate", kind, false)
	if applied {
		s.truncated = max(s.truncated, through)
	}
	if failure == nil {
		s.done = through
	}
	return failure
}

func (s *spec) offer(p wal.Position) {
	if s.stats.Head != p {
		s.clearHead()
		s.stats.Head, s.stats.HeadSince = p, s.now
	}
}

func (s *spec) passed(p wal.Position) {
	if s.done = max(s.done, p); s.stats.Head <= s.done {
		s.clearHead()
	}
}

func (s *spec) clearHead() {
	s.stats.Head, s.stats.HeadSince, s.stats.HeadAttempts, s.stats.Stalled = 0, time.Time{}, 0, false
}
