// Package tally holds the words of counting: what an event moves, which number it moves, and exact arithmetic on those
// numbers. It reads no clock, does no I/O and imports only the standard library; package rules turns records into its
// events, package merge makes them durable.
package tally

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxID is the longest event identity, in bytes, that is kept as it is; see BoundID.
const MaxID = 256

// Cell names one number: what is counted under one key of one counter, in one bucket of one window. Cells are equal
// when all four parts are.
type Cell struct {
	Counter string // name of the rule, free of '|'
	Key     string // 1 to 1024 bytes
	Window  string // "all", or a duration as the rule file spells it: "1h", "1d"
	Bucket  int64  // start of the interval in Unix seconds, UTC; 0 under the window "all"
}

// Add is one signed move of one cell.
type Add struct {
	Cell    Cell
	Delta   int64
	Expires int64 // Unix seconds after which the bucket may be forgotten; 0: never
}

// Event is what a record says happened. Its adds are applied all together or not at all, once for its ID.
type Event struct {
	// ID is the identity under which the event counts at most once: the same on every delivery, redelivery and replay.
	// Never empty.
	ID string
	// Adds names each cell at most once.
	Adds []Add
	// Position says where in Serial the event's record stands, as text that sorts as the source orders its records; empty
	// where the source has no order. Events of one record share it.
	Position string
	// Serial names the ordered source that runs one batch at a time (a Kinesis shard), or is empty. A claim left by an
	// earlier batch of the same serial source belongs to a dead attempt, so it need not be waited for.
	Serial string
}

// BoundID returns id, or for one longer than MaxID its SHA-256 in a form that no shorter identity takes, so that any
// identity fits a key. It is idempotent.
func BoundID(id string) string {
	if len(id) <= MaxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}
