package table

import (
	"iter"
	"slices"
	"sort"
)

// rows keeps items in the order of their places: chunks of sorted rows, themselves sorted, so that a change moves one
// chunk at most. The zero value is empty.
type rows struct {
	chunks [][]row // none empty
	count  int
}

type row struct {
	place string
	item  Item
}

const chunkSize = 256

// find returns the chunk that place belongs into, and where in it.
func (r *rows) find(place string) (chunk, at int, found bool) {
	chunk = sort.Search(len(r.chunks), func(i int) bool { return r.chunks[i][0].place > place }) - 1
	if chunk < 0 {
		return 0, 0, false
	}
	at, found = slices.BinarySearchFunc(r.chunks[chunk], place, func(w row, p string) int {
		switch {
		case w.place < p:
			return -1
		case w.place > p:
			return 1
		}
		return 0
	})
	return chunk, at, found
}

// get returns the item at place, or nil.
func (r *rows) get(place string) Item {
	if chunk, at, found := r.find(place); found {
		return r.chunks[chunk][at].item
	}
	return nil
}

// set puts item at place; nil removes what is there.
func (r *rows) set(place string, item Item) {
	chunk, at, found := r.find(place)
	switch {
	case found && item != nil:
		r.chunks[chunk][at].item = item
	case found:
		r.remove(chunk, at)
	case item != nil:
		r.insert(chunk, at, row{place, item})
	}
}

func (r *rows) insert(chunk, at int, w row) {
	r.count++
	if len(r.chunks) == 0 {
		r.chunks = append(r.chunks, []row{w})
		return
	}
	full := slices.Insert(r.chunks[chunk], at, w)
	if len(full) <= chunkSize {
		r.chunks[chunk] = full
		return
	}
	// Rows that come in order fill their chunks; others halve them.
	half := len(full) / 2
	if at == len(full)-1 {
		half = at
	}
	rest := append(make([]row, 0, chunkSize+1), full[half:]...)
	clear(full[half:])
	r.chunks[chunk] = full[:half]
	r.chunks = slices.Insert(r.chunks, chunk+1, rest)
}

func (r *rows) remove(chunk, at int) {
	r.count--
	r.chunks[chunk] = slices.Delete(r.chunks[chunk], at, at+1)
	if len(r.chunks[chunk]) == 0 {
		r.chunks = slices.Delete(r.chunks, chunk, chunk+1)
	}
}

// between yields the rows with low <= place < high, upwards or downwards; an empty high is no bound.
func (r *rows) between(low, high string, forward bool) iter.Seq[row] {
	if forward {
		return r.up(low, high)
	}
	return r.down(low, high)
}

func (r *rows) up(low, high string) iter.Seq[row] {
	return func(yield func(row) bool) {
		chunk, at, _ := r.find(low)
		for ; chunk < len(r.chunks); chunk, at = chunk+1, 0 {
			for _, w := range r.chunks[chunk][at:] {
				if high != "" && w.place >= high || !yield(w) {
					return
				}
			}
		}
	}
}

func (r *rows) down(low, high string) iter.Seq[row] {
	return func(yield func(row) bool) {
		chunk, at := len(r.chunks)-1, 0
		if high != "" {
			chunk, at, _ = r.find(high)
		} else if chunk >= 0 {
			at = len(r.chunks[chunk])
		}
		for chunk >= 0 && chunk < len(r.chunks) {
			for i := at - 1; i >= 0; i-- {
				if w := r.chunks[chunk][i]; w.place < low || !yield(w) {
					return
				}
			}
			if chunk--; chunk >= 0 {
				at = len(r.chunks[chunk])
			}
		}
	}
}
