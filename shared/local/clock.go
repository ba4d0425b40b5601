package local

import (
	"sync"
	"time"
)

// clock is the machine's clock, and can be put forward: what waits by it for minutes then waits no longer.
type clock struct {
	mu     sync.Mutex
	ahead  time.Duration
	timers map[*alarm]bool
}

type alarm struct {
	due   time.Time
	timer *time.Timer
	fired chan time.Time
}

// Now returns the machine's time, as far ahead as the clock has been put.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// After is time.After by this clock.
func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{due: time.Now().Add(c.ahead + d), fired: make(chan time.Time, 1)}
	if c.timers == nil {
		c.timers = map[*alarm]bool{}
	}
	c.timers[a] = true
	a.timer = time.AfterFunc(d, func() { c.fire(a) })
	return a.fired
}

func (c *clock) fire(a *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timers[a] {
		delete(c.timers, a)
		a.fired <- time.Now().Add(c.ahead)
	}
}

// Skip puts the clock forward by d and wakes whoever waited for a time that has come by it.
func (c *clock) Skip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	now := time.Now().Add(c.ahead)
	for a := range c.timers {
		if !a.due.After(now) {
			a.timer.Stop()
			delete(c.timers, a)
			a.fired <- now
		}
	}
}
