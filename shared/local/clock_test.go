package local

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClock_SkipWakesWhoeverIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clock{}
		start := c.Now()
		soon, late := c.After(time.Minute), c.After(time.Hour)
		c.Skip(10 * time.Minute)
		if got := c.Now().Sub(start); got != 10*time.Minute {
			t.Errorf("%v went by, want 10m", got)
		}
		select {
		case <-soon:
		default:
			t.Error("what was due a minute later still waits")
		}
		select {
		case <-late:
			t.Error("what was due an hour later came too soon")
		default:
		}
		time.Sleep(49 * time.Minute)
		c.Skip(time.Minute)
		<-late
		waited := time.Now()
		<-c.After(time.Second)
		if got := time.Since(waited); got != time.Second {
			t.Errorf("without a skip it took %v, want 1s", got)
		}
		if len(c.timers) != 0 {
			t.Errorf("%d timers left", len(c.timers))
		}
	})
}
