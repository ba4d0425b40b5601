package demo

import (
	"context"
	"fmt"
	"time"

	"abacus/shared/tally"
)

// judge compares what is in the tables and queues with the truth, and prints the verdict.
func (r *run) judge(ctx context.Context, began time.Time) error {
	want, err := r.truth(r.sent, time.Now())
	if err != nil {
		return err
	}
	compared := time.Now()
	read, err := readBack(ctx, r.suite, want.counts)
	if err != nil {
		return err
	}
	stored, err := scan(ctx, r.suite)
	if err != nil {
		return err
	}
	letters, err := collect(ctx, r.suite)
	if err != nil {
		return err
	}
	r.progress.end("compare", "%s counts read back through the reader and row by row in %.1fs",
		thousands(len(want.counts)), time.Since(compared).Seconds())
	exact := r.printCounts(want, read, stored)
	exact = r.printLetters(want.refused, letters) && exact
	if own := ownBad(want.refused); own > 0 {
		fmt.Fprintf(r.Out, "%s of the bad records are your own: these rules cannot count them\n", thousands(own))
	}
	if !exact {
		return ErrInexact
	}
	if len(want.counts) == 0 {
		return ErrNothing
	}
	fmt.Fprintf(r.Out, "\nexact: every count is the truth and every bad record is kept, in %.1fs\n",
		time.Since(began).Seconds())
	return nil
}

// ownBad counts the bad records that the run did not plant.
func ownBad(refused []record) (n int) {
	for _, r := range refused {
		if !r.bad {
			n++
		}
	}
	return n
}

// most is how many mistakes are worth printing.
const most = 20

func (r *run) printCounts(want truth, read, stored map[tally.Cell]tally.Sum) bool {
	fmt.Fprintf(r.Out, "\ntruth: %s\n\n", want.method)
	table(r.Out, want.counts, read, shown(want.counts, 4))
	wrong := compare(want.counts, read, "the reader")
	if len(wrong) == 0 {
		wrong = compare(want.counts, stored, "the table's rows")
	}
	equal := len(want.counts)
	for _, d := range wrong {
		if _, known := want.counts[d.cell]; known {
			equal--
		}
	}
	fmt.Fprintf(r.Out, "\n%s of %s counts are equal to the truth\n", thousands(equal), thousands(len(want.counts)))
	for _, d := range wrong[:min(most, len(wrong))] {
		fmt.Fprintf(r.Out, "  WRONG %s %s %s: %s by %s, truth %d\n",
			d.cell.Counter, when(d.cell), d.cell.Key, d.counted, d.heldBy, d.truth)
	}
	if len(wrong) > most {
		fmt.Fprintf(r.Out, "  and %s more\n", thousands(len(wrong)-most))
	}
	return len(wrong) == 0
}

func (r *run) printLetters(refused []record, letters []letter) bool {
	missing, strange := match(refused, letters)
	fmt.Fprintf(r.Out, "%d of %d bad records are kept, byte for byte\n", len(refused)-len(missing), len(refused))
	for _, l := range letters[:min(most, len(letters))] {
		again := ""
		if l.times > 1 {
			again = fmt.Sprintf(" (parked %d times, as its batch came again)", l.times)
		}
		fmt.Fprintf(r.Out, "  %-15s %s%s\n", l.queue, l.reason, again)
	}
	for _, m := range missing[:min(most, len(missing))] {
		fmt.Fprintf(r.Out, "  MISSING %.120q\n", m.payload)
	}
	for _, s := range strange[:min(most, len(strange))] {
		fmt.Fprintf(r.Out, "  UNEXPECTED in %s: %.120q\n", s.queue, s.payload)
	}
	return len(missing) == 0 && len(strange) == 0
}
