package merge

import (
	"time"

	"abacus/shared/tally"
)

// Backoff, ReleaseBudget and Wide are tested over ranges that no merge reaches.
var (
	Backoff       = backoff
	ReleaseBudget = releaseBudget
	Wide          = wide
)

// Complete returns cfg with its defaults.
func Complete(cfg Config) (Config, error) {
	err := cfg.complete()
	return cfg, err
}

// ChunkOf is a chunk as tests see it: indices of events, and the cells that they move.
type ChunkOf struct {
	Events []int
	Cells  []tally.Cell
}

// Plan returns the chunks of events, and the outcomes of those that need none.
func Plan(events []tally.Event, cells, perChunk int) ([]ChunkOf, []Outcome) {
	outcomes := make([]Outcome, len(events))
	p := newPlan(events, outcomes, limits{cells: cells, events: perChunk})
	var chunks []ChunkOf
	for _, c := range p.chunks {
		var of ChunkOf
		for _, i := range c.events {
			of.Events = append(of.Events, int(i))
		}
		for _, cell := range c.cells {
			of.Cells = append(of.Cells, p.cells[cell])
		}
		chunks = append(chunks, of)
	}
	return chunks, outcomes
}

// Slots tests which row of a cell is taken.
type Slots struct{ s slots }

// NewSlots returns the slots of a Merger with so many of them.
func NewSlots(width int) *Slots { return &Slots{slots{width: width}} }

func (s *Slots) Of(cell tally.Cell, offset int) int { return s.s.of(cell, offset) }

func (s *Slots) Move(cell tally.Cell, from, offset int, draw func(int64) int64) int {
	return s.s.move(cell, from, offset, draw)
}

func (s *Slots) Remembered() int { return len(s.s.moved) }

// MaxRemembered bounds Slots.Remembered.
const MaxRemembered = maxRemembered

// MaxMargin is the most time kept for the answer.
const MaxMargin = maxMargin

// RecordMargin is how much longer a commit record lives than its claims.
const RecordMargin time.Duration = recordMargin
