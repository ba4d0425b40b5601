package demo

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"abacus/shared/tally"
)

// difference is a cell whose count is not the truth.
type difference struct {
	cell    tally.Cell
	truth   int64
	counted string // a count may be beyond 64 bits
	heldBy  string // which of the two ways of reading found it
}

// compare returns every cell that differs, those that ought not to exist included, in a stable order.
func compare(truth counts, counted map[tally.Cell]tally.Sum, heldBy string) []difference {
	var found []difference
	cells := maps.Clone(truth)
	for cell := range counted {
		if _, known := cells[cell]; !known {
			cells[cell] = 0
		}
	}
	for _, cell := range slices.SortedFunc(maps.Keys(cells), order) {
		if sum := counted[cell]; sum != tally.SumOf(truth[cell]) {
			found = append(found, difference{cell, truth[cell], sum.String(), heldBy})
		}
	}
	return found
}

func order(a, b tally.Cell) int {
	return cmp.Or(cmp.Compare(a.Counter, b.Counter), cmp.Compare(a.Window, b.Window), cmp.Compare(a.Key, b.Key),
		cmp.Compare(a.Bucket, b.Bucket))
}

// shown picks what is worth printing of a count: under each counter and window the key with the most, and the next few.
// Of windows with buckets it takes the bucket with the most of each key.
func shown(truth counts, keys int) []tally.Cell {
	type group struct{ counter, window string }
	best := map[group]map[string]tally.Cell{}
	for cell, n := range truth {
		g := group{cell.Counter, cell.Window}
		if best[g] == nil {
			best[g] = map[string]tally.Cell{}
		}
		was, known := best[g][cell.Key]
		if !known || n > truth[was] || n == truth[was] && cell.Bucket < was.Bucket {
			best[g][cell.Key] = cell
		}
	}
	var cells []tally.Cell
	for _, byKey := range best {
		top := slices.SortedFunc(maps.Values(byKey), func(a, b tally.Cell) int {
			return cmp.Or(cmp.Compare(truth[b], truth[a]), order(a, b))
		})
		cells = append(cells, top[:min(keys, len(top))]...)
	}
	slices.SortFunc(cells, func(a, b tally.Cell) int {
		return cmp.Or(cmp.Compare(a.Counter, b.Counter), -cmp.Compare(a.Window, b.Window), // "all" before "1d"
			cmp.Compare(truth[b], truth[a]), order(a, b))
	})
	return cells
}

// table prints cells with their count and the truth side by side.
func table(w io.Writer, truth counts, counted map[tally.Cell]tally.Sum, cells []tally.Cell) {
	rows := [][5]string{{"counter", "window", "key", "counted", "truth"}}
	var widths [5]int
	for _, cell := range cells {
		rows = append(rows, [5]string{cell.Counter, when(cell), cell.Key, counted[cell].String(), fmt.Sprint(truth[cell])})
	}
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len(text))
		}
	}
	for _, row := range rows {
		fmt.Fprintf(w, "  %-*s  %-*s  %-*s  %*s  %*s", widths[0], row[0], widths[1], row[1], widths[2], row[2],
			widths[3], row[3], widths[4], row[4])
		if row[3] != row[4] && row != rows[0] {
			fmt.Fprint(w, "  <-- differs")
		}
		fmt.Fprintln(w)
	}
}

// when names a cell's bucket for people.
func when(cell tally.Cell) string {
	if cell.Bucket == 0 && cell.Window == "all" {
		return cell.Window
	}
	return cell.Window + " " + time.Unix(cell.Bucket, 0).UTC().Format("2006-01-02T15:04Z")
}
