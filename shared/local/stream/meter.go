package stream

import "time"

// Limits of one shard (https://docs.aws.amazon.com/streams/latest/dev/service-sizes-and-limits.html).
const (
	recordsWritten = 1000
	bytesWritten   = 1 << 20
	readCalls      = 5
	bytesRead      = 2 << 20
)

// meter counts what one shard has done in the current second.
type meter struct {
	since time.Time
	calls int
	bytes int
	busy  time.Time // until when something larger than the limit still uses up the shard
}

// admit reports whether calls and bytes fit into this second, and counts them if they do. The first use of a second may
// exceed the limit on bytes, and then takes the seconds after it too.
func (m *meter) admit(now time.Time, calls, bytes, maxCalls, maxBytes int) bool {
	if now.Before(m.busy) {
		return false
	}
	if now.Sub(m.since) >= time.Second {
		m.since, m.calls, m.bytes = now, 0, 0
	}
	if m.calls+calls > maxCalls || (m.bytes > 0 && m.bytes+bytes > maxBytes) {
		return false
	}
	m.calls += calls
	m.bytes += bytes
	return true
}

// spend counts bytes that were found out only after admit. A read beyond the limit blocks the shard for as long as it
// is worth: 10 MiB for five seconds (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_GetRecords.html).
func (m *meter) spend(now time.Time, bytes, maxBytes int) {
	m.bytes += bytes
	if m.bytes > maxBytes {
		m.busy = now.Add(time.Duration(m.bytes) * time.Second / time.Duration(maxBytes))
	}
}
