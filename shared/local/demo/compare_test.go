package demo

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/tally"
)

func cell(key string) tally.Cell { return tally.Cell{Counter: "c", Key: key, Window: "all"} }

func TestCompare_FindsWhatIsLessMoreMissingAndInvented(t *testing.T) {
	truth := counts{cell("same"): 5, cell("less"): 5, cell("more"): 5, cell("missing"): 5, cell("zero"): 0}
	counted := map[tally.Cell]tally.Sum{
		cell("same"): tally.SumOf(5), cell("less"): tally.SumOf(4), cell("more"): tally.SumOf(6),
		cell("invented"): tally.SumOf(1), cell("huge"): tally.SumOf(1 << 62).Plus(tally.SumOf(1 << 62)),
	}
	var keys []string
	for _, d := range compare(truth, counted, "reader") {
		keys = append(keys, d.cell.Key+"="+d.counted)
	}
	want := []string{"huge=9223372036854775808", "invented=1", "less=4", "missing=0", "more=6"}
	if !slices.Equal(keys, want) {
		t.Errorf("differences %q, want %q", keys, want)
	}
}

func TestTable_ShowsTotalsTheTopAndWhatDiffers(t *testing.T) {
	truth := counts{cell("all"): 9, cell("a"): 5, cell("b"): 3, cell("c"): 1}
	day := tally.Cell{Counter: "c", Key: "a", Window: "1d", Bucket: 978307200}
	truth[day] = 2
	truth[tally.Cell{Counter: "c", Key: "a", Window: "1d", Bucket: 978393600}] = 1
	cells := shown(truth, 3)
	if want := []tally.Cell{cell("all"), cell("a"), cell("b"), day}; !slices.Equal(cells, want) {
		t.Errorf("shown %v, want %v", cells, want)
	}
	var out bytes.Buffer
	table(&out, truth, map[tally.Cell]tally.Sum{
		cell("all"): tally.SumOf(9), cell("a"): tally.SumOf(5), cell("b"): tally.SumOf(2), day: tally.SumOf(2),
	}, cells)
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(lines) != 5 || !strings.Contains(lines[4], "1d 2001-01-01T00:00Z") {
		t.Fatalf("table:\n%s", out.String())
	}
	for i, line := range lines[1:] {
		if differs := strings.Contains(line, "<-- differs"); differs != (i == 2) {
			t.Errorf("line %q: marked %t", line, differs)
		}
	}
}

func TestProgress_PlainLinesAreFewAndATerminalHasOne(t *testing.T) {
	var out bytes.Buffer
	clock := noon
	p := &progress{out: &out, now: func() time.Time { return clock }}
	for i := range 50 {
		p.show("draining", "%d", i)
		clock = clock.Add(100 * time.Millisecond)
	}
	p.end("draining", "done")
	if got := strings.Join(strings.Fields(out.String()), " "); got != "draining 0 draining 20 draining 40 draining done" {
		t.Errorf("plain output %q", got)
	}
	out.Reset()
	p = &progress{out: &out, now: func() time.Time { return clock }, width: 20}
	p.show("a", "1")
	p.show("a", "2 and more than the terminal is wide")
	p.end("a", "3")
	p.show("b", "1")
	p.leave()
	p.leave()
	const back = "\r\x1b[K"
	want := back + "a          1" + back + "a          2 and mo" + back + "a          3\n" + back + "b          1\n"
	if out.String() != want {
		t.Errorf("terminal output %q, want %q", out.String(), want)
	}
}
