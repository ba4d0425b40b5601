//go:build !race

package ingest

const allowedAllocations = 4
