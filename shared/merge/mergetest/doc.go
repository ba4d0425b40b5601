// Package mergetest proves that a merge.Store and its callers keep the contract.
//
// Store is a strict one in memory. It does what the comments of merge.Store promise and no more, reports every misuse
// of the protocol as a test error, and lets a test break any call:
//
//	            how the caller hears of it          what happens to the call
//	Fault{      Err | Panic | Hang | Gone           Applied | Late | neither  }
//
// Worker is a process that uses a Store; it can be made to stop dead after any write. Deliver hands events out by the
// rules of Lambda's event sources, CrashMatrix does so once for each point at which a process can stop, and Audit
// recounts from the input events. Run is the conformance suite, for this Store and for any other.
package mergetest

import (
	"sync/atomic"
	"time"
)

// TB is what this package needs of a test: *testing.T, *testing.B and *rapid.T have it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Clock is time.Now moved on by Advance, so that it follows the clock of a synctest bubble. The zero value is ready and
// may be used by many goroutines.
type Clock struct{ offset atomic.Int64 }

// Now returns the time of this clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// Advance moves the clock on by d.
func (c *Clock) Advance(d time.Duration) { c.offset.Add(int64(d)) }
