package dynamo

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/local/table"
	"abacus/shared/local/wire"
	"abacus/shared/merge"
	"abacus/shared/tally"
)

const shardOne, shardTwo = "arn:stream|shardId-000000000001", "arn:stream|shardId-000000000002"

var views = tally.Cell{Counter: "views", Key: "page", Window: "all"}

func below(first, last string, delta int64) merge.Move {
	return merge.Move{Cell: views, Serial: shardOne, Delta: tally.SumOf(delta), Below: first, Last: last}
}

func at(mark, last string, delta int64) merge.Move {
	return merge.Move{Cell: views, Serial: shardOne, Delta: tally.SumOf(delta), At: mark, Last: last}
}

// wantMove makes a move and holds its answer against mark and moved.
func wantMove(t *testing.T, s *Store, m merge.Move, mark string, moved bool) {
	t.Helper()
	gotMark, gotMoved, err := s.Advance(t.Context(), m)
	if err != nil || gotMark != mark || gotMoved != moved {
		t.Errorf("%+v: %q, %t, %v; want %q, %t", m, gotMark, gotMoved, err, mark, moved)
	}
}

func (b *bed) wantTotal(want string) {
	b.Helper()
	if got, err := b.reader.Get(b.Context(), views); err != nil || got.String() != want {
		b.Errorf("the counter reads %s, %v; want %s", got, err, want)
	}
}

func TestAdvance_MovesOnlyARowThatIsBelow(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct {
		move  merge.Move
		mark  string
		moved bool
		total string
	}{
		{below("0015", "0017", 3), "0017", true, "3"},    // the first write makes the row
		{below("0015", "0017", 3), "0017", false, "3"},   // the same batch again
		{below("0015", "0019", 5), "0017", false, "3"},   // a batch that overlaps
		{below("0017", "0019", 3), "0017", false, "3"},   // its first event is the last one counted
		{at("0016", "0019", 2), "0017", false, "3"},      // computed from a mark that is gone
		{at("0017", "0019", 2), "0019", true, "5"},       // what lies above the mark
		{at("0017", "0019", 2), "0019", false, "5"},      // that again
		{below("00210", "00212", 3), "00212", true, "8"}, // longer positions are higher
		{below("0019", "0019", 1), "00212", false, "8"},
		{below("00213", "00213", -9), "00213", true, "-1"},
		{below("00214", "00214", 0), "00214", true, "-1"}, // a total of 0 moves the mark too
	} {
		wantMove(t, b.store, c.move, c.mark, c.moved)
		b.wantTotal(c.total)
	}
	fresh := at("0011", "0012", 1)
	fresh.Serial = shardTwo // there is no row with any mark
	if mark, moved, err := b.store.Advance(t.Context(), fresh); err == nil || moved {
		t.Errorf("a row that is gone: %q, %t, %v", mark, moved, err)
	}
}

// Positions of Kinesis have up to 129 digits, far beyond a number of DynamoDB.
func TestAdvance_PositionsOfAnyLengthCompareAsNumbers(t *testing.T) {
	b := newBed(t)
	numbers := []string{"0", "9", "10", "99", "100", strings.Repeat("9", 38), "1" + strings.Repeat("0", 38),
		"49590338271490256608559692538361571095921575989136588898",
		"49590338271490256608559692538361571095921575989136588899",
		strings.Repeat("9", 99), "1" + strings.Repeat("0", 99), strings.Repeat("9", 128), strings.Repeat("9", 129)}
	for i, n := range numbers {
		p := envelope.SequenceNumber(n).Position()
		wantMove(t, b.store, below(p, p, 1), p, true)
		for _, lower := range numbers[:i+1] {
			q := envelope.SequenceNumber(lower).Position()
			wantMove(t, b.store, below(q, q, 1), p, false)
		}
	}
	b.wantTotal(fmt.Sprint(len(numbers)))
}

func TestAdvance_ReadersSumTheRowsOfShardsAndSlots(t *testing.T) {
	b := newBed(t)
	for i, serial := range []string{shardOne, shardTwo, "arn:other|shardId-000000000001"} {
		m := below("0011", "0012", int64(10)<<(4*i))
		m.Serial = serial
		wantMove(t, b.store, m, "0012", true)
	}
	b.commit(merge.SlottedAdd{Cell: views, Delta: tally.SumOf(1), Slot: 0}, merge.SlottedAdd{Cell: views,
		Delta: tally.SumOf(1), Slot: 5})
	b.wantTotal(fmt.Sprint(10 + 160 + 2560 + 2))

	hour := below("0011", "0012", 7)
	hour.Cell = hourly("page", 5, 0, 0).Cell
	wantMove(t, b.store, hour, "0012", true)
	b.commit(hourly("page", 5, 30, 3), hourly("page", 6, 500, 0))
	hour.Serial = shardTwo
	wantMove(t, b.store, hour, "0012", true)
	if got, err := b.reader.Window(t.Context(), "c", "page", "1h"); err != nil || listed(got) != "5=44 6=500" {
		t.Errorf("%s, %v", listed(got), err)
	}
}

func TestAdvance_TheTTLIsThatOfTheLastMove(t *testing.T) {
	b := newBed(t)
	until := b.now.Unix() + 100
	passing := below("0011", "0011", 1)
	passing.Expires = until
	wantMove(t, b.store, passing, "0011", true)
	item := scan(t, b.client, countersName)[0]
	if ttl, err := numberOf(item, attrTTL); err != nil || ttl != until {
		t.Errorf("ttl %d, %v; want %d", ttl, err, until)
	}
	b.now = b.now.Add(101 * time.Second)
	b.wantTotal("0")
	wantMove(t, b.store, below("0012", "0012", 1), "0012", true) // kept for ever from now on
	if _, ok := scan(t, b.client, countersName)[0][attrTTL]; ok {
		t.Error("the row still has a ttl")
	}
	b.wantTotal("2")
}

// A reply is lost after the move was applied: the same move again finds its own mark, and adds nothing, whether the
// caller asks again or the SDK does.
func TestAdvance_AfterALostReplyFindsItsOwnMark(t *testing.T) {
	for _, retries := range []bool{false, true} {
		t.Run(fmt.Sprintf("sdk retries=%t", retries), func(t *testing.T) {
			sky, client := stormyStandIn(t)
			o := optionsFor(client)
			store := storeOn(t, o)
			if retries {
				store = withRetries(store)
			}
			sky.turn(lostOnce())
			m := below("0011", "0013", 3)
			if !retries {
				if _, _, err := store.Advance(t.Context(), m); kindOf(err) != "unknown" {
					t.Fatalf("lost reply: %v", err)
				}
			}
			wantMove(t, store, m, "0013", false)
			if got, err := readerOn(t, o).Get(t.Context(), views); err != nil || got.String() != "3" {
				t.Errorf("counted %s, %v", got, err)
			}
		})
	}
}

func TestAdvance_LandsLateWholeOrNotAtAll(t *testing.T) {
	late := make(chan func(), 1)
	service := table.New(table.Config{})
	sky := &weather{}
	service.Fault, service.After = sky.fault, func(_ time.Duration, f func()) { late <- f }
	client := NewClient(configFor(serve(t, service)))
	createTables(t, client)
	store := storeOn(t, optionsFor(client))
	total := func(want string) {
		t.Helper()
		if got, err := readerOn(t, optionsFor(client)).Get(t.Context(), views); err != nil || got.String() != want {
			t.Errorf("counted %s, %v; want %s", got, err, want)
		}
	}
	delay := func(m merge.Move) {
		t.Helper()
		sky.turn(func(wire.Call) wire.Fault { return wire.Fault{Refuse: true, Late: time.Hour} })
		defer sky.turn(nil)
		if _, _, err := store.Advance(t.Context(), m); kindOf(err) != "unknown" {
			t.Errorf("cut connection: %v", err)
		}
	}
	delay(below("0011", "0013", 3))
	wantMove(t, store, below("0011", "0012", 2), "0012", true) // the next delivery is a smaller batch
	(<-late)()                                                 // and finds its condition false
	total("2")
	delay(at("0012", "0013", 1))
	(<-late)() // lands before the next try
	wantMove(t, store, at("0012", "0013", 1), "0013", false)
	total("3")
}

func TestC4_MoveThatTheRowCannotTakeIsRefused(t *testing.T) {
	b := newBed(t)
	nines := strings.Repeat("9", maxDigits)
	for name, c := range map[string]struct {
		n     row
		delta string
		want  string // kind of the error
	}{
		"a text":             {row{attrN: text("many")}, "1", "refused [0]"},
		"38 digits":          {row{attrN: digits("0")}, nines, ""},
		"38 digits, below 0": {row{attrN: digits("0")}, "-" + nines, ""},
		"39 digits":          {row{attrN: digits("0")}, "1" + strings.Repeat("0", maxDigits), "refused [0]"},
		"a sum of 38 digits": {row{attrN: digits(nines[1:] + "8")}, "1", ""},
		"a sum of 39 digits": {row{attrN: digits(nines)}, "2", "refused [0]"},
	} {
		t.Run(name, func(t *testing.T) {
			m := below("0011", "0011", 0)
			m.Cell.Key = name
			var err error
			if m.Delta, err = tally.ParseSum(c.delta); err != nil {
				t.Fatal(err)
			}
			b.putRow("views|"+name, "all|-|"+shardOne, c.n)
			before := scan(t, b.client, countersName)
			_, moved, err := b.store.Advance(t.Context(), m)
			if kindOf(err) != c.want || moved != (c.want == "") {
				t.Errorf("%t, %v; want %q", moved, err, c.want)
			}
			if c.want != "" && !reflect.DeepEqual(scan(t, b.client, countersName), before) {
				t.Error("the row was changed")
			}
		})
	}
	for name, spoil := range map[string]func(*merge.Move){
		"no key":            func(m *merge.Move) { m.Cell.Key = "" },
		"bytes":             func(m *merge.Move) { m.Serial = "\xff" },
		"a longer sort key": func(m *merge.Move) { m.Serial = strings.Repeat("s", maxSortKey) },
	} {
		m := below("0011", "0011", 1)
		spoil(&m)
		if _, _, err := b.store.Advance(t.Context(), m); kindOf(err) != "refused [0]" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAdvance_EachAnswerKeepsItsPromise(t *testing.T) {
	for _, c := range []struct {
		answer reply
		want   string
	}{
		{refusalOf("ThrottlingException", ""), "throttled"},
		{refusalOf("ProvisionedThroughputExceededException", ""), "throttled"},
		{refusalOf("TransactionConflictException", ""), "conflict [] false"},
		{refusalOf("ValidationException", ""), "refused [0]"},
		{refusalOf("AccessDeniedException", ""), "permanent"},
		{refusalOf("ResourceNotFoundException", ""), "permanent"},
		{refusalOf("ConditionalCheckFailedException", ""), "unknown"}, // no row, so no mark
		{refusalOf("ConditionalCheckFailedException", `"Item":{"p":{"N":"7"}}`), "unknown"},
		{reply{status: 500}, "unknown"}, {reply{cut: true}, "unknown"},
	} {
		s := &script{replies: map[string][]reply{"UpdateItem": {c.answer}}}
		store := storeOn(t, scripted(t, s))
		_, moved, err := store.Advance(t.Context(), below("0011", "0012", 1))
		if kindOf(err) != c.want || moved || len(s.seen()) != 1 {
			t.Errorf("%+v: %t, %v after %d requests; want %q", c.answer, moved, err, len(s.seen()), c.want)
		}
	}
}

// lane is one shard's events from a seed: 40 of them on three keys and a total.
func lane(rng *rand.Rand, serial string) []tally.Event {
	events := make([]tally.Event, 40)
	for i := range events {
		events[i] = tally.Event{ID: fmt.Sprint(serial, i), Serial: serial,
			Position: envelope.SequenceNumber(fmt.Sprint(i + 1)).Position()}
		for _, key := range []string{fmt.Sprint("k", rng.IntN(3)), "all"} {
			cell := tally.Cell{Counter: "views", Key: key, Window: "all"}
			events[i].Adds = append(events[i].Adds, tally.Add{Cell: cell, Delta: int64(1 + i%3)})
		}
	}
	return events
}

// Two shards, one the child of the other, over the real client with its own retries, in batches that are cut anew at
// each delivery, while replies get lost, calls are refused and land late.
func TestPositionGuard_CountsExactlyThroughAStorm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	sky, client := stormyStandIn(t)
	store := withRetries(storeOn(t, optionsFor(client)))
	positional := merger(t, store, time.Now).ByPosition(store)
	want := map[tally.Cell]tally.Sum{}
	for _, serial := range []string{shardOne, shardTwo} {
		events := lane(rng, serial)
		for _, e := range events {
			for _, a := range e.Adds {
				want[a.Cell] = want[a.Cell].Plus(tally.SumOf(a.Delta))
			}
		}
		sky.turn(stormy(rng.Uint64()))
		for from, round := 0, 0; from < len(events); round++ {
			if round == 30 {
				sky.turn(nil)
			}
			batch := events[from : from+1+rng.IntN(len(events)-from)]
			outcomes := positional.MergeMany(t.Context(), batch)
			if failed := slices.IndexFunc(outcomes, func(o merge.Outcome) bool { return !o.Done() }); failed >= 0 {
				from += failed
			} else if rng.IntN(3) > 0 { // else the answer got lost
				from += len(batch)
			}
		}
		sky.turn(nil)
	}
	for cell, n := range want {
		if got, err := readerOn(t, optionsFor(client)).Get(t.Context(), cell); err != nil || got != n {
			t.Errorf("%s is %s, %v; want %s", cell.Key, got, err, n)
		}
	}
}
