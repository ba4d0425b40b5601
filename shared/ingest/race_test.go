//go:build race

package ingest

// The race detector makes a sync.Pool forget at random, so that more is allocated than in truth.
const allowedAllocations = 10
