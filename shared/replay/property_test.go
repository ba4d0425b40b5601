package replay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
	"abacus/shared/merge/mergetest"

	"pgregory.net/rapid"
)

// TestReplay_UnderFaultsALetterGoesOnlyWhenAllOfItIsCountedOrParked plays letters of all forms about the same records,
// again and again, while Kinesis throttles, expires iterators and breaks, the store breaks before and after it applied,
// and the park queue is full. Then all heals. What a deleted letter stood for must be counted or parked by then, none
// may count twice, and all letters must go in the end.
func TestReplay_UnderFaultsALetterGoesOnlyWhenAllOfItIsCountedOrParked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bad := rapid.SliceOfN(rapid.Bool(), 3, 7).Draw(rt, "bad records")
		rounds := rapid.IntRange(1, 3).Draw(rt, "rounds of faults")
		faults := rapid.SliceOfN(rapid.IntRange(0, 9), 40, 40).Draw(rt, "faults")
		page := rapid.Int32Range(1, 4).Draw(rt, "page")
		synctest.Test(t, func(t *testing.T) { newPlay(t, bad, faults, page).run(rounds) })
	})
}

// play is one run of the property: records of a shard, letters about them, and what is to go wrong.
type play struct {
	*office
	t        *testing.T
	shard    *shard
	payloads []string
	letters  []about
	mu       sync.Mutex
	faults   []int
}

// about is a letter about the records from one index up to another.
type about struct {
	Message
	from, to int
}

func newPlay(t *testing.T, bad []bool, faults []int, page int32) *play {
	p := &play{t: t, shard: newShard(t, stream.Config{}), faults: faults}
	p.office = newOffice(t, func(c *Config) { c.Reader = &Reader{Shards: &paged{shard: p.shard, size: page}} })
	for i, b := range bad {
		p.payloads = append(p.payloads, fmt.Sprintf(`{"key":"k%d"}`, i))
		if b {
			p.payloads[i] = fmt.Sprint("bad ", i)
		}
	}
	p.shard.put(t, p.payloads...)
	n := len(p.payloads)
	all := p.shard.rng(1, n)
	whole := noticeText(all, `,"payload":`+text(t, p.event()))
	first := envelope.Batch{Kind: envelope.Kinesis, Source: streamARN, Shard: shardID}
	first.Records = []envelope.Record{{ID: p.shard.numbers[0], Payload: []byte(p.payloads[0]),
		Identity: envelope.KinesisIdentity(streamARN, shardID, all.First)}}
	parked := envelope.Park(&first, 0, "bad record", "digest", time.Now())
	p.letters = []about{{message(noticeText(all, "")), 0, n}, {message(noticeText(p.shard.rng(2, 3), "")), 1, 3},
		{message(whole), 0, n}, {message(text(t, parked)), 0, 1}, {message(noticeText(all, "")), 0, n}}
	return p
}

// event is Lambda's event with all the records.
func (p *play) event() string {
	var records []string
	for i, payload := range p.payloads {
		records = append(records, fmt.Sprintf(`{"kinesis":{"sequenceNumber":%q,"data":%q},"eventSource":"aws:kinesis",`+
			`"eventID":"%s:%s","eventSourceARN":%q}`, p.shard.numbers[i],
			base64.StdEncoding.EncodeToString([]byte(payload)), shardID, p.shard.numbers[i], streamARN))
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

// next draws what happens next; 9 is nothing.
func (p *play) next() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) == 0 {
		return 9
	}
	defer func() { p.faults = p.faults[1:] }()
	return p.faults[0]
}

func (p *play) run(rounds int) {
	p.shard.fault = func(string) wire.Fault {
		codes := []string{"ProvisionedThroughputExceededException", "ExpiredIteratorException", "InternalFailure",
			"AccessDeniedException"}
		if at := p.next(); at < len(codes) {
			return wire.Fault{Before: wire.Errorf(codes[at], "no")}
		}
		return wire.Fault{}
	}
	p.store.Fault = func(mergetest.Call) mergetest.Fault {
		return map[int]mergetest.Fault{0: {Err: mergetest.ErrDenied}, 1: {Err: mergetest.ErrInjected},
			2: {Err: mergetest.ErrInjected, Applied: true}}[p.next()]
	}
	for range rounds {
		p.again.full = nil
		if p.next() < 5 {
			p.again.full = errors.New("full")
		}
		p.deliver()
	}
	p.shard.fault, p.store.Fault, p.again.full = nil, nil, nil
	time.Sleep(time.Hour) // past every lease
	if p.deliver(); len(p.letters) > 0 {
		p.t.Errorf("%d letters stay: %s", len(p.letters), p.log)
	}
}

// deliver replays the letters within five minutes; those that go are audited.
func (p *play) deliver() {
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	var messages []Message
	for _, letter := range p.letters {
		messages = append(messages, letter.Message)
	}
	var stay []about
	for i, r := range p.Handle(ctx, messages) {
		if r.Delete == (r.Err != nil) || r.Delete && r.Counts.Failed+r.Counts.Bad > 0 || r.Lost != nil {
			p.t.Errorf("%+v", r)
		}
		if r.Delete {
			p.audit(p.letters[i])
		} else {
			stay = append(stay, p.letters[i])
		}
	}
	p.letters = stay
}

// audit holds counts and parked documents against the truth about the records of a letter that went.
func (p *play) audit(letter about) {
	parked := map[string]bool{}
	for _, document := range p.again.documents {
		kept, err := Queues{}.Open(message(document))
		if err != nil {
			p.t.Error(err)
		}
		parked[string(kept.Parked.Payload)] = true
	}
	for i := letter.from; i < letter.to; i++ {
		bad, want := strings.HasPrefix(p.payloads[i], "bad"), "1"
		if bad {
			want = "0"
		}
		if got := p.total(fmt.Sprint("k", i)); got != want || parked[p.payloads[i]] != bad {
			p.t.Errorf("record %d of a letter that went: counts %s, want %s; parked %t", i, got, want, parked[p.payloads[i]])
		}
	}
}
