package merge

import "time"

// Names under which a Recorder hears of what happens. Each event of a merge is counted under exactly one of merged,
// dedup_skip, in_flight, dead_letter and failed; each claim that was to be given back under exactly one of release and
// release_failed.
const (
	MetricMerged        = "merged"         // events counted by this call
	MetricDuplicate     = "dedup_skip"     // events that had been counted before
	MetricInFlight      = "in_flight"      // events that another attempt holds
	MetricDeadLetter    = "dead_letter"    // events that can never be counted as they stand
	MetricFailed        = "failed"         // events to be delivered again
	MetricParked        = "parked"         // bad records kept elsewhere; recorded by package ingest
	MetricRetry         = "retry"          // tries after the first, counted after the wait
	MetricConflict      = "conflict"       // commits that met another transaction
	MetricThrottled     = "throttled"      // calls that the store asked to slow down
	MetricTakeover      = "takeover"       // claims taken from attempts that will not commit them
	MetricRelease       = "release"        // claims given back
	MetricReleaseFailed = "release_failed" // claims that could not be; the next delivery takes them over
	MetricCacheFailed   = "cache_failed"   // totals that the cache may not have

	TimeStoreMerge = "store_merge" // how long a commit took that was applied
	TimeCacheMerge = "cache_merge" // how long the cache took, failed or not
)

// Recorder hears what happens. Its methods are called by many goroutines, must not block, and may panic without harm.
type Recorder interface {
	// Count reports n more of name, and for failures the cause of at least one of them, otherwise nil.
	Count(name string, n int, cause error)
	// Observe reports how long one operation took.
	Observe(name string, took time.Duration)
}

type silent struct{}

func (silent) Count(string, int, error)      {}
func (silent) Observe(string, time.Duration) {}

func (m *Merger) record(name string, n int, cause error) {
	if n == 0 {
		return
	}
	var ignored error
	defer contain(&ignored)
	m.cfg.Recorder.Count(name, n, cause)
}

func (m *Merger) observe(name string, took time.Duration) {
	var ignored error
	defer contain(&ignored)
	m.cfg.Recorder.Observe(name, took)
}
