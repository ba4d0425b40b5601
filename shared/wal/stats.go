package wal

import "time"

// Stats is one consistent picture of a Consumer since it was made.
type Stats struct {
	Delivered    uint64 // records that the sender took
	DeadLettered uint64
	Discarded    uint64
	// PermanentRejections are records that can never be delivered, each counted once however often it is met.
	PermanentRejections uint64
	Failures            uint64    // offers and dispositions that failed
	Head                Position  // the record to be delivered next, once it was offered; 0 after progress
	HeadSince           time.Time // when Head was first offered; a Send that hangs shows here
	HeadAttempts        int       // how often offering or disposing of it has failed
	Stalled             bool      // Head has not got through for StallAfter or StallAttempts
}

// Stats returns one consistent picture of the consumer. It may be called at any time, from callbacks too.
func (c *Consumer) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// change changes the statistics for all who look, at once.
func (c *Consumer) change(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.stats)
}

// now is the wall clock's time: the other clock stops in a frozen process.
func (c *Consumer) now() (t time.Time, err error) {
	err = call("Now", ErrPanic, func() error {
		t = c.cfg.Now().Round(0)
		return nil
	})
	return t, err
}

// sawHead notes which record is offered next.
func (c *Consumer) sawHead(p Position) error {
	if c.Stats().Head == p {
		return nil
	}
	since, err := c.now()
	if err != nil {
		return err
	}
	c.change(func(s *Stats) {
		s.passHead()
		s.Head, s.HeadSince = p, since
	})
	return nil
}

// checkStall tells, once for a head, that it does not get through.
func (c *Consumer) checkStall() error {
	s := c.Stats()
	if s.Head == 0 || s.Stalled {
		return nil
	}
	now, err := c.now()
	if err != nil {
		return err
	}
	if s.HeadAttempts < c.cfg.StallAttempts && now.Sub(s.HeadSince) < c.cfg.StallAfter {
		return nil
	}
	c.change(func(s *Stats) { s.Stalled = true })
	c.tell(&Fault{Kind: ErrConsumerStalled})
	return nil
}

// passed notes that nothing up to p is left, by whomever it was taken.
func (c *Consumer) passed(p Position) {
	c.acknowledged = max(c.acknowledged, p)
	c.change(func(s *Stats) {
		if s.Head <= c.acknowledged {
			s.passHead()
		}
	})
}

func (c *Consumer) failed() {
	c.change(func(s *Stats) {
		s.Failures++
		s.HeadAttempts++
	})
}

func (c *Consumer) delivered(n int) {
	c.change(func(s *Stats) {
		s.Delivered += uint64(n)
		s.passHead()
	})
}

// rejected counts the record at p unless it was the last that was counted.
func (c *Consumer) rejected(p Position) {
	c.change(func(s *Stats) {
		if c.counted != p {
			c.counted = p
			s.PermanentRejections++
		}
	})
}

func (c *Consumer) disposed() {
	c.change(func(s *Stats) {
		if c.cfg.Policy == DeadLetterRejected {
			s.DeadLettered++
		} else {
			s.Discarded++
		}
		s.passHead()
	})
}

func (s *Stats) passHead() { s.Head, s.HeadSince, s.HeadAttempts, s.Stalled = 0, time.Time{}, 0, false }
