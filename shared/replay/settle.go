package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unicode"
	"unicode/utf16"

	"abacus/shared/envelope"
	"abacus/shared/ingest"
	"abacus/shared/merge"
)

var (
	errHeld   = errors.New("a message before it in its group stays, and goes first")
	errNoTime = errors.New("no time left to replay it; allow the function more time, or give it smaller batches")
	// errNoReader and errNoObjects report what the Replayer was not given.
	errNoReader  = errors.New("it is a notice, and nothing was given to read its stream with")
	errNoObjects = errors.New("it points at objects of S3, and nothing was given to read them with")
	errLoop      = errors.New("its records would be parked in the queue that it is in; replay that queue with another one")
	errKept      = errors.New("it has bad records, and no queue to park them in: mend the rule file, then replay it")
	errExhausted = errors.New("it has records that no replay could count, and no final queue: look at their reason")
	// errUnanswered guards against a Counter that breaks its contract.
	errUnanswered = errors.New("the replay did not answer for every record; this is a bug, report it")
)

// work is one message on its way through.
type work struct {
	*Replayer
	ctx    context.Context
	m      Message
	letter Letter
	Result
}

// replay replays one message. A panic is the failure of that message alone.
func (r *Replayer) replay(ctx context.Context, m Message) (result Result) {
	w := &work{Replayer: r, ctx: ctx, m: m, Result: Result{Message: m.ID}}
	err := w.contained()
	// Nothing is deleted but after a run without an error: every record of it was answered for, and is durable.
	if !errors.Is(err, w.Err) || w.Err == nil {
		w.Err = errors.Join(w.Err, err)
	}
	w.Delete = w.Err == nil
	return w.Result
}

func (w *work) contained() (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &merge.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	if end, ok := w.ctx.Deadline(); ok && end.Sub(w.c.Now()) < endBefore || w.ctx.Err() != nil {
		return errNoTime
	}
	if w.letter, err = w.c.Queues.Open(w.m); err != nil {
		return err
	}
	if w.letter.Form != Pointer {
		return w.open(w.letter)
	}
	if w.c.Objects == nil {
		return errNoObjects
	}
	for _, o := range w.letter.Objects {
		text, err := w.c.Objects.Get(w.ctx, o)
		if err != nil {
			return fmt.Errorf("fetch the on-failure document: %w", err)
		}
		document, err := OpenDocument(text)
		if err != nil {
			return err
		}
		if err := w.open(document); err != nil {
			return err
		}
	}
	return nil
}

// open replays what a letter, or a document that it points at, has in hand or in a shard.
func (w *work) open(letter Letter) error {
	if letter.Form != Notice {
		return w.count(&letter.Batch)
	}
	if w.c.Reader == nil {
		return errNoReader
	}
	of := letter.Range
	p, err := w.c.Reader.Read(w.ctx, of, w.memory.reached(of), func(b *envelope.Batch) error {
		before := w.Counts.Failed
		if err := w.count(b); err != nil {
			return err
		}
		if w.Counts.Failed-before == len(b.Records) {
			return w.Err // the store is down, as it seems: the rest would fare no better
		}
		return nil
	})
	lost, isLost := errors.AsType[*LostError](err)
	if isLost {
		w.Lost = lost
	}
	// Progress is what need not be read again; so it stops where a record must be.
	if w.Err == nil && err != nil && !isLost {
		w.memory.reach(of, p)
	} else {
		w.memory.forget(of)
	}
	return err
}

// count has a batch counted, and settles each of its records. An error says that nothing is known of any.
func (w *work) count(b *envelope.Batch) error {
	outcomes := w.c.Counter.Replay(w.ctx, b)
	if len(outcomes) != len(b.Records) {
		return errUnanswered
	}
	for i, o := range outcomes {
		switch o.Status {
		case ingest.Counted:
			w.Counts.Counted++
		case ingest.Duplicate:
			w.Counts.Duplicate++
		case ingest.Skipped:
			w.Counts.Skipped++
		case ingest.Bad:
			w.park(b, i, o.Reason)
		default:
			w.Counts.Failed++
			w.stay(fmt.Errorf("a record failed, and stays to be replayed: %w", reason(o.Reason)))
		}
	}
	return nil
}

// stay keeps the message; the first reason stands for all.
func (w *work) stay(err error) {
	if w.Err == nil {
		w.Err = err
	}
}

func reason(err error) error {
	if err == nil {
		return errUnanswered
	}
	return err
}

// park parks a bad record where its next round, or its last rest, is; or keeps its message where it has none.
func (w *work) park(b *envelope.Batch, i int, why error) {
	p, history := w.document(b, i, reason(why).Error())
	to, counts := w.c.Again, Counts{Again: 1}
	last := p.Round >= w.c.Rounds
	if last {
		to, counts = w.c.Final, Counts{Final: 1}
	}
	known, before := w.memory.wasParked(p.Identity)
	var err error
	switch {
	case w.letter.Form != Parked && before: // by an earlier delivery of a letter that stays
		w.Counts.Again, w.Counts.Final = w.Counts.Again+known.Again, w.Counts.Final+known.Final
		return
	case last && (to == nil || to.ARN == w.m.Queue):
		w.Exhausted, err = true, errExhausted
	case to == nil:
		err = errKept
	case to.ARN == w.m.Queue:
		err = errLoop
	default:
		err = w.send(to, p, history)
	}
	if err != nil {
		w.Counts.Bad++
		w.stay(fmt.Errorf("%w: %w", err, reason(why)))
		return
	}
	w.Counts.Again, w.Counts.Final = w.Counts.Again+counts.Again, w.Counts.Final+counts.Final
	if w.letter.Form != Parked {
		w.memory.park(p.Identity, counts)
	}
}

// document is the parked record of the next round, and what was said in all rounds before, the oldest first.
func (w *work) document(b *envelope.Batch, i int, why string) (envelope.Parked, []Round) {
	now := w.c.Now().UTC()
	if w.letter.Form != Parked {
		p := envelope.Park(b, i, why, w.c.Rules, now)
		p.Round = 1
		return p, nil
	}
	p := w.letter.Parked
	history := append(w.letter.History[:len(w.letter.History):len(w.letter.History)],
		Round{Round: p.Round, At: p.Last.Format(time.RFC3339), Reason: p.Reason, Rules: p.Rules})
	history = history[max(0, len(history)-w.c.Rounds):]
	p.Reason, p.Rules, p.Last, p.Round = why, w.c.Rules, now, p.Round+1
	return p, history
}

func (w *work) send(to *Destination, p envelope.Parked, history []Round) error {
	text, err := withHistory(p, history)
	if err == nil {
		err = to.Parker.Park(w.ctx, text)
	}
	if err != nil {
		return fmt.Errorf("a bad record was not parked: %w", err)
	}
	return nil
}

// withHistory is a parked record's document with what was said of it before, of which the oldest gives way where the
// document would become too large for a queue.
func withHistory(p envelope.Parked, history []Round) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil || len(history) == 0 {
		return text, err
	}
	for ; len(history) > 0; history = history[1:] {
		more, err := json.Marshal(map[string][]Round{"history": history})
		if err != nil {
			return nil, err
		}
		if more = escaped(more); len(text)+len(more) <= envelope.MaxParked {
			return append(append(text[:len(text)-1], ','), more[1:]...), nil
		}
	}
	return text, nil
}

// escaped spells every character of a JSON text that is not ASCII as an escape, since SQS refuses some of them.
func escaped(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		if r <= unicode.MaxASCII {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}
