package merge

import (
	"sync"

	"abacus/shared/tally"
)

// maxRemembered bounds how many contended cells are remembered, a few megabytes at the longest keys.
const maxRemembered = 1024

// slots remembers for contended cells which of their rows to begin with. A cell that never met another transaction
// begins with row 0, so that a cold counter keeps one row.
type slots struct {
	width int
	mu    sync.Mutex
	moved map[tally.Cell]int
}

// of returns the slot of cell for a chunk that is offset places away from the cell's first choice.
func (s *slots) of(cell tally.Cell, offset int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.moved[cell] + offset) % s.width
}

// move picks another slot than the one that was contended, and remembers it.
func (s *slots) move(cell tally.Cell, from, offset int, draw func(int64) int64) int {
	if s.width == 1 {
		return 0
	}
	to := (from + 1 + int(draw(int64(s.width-1)))) % s.width
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved == nil {
		s.moved = map[tally.Cell]int{}
	}
	if _, known := s.moved[cell]; !known && len(s.moved) >= maxRemembered {
		for other := range s.moved {
			delete(s.moved, other)
			break
		}
	}
	s.moved[cell] = ((to-offset)%s.width + s.width) % s.width
	return to
}
