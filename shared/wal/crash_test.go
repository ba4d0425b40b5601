package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"abacus/shared/wal"
	"abacus/shared/wal/waltest"
)

// fate is what the caller of an append was told.
type fate int

const (
	failed fate = iota
	uncertain
	volatile
	synced
)

type call struct {
	fate  fate
	first wal.Position
	n     int
}

// history drives one log through appends, faults and crashes, and keeps what its callers were told.
type history struct {
	*testing.T
	seed      uint64
	trace     []string
	rng       *rand.Rand
	disk      *waltest.Disk
	log       *wal.Log
	calls     []call
	owner     map[wal.Position]string // every position that was ever told or read, and its record
	truncated wal.Position            // through a synced truncation
	cut       wal.Position            // through any truncation
}

// Fatalf ends the test with the seed and what was done.
func (h *history) Fatalf(format string, args ...any) {
	h.Helper()
	h.T.Fatalf("seed %d (rerun with ABACUS_SEED=%d): %s\n%s", h.seed, h.seed, fmt.Sprintf(format, args...),
		strings.Join(h.trace, "\n"))
}

func (h *history) note(format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf(format, args...))
}

func (h *history) open() {
	h.Helper()
	l, report, err := wal.Open(wal.Options{FS: h.disk, SegmentBytes: 64 << 10, MaxBytes: 256 << 10, MaxFrame: 8 << 10})
	if err != nil {
		h.Fatalf("open: %v", err)
	}
	h.log = l
	h.note("open %+v %+v", report, l.State())
}

func (h *history) append() {
	n := 1 + h.rng.IntN(4)
	entries := make([]wal.Entry, n)
	for i := range entries {
		entries[i] = wal.Entry{ID: fmt.Sprintf("%d.%d", len(h.calls), i), Data: make([]byte, h.rng.IntN(1500))}
		for j := range entries[i].Data {
			entries[i].Data[j] = byte(len(h.calls) + j)
		}
	}
	d := wal.Durability(h.rng.IntN(2))
	got, err := h.log.Append(h.Context(), entries, d)
	c := call{n: n, first: got.First}
	h.note("append %d: %d entries %d: %+v %v", len(h.calls), n, d, got, err)
	switch {
	case err == nil && d == wal.Synced:
		c.fate = synced
	case err == nil:
		c.fate = volatile
	case errors.Is(err, wal.ErrUncertain):
		c.fate = uncertain
	}
	if err == nil && got.Last-got.First+1 != wal.Position(n) {
		h.Fatalf("append of %d answered %+v", n, got)
	}
	h.calls = append(h.calls, c)
	for i := range n {
		if err == nil {
			h.own(got.First+wal.Position(i), entries[i].ID)
		}
	}
}

func (h *history) own(p wal.Position, id string) {
	if other, taken := h.owner[p]; taken && other != id {
		h.Fatalf("position %d belongs to %s and to %s", p, other, id)
	}
	h.owner[p] = id
}

// audit reads everything and compares it with what the callers were told. lost says that the host lost power.
func (h *history) audit(lost bool) {
	h.Helper()
	found := map[int]int{}
	last := wal.Position(0)
	for r, err := range h.log.Scan(1, ^wal.Position(0)) {
		if err != nil {
			h.Fatalf("scan: %v", err)
		}
		if r.Position <= last {
			h.Fatalf("position %d after %d", r.Position, last)
		}
		last = r.Position
		var number, part int
		if _, err := fmt.Sscanf(r.ID, "%d.%d", &number, &part); err != nil || number >= len(h.calls) {
			h.Fatalf("record %q was never appended", r.ID)
		}
		for j := range r.Data {
			if r.Data[j] != byte(number+j) {
				h.Fatalf("record %s holds other bytes", r.ID)
			}
		}
		h.own(r.Position, r.ID)
		if h.calls[number].fate == failed {
			h.Fatalf("record %s of a failed append is there", r.ID)
		}
		if r.Position <= h.truncated {
			h.Fatalf("record %s at %d came back after truncation through %d", r.ID, r.Position, h.truncated)
		}
		found[number]++
	}
	for number, c := range h.calls {
		end := c.first + wal.Position(c.n) - 1
		must := c.fate == synced || c.fate == volatile && !lost
		switch {
		case must && c.first > h.cut && found[number] != c.n:
			h.Fatalf("append %d (%d) has %d of %d records", number, c.fate, found[number], c.n)
		case found[number] != 0 && found[number] != c.n && (c.first == 0 || c.first > h.cut || end <= h.truncated):
			h.Fatalf("append %d is there in part: %d of %d", number, found[number], c.n)
		case found[number] == 0 && lost && c.fate != synced:
			h.calls[number].fate = failed // gone for good: it must not come back
		}
	}
}

func (h *history) step() {
	switch x := h.rng.IntN(100); {
	case x < 55:
		h.append()
	case x < 62:
		got, err := h.log.Flush(h.Context(), wal.Synced)
		h.note("flush: %d %v", got, err)
	case x < 72:
		through := h.log.State().Written
		if through > 0 {
			through -= wal.Position(h.rng.IntN(3))
		}
		d := wal.Durability(h.rng.IntN(2))
		err := h.log.Truncate(h.Context(), through, d)
		h.cut = max(h.cut, through)
		h.note("truncate %d %d: %v", through, d, err)
		if err == nil && d == wal.Synced {
			h.truncated = max(h.truncated, through)
		}
	case x < 80:
		op := []waltest.Op{waltest.Write, waltest.Sync, waltest.Create, waltest.Rename, waltest.SyncDir, waltest.Cut}[h.rng.IntN(6)]
		times := 1 + h.rng.IntN(3)
		h.note("fail %s %d times", op, times)
		h.disk.Fail(func(o waltest.Op, _ string) error {
			if o == op && times > 0 {
				times--
				return errors.New(string(op))
			}
			return nil
		})
	case x < 84:
		h.disk.Limit(int64(h.rng.IntN(4000)))
	case x < 90:
		h.disk.Fail(nil)
		h.disk.Limit(-1)
	case x < 93:
		h.restart(h.disk.Kill(), false)
	case x < 96:
		h.restart(h.disk.Crash(h.rng), true)
	case x < 97:
		h.disk.Fail(nil)
		h.disk.Limit(-1)
		if err := h.log.Close(); err != nil {
			h.Fatalf("close: %v", err)
		}
		h.open()
		h.audit(false)
	default:
		h.audit(false)
	}
}

func (h *history) restart(d *waltest.Disk, lost bool) {
	h.note("restart, power lost: %t", lost)
	h.disk = d
	h.open()
	h.audit(lost)
}

func schedules(t *testing.T, n int) (first, count uint64) {
	if text := os.Getenv("ABACUS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return seed, 1
	}
	if text := os.Getenv("ABACUS_SCHEDULES"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	return rand.Uint64N(1 << 40), uint64(n)
}

func TestLog_KeepsWhatItAcknowledgedUnderFaultsAndCrashes(t *testing.T) {
	first, count := schedules(t, 2000)
	for seed := first; seed < first+count; seed++ {
		h := &history{T: t, rng: rand.New(rand.NewPCG(seed, 0)), disk: waltest.New(), owner: map[wal.Position]string{}}
		h.seed = seed
		h.open()
		for range 20 + h.rng.IntN(150) {
			h.step()
		}
	}
}
