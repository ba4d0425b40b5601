package mapping

import (
	"maps"
	"sync"
	"time"
)

// Stats counts what a mapping has done since it was made, in events, by the names of AWS's own metrics
// (https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html).
type Stats struct {
	Polled               int64 // records or messages read
	Invoked              int64 // given to the function, each time that they were
	FailedInvoke         int64 // of them: the function failed, or named them as failed
	Dropped              int64 // Kinesis: given up
	DestinationDelivered int64 // of them: told to the on-failure destination
	DestinationFailed    int64 // of them: lost, since the destination could not be told
	Deleted              int64 // SQS
	DeleteFailed         int64 // SQS: processed but not deleted, so they will come again

	Invocations int64                 // ended
	Running     int                   // invocations under way
	Shards      map[string]ShardStats // Kinesis, by shard id
	LastError   string                // the latest trouble with a source or a destination; empty: none yet
}

// ShardStats is how far one shard is.
type ShardStats struct {
	Checkpoint  string        // sequence number up to which every record is done with; empty: none
	Outstanding int           // records read and not done with
	Behind      time.Duration // MillisBehindLatest of the latest read
	Done        bool          // closed and read to its end
}

// ledger is a Stats under a lock, and wakes those who wait for a change of it.
type ledger struct {
	mu      sync.Mutex
	stats   Stats
	changed chan struct{}
}

func (l *ledger) note(change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.stats)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *ledger) trouble(err error) { l.note(func(s *Stats) { s.LastError = err.Error() }) }

// Stats returns a snapshot.
func (l *ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.stats
	out.Shards = maps.Clone(out.Shards)
	return out
}

// next returns a channel that closes at the next change.
func (l *ledger) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// started and ended stand around every invocation.
func (l *ledger) started() { l.note(func(s *Stats) { s.Running++ }) }

func (l *ledger) ended(events, failed int) {
	l.note(func(s *Stats) {
		s.Running--
		s.Invocations++
		s.Invoked += int64(events)
		s.FailedInvoke += int64(failed)
	})
}
