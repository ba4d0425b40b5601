package mapping

import (
	"context"
	"slices"
)

// piece is a batch, or what splitting and partial success have left of one.
type piece struct {
	records  []*record
	charged  int  // failed tries that count against MaximumRetryAttempts
	invoked  int  // times that the function was invoked with it, or with what it was split off
	function bool // the latest failure was the function's as a whole
}

// part returns records of p as a piece with the same past.
func (p piece) part(records []*record) piece {
	p.records = records
	return p
}

// settle works a batch off, piece by piece in order, until each of its records is processed or given up; nothing behind
// it is touched meanwhile. It returns false when ctx ends first.
func (l *lane) settle(ctx, work context.Context, batch []*record) bool {
	todo, failures := []piece{{records: batch}}, 0
	for len(todo) > 0 {
		if ctx.Err() != nil {
			return false
		}
		p := todo[0]
		if p = l.discardAged(work, p); len(p.records) == 0 {
			todo = todo[1:]
			continue
		}
		if fitting(texts(p.records)) == 0 { // one record alone: it can never be delivered
			l.discard(work, p.part(p.records[:1]), "RetryAttemptsExhausted")
			todo[0] = p.part(p.records[1:])
			continue
		}
		twist := l.d.k.c.Pace.twist(Delivery{Source: "aws:kinesis", Shard: l.d.id, IDs: numbers(p.records),
			Try: p.records[0].tries + 1})
		if twist.Cut > 0 && twist.Cut < len(p.records) {
			todo[0] = p.part(p.records[twist.Cut:])
			p = p.part(p.records[:twist.Cut])
			todo = slices.Insert(todo, 0, p)
		}
		o := l.invoke(work, p.records)
		if o.err != nil && work.Err() != nil {
			return false // cut off at the end of the grace: it counts as never tried
		}
		if o.failedAt == len(p.records) {
			failures = 0
			todo = todo[1:]
			if twist.Repeat && !p.records[0].repeated {
				l.putBack(p.records, todo)
				return true
			}
			l.d.settle(p.records)
			continue
		}
		failures++
		todo = slices.Replace(todo, 0, 1, l.afterFailure(work, p, o)...)
		if len(todo) > 0 && !l.d.k.c.Pace.backoff(ctx, failures) {
			return false
		}
	}
	return true
}

// afterFailure returns what is to be tried next of a piece that did not go through.
//
// A partial success is checkpointed. A split does not use up the retry quota; a retry of what cannot be split does.
// What has used it up is given up (https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html,
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html).
func (l *lane) afterFailure(work context.Context, p piece, o outcome) []piece {
	c := l.d.k.c
	if o.throttled {
		return []piece{p}
	}
	p.invoked++
	p.function = o.function
	if o.failedAt > 0 {
		l.d.settle(p.records[:o.failedAt])
		p = p.part(p.records[o.failedAt:])
		if c.BisectBatchOnFunctionError {
			return []piece{p}
		}
	} else if half := len(p.records) / 2; c.BisectBatchOnFunctionError && half > 0 && (o.function || c.SplitStuck) {
		return []piece{p.part(p.records[:half]), p.part(p.records[half:])}
	}
	p.charged++
	if c.MaximumRetryAttempts >= 0 && p.charged > c.MaximumRetryAttempts {
		l.discard(work, p, "RetryAttemptsExhausted")
		return nil
	}
	return []piece{p}
}

// discardAged gives up the records at the head of p that are older than MaximumRecordAge.
func (l *lane) discardAged(work context.Context, p piece) piece {
	limit, now, n := l.d.k.c.MaximumRecordAge, l.d.k.c.Pace.Now(), 0
	for limit > 0 && n < len(p.records) && now.Sub(p.records[n].arrived) > limit {
		n++
	}
	if n > 0 {
		l.discard(work, p.part(p.records[:n]), "RecordAgeExceeded")
	}
	return p.part(p.records[n:])
}

// putBack has records delivered again, before and together with what comes after them.
func (l *lane) putBack(records []*record, todo []piece) {
	for _, r := range records {
		r.repeated = true
	}
	again := slices.Clone(records)
	for _, p := range todo {
		again = append(again, p.records...)
	}
	l.pending = append(again, l.pending...)
}
