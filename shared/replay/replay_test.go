package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/envelope"
	"abacus/shared/ingest"
	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"
	"abacus/shared/tally/rules"
)

const (
	againARN = "arn:aws:sqs:us-east-1:000000000000:flights-again"
	finalARN = "arn:aws:sqs:us-east-1:000000000000:flights-final"
)

const ruleFile = `
counters:
  - name: c
    keys: ["{key}"]
    windows: {all: forever}
`

// box is a Parker that remembers, unless it is full.
type box struct {
	documents []string
	full      error
}

func (b *box) Park(_ context.Context, document []byte) error {
	if b.full != nil {
		return b.full
	}
	b.documents = append(b.documents, string(document))
	return nil
}

// office is a Replayer over the real rules, the real core and a strict store.
type office struct {
	*Replayer
	store        *mergetest.Store
	handler      *ingest.Handler
	again, final *box
	log          *bytes.Buffer
}

func newOffice(t *testing.T, edit func(*Config)) *office {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(ruleFile))
	if err != nil {
		t.Fatal(err)
	}
	o := &office{store: mergetest.New(t), again: new(box), final: new(box), log: new(bytes.Buffer)}
	core, err := merge.New(merge.Config{Store: o.store, Now: o.store.Now})
	if err != nil {
		t.Fatal(err)
	}
	o.handler, err = ingest.New(ingest.Config{Kind: envelope.SQS, Rules: set, Sink: core, Now: o.store.Now})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Counter: o.handler, Feeds: []string{deadARN}, Again: &Destination{againARN, o.again},
		Final: &Destination{finalARN, o.final}, Rules: "digest2", Log: slog.New(slog.NewJSONHandler(o.log, nil))}
	if edit != nil {
		edit(&c)
	}
	if o.Replayer, err = New(c); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) total(key string) string {
	return o.store.Total(tally.Cell{Counter: "c", Key: key, Window: "all"}).String()
}

func (o *office) one(t *testing.T, m Message) Result {
	t.Helper()
	results := o.Handle(t.Context(), []Message{m})
	if len(results) != 1 || results[0].Message != m.ID || results[0].Delete == (results[0].Err != nil) {
		t.Fatalf("results %+v", results)
	}
	return results[0]
}

const goodA = `{"key":"a"}`

func movedMessage(id, body string) Message {
	return Message{ID: id, Queue: deadARN, Body: body, Attributes: map[string]string{attributeSource: sourceARN}}
}

func documentOf(payloads ...string) Message {
	of := Range{Stream: streamARN, Shard: shardID, First: "7", Last: "9", Size: len(payloads)}
	event, _ := json.Marshal(kinesisEvent(streamARN, shardID, payloads...))
	return message(noticeText(of, `,"payload":`+string(event)))
}

func TestReplay_EveryFormCountsOnceHoweverOftenItIsReplayed(t *testing.T) {
	o := newOffice(t, nil)
	letters := []Message{movedMessage("m1", goodA), documentOf(goodA, goodA),
		message(text(t, parkedOf(envelope.Kinesis, goodA))), message(text(t, parkedOf(envelope.SQS, goodA)))}
	// The document and the parked record share record 7, the moved message and the other parked record message m1.
	for round := range 3 {
		for i, r := range o.Handle(t.Context(), letters) {
			if !r.Delete || r.Err != nil {
				t.Errorf("round %d, letter %d: %+v", round, i, r)
			}
		}
		if o.total("a") != "3" {
			t.Fatalf("round %d: a = %s, want 3", round, o.total("a"))
		}
	}
}

func TestReplay_ALetterAndItsSourceCountOnce(t *testing.T) {
	o := newOffice(t, nil)
	event := fmt.Sprintf(`{"Records":[{"messageId":"m1","body":%q,"eventSource":"aws:sqs","eventSourceARN":%q}]}`, goodA,
		sourceARN)
	if _, err := o.handler.Invoke(t.Context(), []byte(event)); err != nil {
		t.Fatal(err)
	}
	if r := o.one(t, movedMessage("m1", goodA)); r.Counts != (Counts{Duplicate: 1}) || !r.Delete || o.total("a") != "1" {
		t.Errorf("%+v, a = %s", r, o.total("a"))
	}
}

func TestReplay_AMessageIsDeletedOnlyWhenAllOfItIsDurable(t *testing.T) {
	full := errors.New("full")
	for name, c := range map[string]struct {
		m      Message
		edit   func(*Config)
		breaks func(*office)
		want   Counts
	}{
		"one of two fails": {documentOf(goodA, `{"key":"b"}`), func(c *Config) { c.Counter = failing{c.Counter, 1} }, nil,
			Counts{Counted: 1, Failed: 1}},
		"the store is down": {documentOf(goodA, goodA), nil, func(o *office) {
			o.store.Fault = func(mergetest.Call) mergetest.Fault { return mergetest.Fault{Err: mergetest.ErrDenied} }
		}, Counts{Failed: 2}},
		"no room to park": {documentOf(goodA, "bad"), nil, func(o *office) { o.again.full = full },
			Counts{Counted: 1, Bad: 1}},
		"nowhere to park":   {movedMessage("m1", "bad"), func(c *Config) { c.Again = nil }, nil, Counts{Bad: 1}},
		"too few answers":   {documentOf(goodA, goodA), func(c *Config) { c.Counter = mute{} }, nil, Counts{}},
		"a panic":           {movedMessage("m1", goodA), func(c *Config) { c.Counter = mad{} }, nil, Counts{}},
		"no form":           {message("hello"), nil, nil, Counts{}},
		"no reader":         {message(noticeText(seven, "")), nil, nil, Counts{}},
		"no object fetcher": {pointerMessage, nil, nil, Counts{}},
		"a lost object":     {pointerMessage, func(c *Config) { c.Objects = store{} }, nil, Counts{}},
		"no document":       {pointerMessage, func(c *Config) { c.Objects = store{pointed: "{}"} }, nil, Counts{}},
	} {
		o := newOffice(t, c.edit)
		if c.breaks != nil {
			c.breaks(o)
		}
		if r := o.one(t, c.m); r.Delete || r.Err == nil || r.Counts != c.want {
			t.Errorf("%s: %+v, want it kept with %+v", name, r, c.want)
		}
		if strings.Contains(o.log.String(), "hello") || !strings.Contains(o.log.String(), "letter stays in its queue") {
			t.Errorf("%s: log %s", name, o.log)
		}
	}
}

// failing fails the record at an index.
type failing struct {
	Counter
	index int
}

func (f failing) Replay(ctx context.Context, b *envelope.Batch) []ingest.Outcome {
	outcomes := f.Counter.Replay(ctx, b)
	outcomes[f.index] = ingest.Outcome{}
	return outcomes
}

type mute struct{}

func (mute) Replay(context.Context, *envelope.Batch) []ingest.Outcome { return nil }

type mad struct{}

func (mad) Replay(context.Context, *envelope.Batch) []ingest.Outcome { panic("mad") }

// store has objects.
type store map[Object]string

var errNoObject = errors.New("no such object")

func (s store) Get(_ context.Context, o Object) ([]byte, error) {
	body, ok := s[o]
	if !ok {
		return nil, errNoObject
	}
	return []byte(body), nil
}

var (
	pointed        = Object{"b", "aws/lambda/u/d"}
	pointerMessage = message(`{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{"name":"b"},` +
		`"object":{"key":"aws/lambda/u/d"}}}]}`)
)

func TestReplay_AnObjectIsFetchedAndCounted(t *testing.T) {
	o := newOffice(t, func(c *Config) { c.Objects = store{pointed: documentOf(goodA, goodA).Body} })
	for range 2 {
		if r := o.one(t, pointerMessage); !r.Delete || o.total("a") != "2" {
			t.Errorf("%+v, a = %s", r, o.total("a"))
		}
	}
}

func TestE4_TwentyReplaysOfABadRecordEndAtRestWithItsPayloadAndHistory(t *testing.T) {
	o := newOffice(t, nil)
	m, sent := movedMessage("m1", "bad payload"), 0
	for replays := range 20 {
		r := o.one(t, m)
		switch {
		case r.Counts.Again == 1 && r.Delete:
			sent++
			m = Message{ID: fmt.Sprint("x", replays), Queue: againARN, Body: o.again.documents[len(o.again.documents)-1]}
			// A replay of the again queue parks elsewhere; here it is fed by hand, under a queue that may park in it.
			m.Queue = deadARN
		case r.Counts.Final == 1 && r.Delete:
			sent++
			m = Message{ID: "rest", Queue: finalARN, Body: o.final.documents[0]}
		case !r.Exhausted || r.Delete:
			t.Fatalf("replay %d: %+v", replays, r)
		}
	}
	if sent != DefaultRounds || len(o.again.documents) != 2 || len(o.final.documents) != 1 {
		t.Fatalf("%d sends, %d again, %d for good", sent, len(o.again.documents), len(o.final.documents))
	}
	letter, err := Queues{}.Open(message(o.final.documents[0]))
	p := letter.Parked
	if err != nil || p.Round != 3 || string(p.Payload) != "bad payload" || p.Identity != sourceARN+"|m1" ||
		p.Rules != "digest2" || p.First.IsZero() || p.Last.Before(p.First) {
		t.Errorf("%+v, %v", p, err)
	}
	if h := letter.History; len(h) != 2 || h[0].Round != 1 || h[1].Round != 2 || h[0].Reason == "" || h[1].At == "" {
		t.Errorf("history %+v", h)
	}
}

func TestE4_NothingIsSentToAQueueThatFeedsTheReplay(t *testing.T) {
	for _, c := range []Config{{Again: &Destination{deadARN, new(box)}}, {Final: &Destination{deadARN, new(box)}}} {
		c.Counter, c.Feeds = mute{}, []string{deadARN}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "loop") {
			t.Errorf("%v, want it refused", err)
		}
	}
	// Nor where the settings do not name it.
	o := newOffice(t, func(c *Config) { c.Feeds = nil })
	m := movedMessage("m1", "bad")
	m.Queue = againARN
	if r := o.one(t, m); r.Delete || !errors.Is(r.Err, errLoop) || len(o.again.documents) != 0 {
		t.Errorf("%+v, %d sent", r, len(o.again.documents))
	}
}

func TestE4_WithoutAFinalQueueItIsKeptAndSaidToBeExhausted(t *testing.T) {
	o := newOffice(t, func(c *Config) { c.Final = nil })
	p := parkedOf(envelope.Kinesis, "bad")
	p.Round = 2
	r := o.one(t, message(text(t, p)))
	if r.Delete || !r.Exhausted || r.Counts != (Counts{Bad: 1}) || !strings.Contains(o.log.String(), `"exhausted":true`) {
		t.Errorf("%+v: %s", r, o.log)
	}
}

func TestReplay_ALetterThatStaysParksABadRecordOnce(t *testing.T) {
	o := newOffice(t, func(c *Config) { c.Counter = failing{c.Counter, 0} })
	for range 3 {
		if r := o.one(t, documentOf(goodA, "bad")); r.Delete || r.Counts != (Counts{Failed: 1, Again: 1}) {
			t.Errorf("%+v", r)
		}
	}
	if len(o.again.documents) != 1 {
		t.Errorf("parked %d times", len(o.again.documents))
	}
}

func TestReplay_AParkedDocumentFitsAQueueWithItsHistoryOrWithout(t *testing.T) {
	p := parkedOf(envelope.SQS, "x")
	long := Round{Round: 1, At: "2026-01-02T03:04:05Z", Reason: "größer\u2028" + strings.Repeat("x", 600<<10)}
	got, err := withHistory(p, []Round{long, {Round: 2, Reason: "short"}})
	letter, bad := Queues{}.Open(message(string(got)))
	if err != nil || bad != nil || len(letter.History) != 2 || letter.History[0].Reason != long.Reason ||
		bytes.ContainsFunc(got, func(r rune) bool { return r > 127 }) {
		t.Errorf("%d bytes, %d rounds, %v, %v", len(got), len(letter.History), err, bad)
	}
	got, err = withHistory(p, []Round{long, long, {Round: 2, Reason: "short"}})
	letter, bad = Queues{}.Open(message(string(got)))
	if err != nil || bad != nil || len(got) > envelope.MaxParked || len(letter.History) != 2 ||
		letter.Parked.Identity != p.Identity {
		t.Errorf("%d bytes, %d rounds, %v, %v", len(got), len(letter.History), err, bad)
	}
}

func TestReplay_OnAFIFOQueueNothingOvertakesWhatStays(t *testing.T) {
	o := newOffice(t, func(c *Config) { c.Again = nil })
	line := func(id, group, body string) Message {
		m := movedMessage(id, body)
		m.Queue += ".fifo"
		m.Attributes[attributeSource] += ".fifo"
		m.Attributes[attributeGroup] = group
		return m
	}
	got := o.Handle(t.Context(), []Message{line("m1", "g", goodA), line("m2", "g", "bad"), line("m3", "g", goodA),
		line("m4", "h", goodA)})
	var deleted []string
	for _, r := range got {
		if r.Delete {
			deleted = append(deleted, r.Message)
		}
	}
	if !slices.Equal(deleted, []string{"m1", "m4"}) || !errors.Is(got[2].Err, errHeld) || o.total("a") != "2" {
		t.Errorf("deleted %v, a = %s", deleted, o.total("a"))
	}
}

func TestInvoke_NamesWhatStays(t *testing.T) {
	o := newOffice(t, func(c *Config) { c.Again = nil })
	record := `{"messageId":%q,"body":%q,"attributes":{"DeadLetterQueueSourceArn":%q},"eventSource":"aws:sqs",` +
		`"eventSourceARN":%q}`
	event := fmt.Sprintf(`{"Records":[`+record+`,`+record+`]}`, "m1", goodA, sourceARN, deadARN, "m2", "bad",
		sourceARN, deadARN)
	answer, err := o.Invoke(t.Context(), []byte(event))
	if err != nil || string(answer) != `{"batchItemFailures":[{"itemIdentifier":"m2"}]}` || o.total("a") != "1" {
		t.Errorf("%s, %v, a = %s", answer, err, o.total("a"))
	}
	if answer, err := o.Invoke(t.Context(), []byte(`{"Records":[{"eventSource":"aws:kinesis"}]}`)); err == nil {
		t.Errorf("another event is answered %s", answer)
	}
}

func TestReplay_WithoutTimeNothingIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), endBefore-time.Millisecond)
		defer cancel()
		if r := o.Handle(ctx, []Message{movedMessage("m1", goodA)})[0]; r.Delete || !errors.Is(r.Err, errNoTime) {
			t.Errorf("%+v", r)
		}
	})
}

func TestE2_ANoticeIsReplayedAndALostOneStaysWithItsCounts(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, _ context.Context, s *shard) {
		o := newOffice(t, func(c *Config) { c.Reader = &Reader{Shards: s} })
		s.put(t, goodA, "bad")
		time.Sleep(time.Hour)
		s.put(t, goodA, goodA)
		m := message(noticeText(s.rng(1, 4), ""))
		for _, want := range []Counts{{Counted: 3, Again: 1}, {Duplicate: 3, Again: 1}} {
			if r := o.one(t, m); !r.Delete || r.Counts != want || r.Lost != nil || o.total("a") != "3" {
				t.Errorf("%+v, want %+v; a = %s", r, want, o.total("a"))
			}
		}
		time.Sleep(23*time.Hour + time.Minute)
		for range 2 {
			r := o.one(t, m)
			if r.Delete || r.Lost == nil || r.Lost.Lost() != 2 || r.Lost.Of != 4 || r.Counts.Duplicate != 2 ||
				!strings.Contains(o.log.String(), `"lost_at_least":2,"of":4,"found":2,"range":"records `) {
				t.Errorf("%+v: %s", r, o.log)
			}
		}
		// What was parked of the range counts under the identity that it had there, after the rules can read it.
		letter, err := Queues{}.Open(message(o.again.documents[0]))
		if err != nil || letter.Batch.Records[0].Identity != envelope.KinesisIdentity(streamARN, shardID,
			envelope.SequenceNumber(s.numbers[1])) {
			t.Errorf("%+v, %v", letter, err)
		}
	})
}

func TestReplay_ARangeThatIsNotFinishedGoesOnWhereItStopped(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, _ context.Context, s *shard) {
		o := newOffice(t, func(c *Config) { c.Reader = &Reader{Shards: &paged{shard: s, size: 1}} })
		for range 30 {
			s.put(t, goodA)
		}
		m, total := message(noticeText(s.rng(1, 30), "")), Counts{}
		for deliveries := range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			r := o.Handle(ctx, []Message{m})[0]
			cancel()
			total.Counted += r.Counts.Counted
			total.Duplicate += r.Counts.Duplicate
			if r.Delete {
				if deliveries == 0 || total != (Counts{Counted: 30}) || o.total("a") != "30" {
					t.Errorf("after %d deliveries: %+v, a = %s", deliveries+1, total, o.total("a"))
				}
				return
			}
			if !errors.Is(r.Err, ErrUnfinished) {
				t.Fatal(r.Err)
			}
		}
		t.Error("the range is never finished")
	})
}

func TestReplay_WhatFailedInARangeIsReadAgain(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, _ context.Context, s *shard) {
		o := newOffice(t, func(c *Config) { c.Reader = &Reader{Shards: &paged{shard: s, size: 1}} })
		s.put(t, goodA, goodA, goodA)
		m := message(noticeText(s.rng(1, 3), ""))
		o.store.Fault = func(mergetest.Call) mergetest.Fault { return mergetest.Fault{Err: mergetest.ErrDenied} }
		if r := o.one(t, m); r.Delete || r.Counts != (Counts{Failed: 1}) {
			t.Errorf("%+v, want it given up at the first page that fails as a whole", r)
		}
		o.store.Fault = nil
		if r := o.one(t, m); !r.Delete || o.total("a") != "3" {
			t.Errorf("%+v, a = %s", r, o.total("a"))
		}
		s.fault = func(string) wire.Fault { return wire.Fault{Before: wire.Errorf("AccessDeniedException", "no")} }
		if r := o.one(t, m); r.Delete || r.Lost != nil {
			t.Errorf("%+v", r)
		}
	})
}

// once fails its first record ever.
type once struct {
	Counter
	failed bool
}

func (c *once) Replay(ctx context.Context, b *envelope.Batch) []ingest.Outcome {
	if !c.failed {
		c.failed = true
		return append(make([]ingest.Outcome, 1), c.Counter.Replay(ctx, &envelope.Batch{Kind: b.Kind, Source: b.Source,
			Shard: b.Shard, Records: b.Records[1:]})...)
	}
	return c.Counter.Replay(ctx, b)
}

func TestReplay_AnUnfinishedRangeWithAFailedRecordBeginsAgain(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, _ context.Context, s *shard) {
		o := newOffice(t, func(c *Config) {
			c.Reader, c.Counter = &Reader{Shards: &paged{shard: s, size: 2}}, &once{Counter: c.Counter}
		})
		for range 30 {
			s.put(t, goodA)
		}
		m := message(noticeText(s.rng(1, 30), ""))
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		r := o.Handle(ctx, []Message{m})[0]
		if r.Delete || !errors.Is(r.Err, ErrUnfinished) || r.Counts.Failed != 1 || r.Counts.Counted == 0 {
			t.Fatalf("%+v", r)
		}
		if r = o.one(t, m); !r.Delete || o.total("a") != "30" {
			t.Errorf("%+v, a = %s, want 30", r, o.total("a"))
		}
	})
}
