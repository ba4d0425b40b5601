package merge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

var errRestless = errors.New("the event's claim changed hands all the time; its source will deliver it again")

// rival is another attempt's row on an event that we want.
type rival struct {
	pos int
	row Claim
}

// contest finds out what the attempts of rivals did with their events, and takes over what they will never count. It
// returns those whose row is gone, and those that met yet another rival.
func (a *attempt) contest(ctx context.Context, rivals []rival) (free []int, met []rival) {
	if len(rivals) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(rivals, func(x, y rival) int { return cmp.Compare(x.row.Token, y.row.Token) })
	var groups [][]rival
	for start := 0; start < len(rivals); {
		end := start + 1
		for end < len(rivals) && rivals[end].row.Token == rivals[start].row.Token {
			end++
		}
		groups = append(groups, rivals[start:end])
		start = end
	}
	takeable := make([][]rival, len(groups))
	if a.why == nil && len(groups) > 1 { // made before many goroutines blame
		a.why = make([]error, len(a.holds))
	}
	wide(len(groups), a.call.m.cfg.Workers, func(_, i int) { takeable[i] = a.judge(ctx, groups[i]) })
	return a.takeAll(ctx, slices.Concat(takeable...))
}

// judge decides, for the rows of one attempt, which events that one has counted, may yet count, or will never count;
// the last are returned.
func (a *attempt) judge(ctx context.Context, rows []rival) (takeable []rival) {
	now := a.call.m.cfg.Now()
	record, err := a.call.recordOf(ctx, rows[0].row, func() bool {
		return slices.ContainsFunc(rows, func(r rival) bool { return a.over(r, now) })
	})
	for _, r := range rows {
		switch {
		case err != nil:
			a.blame(r.pos, err)
		case record.State == Undecided:
			a.holds[r.pos] = elsewhere
		case record.Counted(a.id(r.pos)) && now.Before(r.row.Expires):
			a.holds[r.pos] = counted
		default: // aborted, excepted, or forgotten
			takeable = append(takeable, r)
		}
	}
	return takeable
}

// over reports whether r's attempt need not be waited for. It decides when to take over, never whether: an attempt that
// is still at work after all is aborted first, and then cannot commit. That holds for a claim past its own expiry too,
// since a clock that is wrong by the whole horizon must not count an event twice.
func (a *attempt) over(r rival, now time.Time) bool {
	serial := a.event(r.pos).Serial
	return a.call.m.leaseOver(r.row.Lease, now) || !now.Before(r.row.Expires) || serial != "" && serial == r.row.Serial
}

// recordOf returns the record of the attempt that row names, aborting it first if it is undecided and over.
func (c *call) recordOf(ctx context.Context, row Claim, over func() bool) (Record, error) {
	c.mu.Lock()
	record, ok := c.known[row.Token]
	c.mu.Unlock()
	if ok {
		return record, nil
	}
	find := tries{m: c.m, call: "reading a commit record"}
	record, err := retry(ctx, &find, func() (Record, error) { return c.store.FindRecord(ctx, row.Token) })
	if err == nil && record.State == Undecided && over() {
		// The row may have been put late, or by a clock ahead of ours: outlive both.
		expires := c.m.cfg.Now().Add(c.m.cfg.Horizon)
		if row.Expires.After(expires) {
			expires = row.Expires
		}
		abort := tries{m: c.m, call: "aborting another attempt"}
		record, err = retry(ctx, &abort, func() (Record, error) {
			return c.store.Abort(ctx, row.Token, expires.Add(recordMargin))
		})
	}
	if err == nil && record.State != Undecided { // a decided record never changes
		c.mu.Lock()
		c.known[row.Token] = record
		c.mu.Unlock()
	}
	return record, err
}

// takeAll takes over the claims of rivals that will never count their events.
func (a *attempt) takeAll(ctx context.Context, rivals []rival) (free []int, met []rival) {
	standing := make([]Claim, len(rivals))
	errs := make([]error, len(rivals))
	wide(len(rivals), a.call.m.cfg.Workers, func(_, i int) {
		r := rivals[i]
		errs[i] = errRestless // stays if the call panics
		t := tries{m: a.call.m, call: "taking a claim over"}
		standing[i], errs[i] = retry(ctx, &t, func() (Claim, error) {
			row, err := a.call.store.TakeClaim(ctx, a.claimFor(r.pos), r.row.Token)
			if err != nil {
				a.missed(r.pos, err)
			}
			return row, err
		})
	})
	taken := 0
	for i, r := range rivals {
		switch {
		case errs[i] != nil:
			a.blame(r.pos, errs[i])
		case standing[i].Token == a.token:
			a.holds[r.pos] = held
			taken++
		case standing[i].Token == "":
			free = append(free, r.pos)
		default:
			met = append(met, rival{r.pos, standing[i]})
		}
	}
	a.call.m.record(MetricTakeover, taken, nil)
	return free, met
}
