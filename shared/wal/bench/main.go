// Command bench measures the log beside others and beside a bare file, all in one run on one disk. Rounds of all
// subjects are interleaved and medians taken, since a disk's speed drifts; what counts is the ratio to the best peer.
//
// It is a module of its own, so that nothing of this repository needs the peers. Run it in this folder:
//
//	go run .            # all figures, about two minutes
//	go run . -dir DIR   # on the disk of DIR
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// subject is a log to measure.
type subject struct {
	name       string
	unsynced   bool // can append without a sync
	concurrent bool // takes appends of many callers at once; the others are locked
	open       func(dir string, sync bool) (log, error)
}

type log interface {
	append(batch [][]byte) error // as one call, synced if the log was opened so
	read(visit func([]byte)) error
	close() error
}

var (
	dir     = flag.String("dir", "", "where to write (default: the directory for temporary files)")
	rounds  = flag.Int("rounds", 7, "how often each figure is measured")
	slice   = flag.Duration("slice", 400*time.Millisecond, "how long each measurement takes")
	readMiB = flag.Int("read", 256, "MiB to open and read")
	only    = flag.String("only", "", "figures whose name has this in it")
	of      = flag.String("of", "", "subjects whose name has this in it")
)

const recordBytes = 256

func main() {
	flag.Parse()
	base, err := os.MkdirTemp(*dir, "abacus-wal-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	defer os.RemoveAll(base)
	ok := true
	for _, f := range figures {
		if strings.Contains(f.name, *only) {
			met, err := f.measure(filepath.Join(base, strings.ReplaceAll(f.name, " ", "-")))
			if err != nil {
				fmt.Fprintf(os.Stderr, "bench: %s: %v\n", f.name, err)
			}
			ok = ok && met && err == nil
		}
	}
	if !ok {
		fmt.Println("\nnot every target was met in this run")
	}
}

// figure is one line of targets.
type figure struct {
	name     string
	unit     string
	subjects []subject
	run      func(s subject, dir string) (float64, error)
	less     bool                                 // is better
	target   func(best float64) (float64, string) // from the best peer's figure
}

var figures = []figure{
	{"synced 1 writer", "records/s", all, synced(1), false, times(1)},
	{"synced 8 writers", "records/s", all, synced(8), false, times(2.5)},
	{"synced 64 writers", "records/s", all, synced(64), false, times(10)},
	{"unsynced batches of 64", "records/s", unsyncedOnes(), unsynced, false, times(0.5)},
	{"open and read", "s", append(slices.Clone(peers), abacus), openAndRead, true, atMost(0.5)},
	{"overhead in batches of 64", "bytes/record", unsyncedOnes(), overhead, true, atMost(16)},
}

var all = slices.Concat(raw, peers, []subject{abacus})

func unsyncedOnes() []subject {
	return slices.DeleteFunc(slices.Clone(all), func(s subject) bool { return !s.unsynced })
}

func times(factor float64) func(float64) (float64, string) {
	return func(best float64) (float64, string) {
		return best * factor, fmt.Sprintf("at least %g times the best peer", factor)
	}
}

func atMost(most float64) func(float64) (float64, string) {
	return func(float64) (float64, string) { return most, fmt.Sprintf("at most %g", most) }
}

func (f figure) measure(dir string) (met bool, err error) {
	fmt.Printf("\n%s, %d-byte records, %s\n", f.name, recordBytes, f.unit)
	got := map[string][]float64{}
	for round := range *rounds {
		for i := range f.subjects {
			s := f.subjects[(i+round)%len(f.subjects)] // nobody is always behind the same one
			if !strings.Contains(s.name, *of) {
				continue
			}
			at := filepath.Join(dir, strings.ReplaceAll(s.name, "/", "-"), fmt.Sprint(round))
			n, err := f.run(s, at)
			if err != nil {
				return false, fmt.Errorf("%s: %w", s.name, err)
			}
			got[s.name] = append(got[s.name], n)
			if round > 0 || f.name != "open and read" {
				_ = os.RemoveAll(at)
			}
		}
	}
	defer os.RemoveAll(dir)
	best := 0.0
	for _, s := range peers {
		if n := median(got[s.name]); n > 0 && (best == 0 || f.less == (n < best)) {
			best = n
		}
	}
	for _, s := range f.subjects {
		n := got[s.name]
		if len(n) == 0 {
			continue
		}
		fmt.Printf("  %-24s %14s   %6.2f of the best peer   %s to %s\n", s.name, number(median(n)), median(n)/best,
			number(slices.Min(n)), number(slices.Max(n)))
	}
	limit, text := f.target(best)
	ours := median(got[abacus.name])
	met = ours >= limit != f.less || ours == limit
	fmt.Printf("  target: %s (%s): %s\n", text, number(limit), map[bool]string{true: "met", false: "MISSED"}[met])
	return met, nil
}

func number(n float64) string {
	if n < 100 {
		return fmt.Sprintf("%.3f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func median(n []float64) float64 {
	n = slices.Sorted(slices.Values(n))
	if len(n) == 0 {
		return 0
	}
	return n[len(n)/2]
}

func record() []byte { return []byte(strings.Repeat("abcdefgh", recordBytes/8)) }

func batchOf(n int) (batch [][]byte) {
	for range n {
		batch = append(batch, record())
	}
	return batch
}

// synced measures writers that append one record after the other.
func synced(writers int) func(subject, string) (float64, error) {
	return func(s subject, dir string) (float64, error) {
		l, err := s.open(dir, true)
		if err != nil {
			return 0, err
		}
		if err := l.append(batchOf(1)); err != nil { // begins the file
			return 0, err
		}
		var mu sync.Mutex
		counts, errs := make([]int, writers), make([]error, writers)
		begin := time.Now()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				one := batchOf(1)
				for time.Since(begin) < *slice && errs[w] == nil {
					if !s.concurrent {
						mu.Lock()
					}
					errs[w] = l.append(one)
					if !s.concurrent {
						mu.Unlock()
					}
					counts[w]++
				}
			})
		}
		wg.Wait()
		took := time.Since(begin)
		total := 0
		for _, n := range counts {
			total += n
		}
		return float64(total) / took.Seconds(), errors.Join(append(errs, l.close())...)
	}
}

// unsynced appends 256 MiB, as all the peers' segments together would in practice, in batches of 64.
func unsynced(s subject, dir string) (float64, error) {
	l, err := s.open(dir, false)
	if err != nil {
		return 0, err
	}
	batch := batchOf(64)
	n, begin := 0, time.Now()
	for ; n < *readMiB<<20/recordBytes; n += 64 {
		if err := l.append(batch); err != nil {
			return 0, err
		}
	}
	took := time.Since(begin)
	return float64(n) / took.Seconds(), l.close()
}

// openAndRead opens a log of many records that is in the page cache, and reads all.
func openAndRead(s subject, dir string) (float64, error) {
	dir = filepath.Join(filepath.Dir(dir), "0") // written once
	want := *readMiB << 20 / recordBytes
	if _, err := os.Stat(dir); err != nil {
		l, err := s.open(dir, false)
		if err != nil {
			return 0, err
		}
		batch := batchOf(2048) // one of the peers syncs each
		for n := 0; n < want; n += 2048 {
			if err := l.append(batch); err != nil {
				return 0, err
			}
		}
		if err := l.close(); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	l, err := s.open(dir, false)
	if err != nil {
		return 0, err
	}
	n := 0
	if err := l.read(func([]byte) { n++ }); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if n < want {
		return 0, fmt.Errorf("%d records read, want %d", n, want)
	}
	return took.Seconds(), l.close()
}

// overhead is how many bytes of a log are not records.
func overhead(s subject, dir string) (float64, error) {
	l, err := s.open(dir, false)
	if err != nil {
		return 0, err
	}
	n, batch := 0, batchOf(64)
	for ; n < 40<<20/recordBytes; n += 64 {
		if err := l.append(batch); err != nil {
			return 0, err
		}
	}
	if err := l.close(); err != nil {
		return 0, err
	}
	return cmp.Or(float64(used(dir)-int64(n)*recordBytes)/float64(n), 0), nil
}

// used is the bytes of all files, without the zeroes that some allocate ahead.
func used(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, _ := os.ReadFile(path)
			total += int64(len(strings.TrimRight(string(data), "\x00")))
		}
		return err
	})
	return total
}
