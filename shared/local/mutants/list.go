package main

// mutant is one sabotage of the core: a plausible mistake that loses or doubles events, and the tests that must notice.
type mutant struct {
	name  string
	edits []edit
	pkg   string // whose tests must fail, a folder of this module
	run   string // the tests that are run, as for go test -run; narrow, so that all mutants are through in minutes
}

// edit replaces a text, which must stand in the file exactly once.
type edit struct{ file, find, replace string }

// Files that several mutants are in.
const (
	attempt   = "shared/merge/attempt.go"
	commit    = "shared/merge/commit.go"
	contest   = "shared/merge/contest.go"
	release   = "shared/merge/release.go"
	retry     = "shared/merge/retry.go"
	byMark    = "shared/merge/position.go"
	dynCommit = "shared/dynamo/commit.go"
	dynMark   = "shared/dynamo/position.go"
	dynRows   = "shared/dynamo/rows.go"
	dynStore  = "shared/dynamo/store.go"
	respond   = "shared/envelope/respond.go"
	ingest    = "shared/ingest/ingest.go"
	fate      = "shared/ingest/fate.go"
)

// Packages by folder.
const (
	inMerge    = "shared/merge"
	inDynamo   = "shared/dynamo"
	inEnvelope = "shared/envelope"
	inIngest   = "shared/ingest"
	inTally    = "shared/tally"
	inRules    = "shared/tally/rules"
)

// aboutRecord takes the condition off the commit record without making the request malformed.
var aboutRecord = edit{dynCommit, `aws.String(absent.expression), Exp`,
	`aws.String(absent.expression + " OR attribute_exists(#pk)"), Exp`}

var mutants = []mutant{
	// Claims.
	{"a known event is taken for a counted one", []edit{{contest, `= elsewhere`, `= counted`}},
		inMerge, `A4_|InFlight`},
	{"takeover without abort", []edit{{contest, `return c.store.Abort(ctx, row.Token, expires.Add(recordMargin))`,
		`return Record{State: Aborted}, ctx.Err()`}}, inMerge, `A2_|A7_`},
	{"takeover of whatever row stands", []edit{{dynStore, `claimRow(claim), heldBy, row`,
		`claimRow(claim), guard{"attribute_exists(#token) OR #token = :held", heldBy.names}, row`}},
		inDynamo, `KeepsTheContract$`},
	{"lease written in seconds, read in milliseconds", []edit{{dynRows, `return t.Add(time.Millisecond - 1).UnixMilli()`,
		`return t.Add(time.Millisecond - 1).Unix()`}}, inDynamo, `KeepsTheContract$|Wire_`},
	{"lease compared the wrong way round", []edit{{"shared/merge/times.go", `return !now.Before(lease)`,
		`return now.Before(lease)`}}, inMerge, `A2_`},
	{"a claim of unknown outcome is forgotten", []edit{{"shared/merge/claim.go", `if !notApplied(err) {`,
		`if err == nil {`}}, inMerge, `B1_6|P7|Claim`},
	{"a claim past its ttl still counts", []edit{{contest, `&& now.Before(r.row.Expires):`, `&& r.pos >= 0:`}},
		inMerge, `A7_`},

	// Commits.
	{"success is told before the commit", []edit{{attempt, `(h == held || h == refused) && a.record.Counted(a.id(pos)):`,
		`h == held:`}}, inMerge, `P8|P9|B3_|C4_`},
	{"commit record without condition", []edit{aboutRecord}, inDynamo, `KeepsTheContract$`},
	{"idempotent by request token alone", []edit{aboutRecord, {dynCommit, `aws.String(rand.Text())`,
		`aws.String((string(a.Token) + rand.Text())[:len(a.Token)])`}}, inDynamo, `B2_`},
	{"exceptions are left out of the record", []edit{{commit, `except = append(except, a.id(pos))`, `_ = a.id(pos)`}},
		inMerge, `Except|Model|B1_6`},
	{"a conflict is taken for done", []edit{{dynCommit,
		`return merge.Record{}, fmt.Errorf("%s on table %s: %w", operationCommit, s.counters, met)`,
		`return merge.Record{State: merge.Committed}, nil`}}, inDynamo, `B3_`},
	{"less is committed after an unknown outcome", []edit{{commit, `if !maybe && a.drop(refusal) {`,
		`if a.drop(refusal) {`}}, inMerge, `C4_`},
	{"one identity twice in a batch counts twice", []edit{{"shared/merge/plan.go", `if !repeated {`,
		`if repeated = false; !repeated {`}}, inMerge, `Repeat|Plan|P3|Duplicate|Identity`},
	{"the record is forgotten before its claims", []edit{{attempt, `return a.expires.Add(recordMargin)`,
		`return a.expires.Add(-recordMargin)`}}, inMerge, `A7_|Record|Release`},
	{"the SDK's retries hide the first try", []edit{{"shared/dynamo/options.go", `{ o.Retryer = aws.NopRetryer{} }`,
		`{ o.Retryer = o.Retryer }`}}, inDynamo, `NeverRetries`},
	{"sums of 64 bits", []edit{{"shared/tally/sum.go", `Sum{hi: int64(hi), lo: lo}`,
		`Sum{hi: int64(lo) >> 63 &^ int64(hi&0), lo: lo}`}}, inTally, `Sum`},
	{"ttl in milliseconds", []edit{{dynRows, `return t.Unix() }`, `return t.UnixMilli() }`}}, inDynamo, `A7_|Wire_`},

	// Release and retries.
	{"release without the token", []edit{{dynStore, `aws.String(heldBy.expression),
		ExpressionAttributeNames:  heldBy.names,`, `aws.String(heldBy.expression + " OR attribute_exists(#token)"),
		ExpressionAttributeNames:  heldBy.names,`}}, inDynamo, `KeepsTheContract$`},
	{"claims are given back before the abort", []edit{{release, `if a.record.State == Undecided { // its`,
		`if a.record.State == Undecided && len(left) < 0 { // its`}}, inMerge, `Release|Abort|Contract`},
	{"release on a cancelled context", []edit{{release, `context.WithTimeout(context.WithoutCancel(ctx), budget)`,
		`context.WithTimeout(ctx, budget)`}}, inMerge, `P16|A8_`},
	{"release past the deadline", []edit{{release, `min(releaseBudget(n), time.Until(c.times.release))`,
		`max(releaseBudget(n), time.Until(c.times.release))`}}, inMerge, `B1_12|A8_`},
	{"a permanent error is tried again", []edit{{retry, `return !errors.Is(err, ErrPermanent) && `, `return `}},
		inMerge, `B3_`},
	{"jitter beyond the cap", []edit{{retry, `return time.Duration(draw(int64(ceiling) + 1))`,
		`return ceiling/2 + time.Duration(draw(int64(ceiling/2)+2))`}}, inMerge, `P26|Backoff`},

	// The position guard.
	{"<= for < in the position guard", []edit{{dynMark, `OR #p < :first`, `OR #p <= :first`}}, inDynamo, `Advance_`},
	{"what is computed from a mark is added to any", []edit{{dynMark, `aws.String("#p = :first")`,
		`aws.String("#p = :first OR attribute_exists(#p)")`}}, inDynamo, `Advance_`},
	{"a failed condition of the position guard is taken for done", []edit{{byMark, `if mark >= last {`,
		`if mark != "" || mark >= last {`}}, inMerge, `PositionGuard_`},
	{"positions compared as text of any length", []edit{{"shared/envelope/sequence.go",
		`return fmt.Sprintf("%03d%s", len(digits), digits)`, `return fmt.Sprintf("%.0d%s", 0, digits)`}},
		inEnvelope, `SequenceNumber_`},
	{"the position guard passes a record that failed", []edit{{ingest, `if ordered && in.held[in.record.Group] {`,
		`if ordered && fifo && in.held[in.record.Group] {`}}, inIngest, `Position_`},

	// Records and answers.
	{"a refused event is dropped silently", []edit{{fate, `worst = fate{bad, o.Err}`, `worst = fate{done, o.Err}`}},
		inIngest, `C4_`},
	{"a panic is swallowed as success", []edit{{fate, `*err = &merge.PanicError{Value: value, Stack: debug.Stack()}`,
		`_ = &merge.PanicError{Value: value, Stack: debug.Stack()}`}}, inIngest, `C2_|C7_`},
	{"a message passes a failed one of its group", []edit{{ingest, `if ordered && in.held[in.record.Group] {`,
		`if ordered && !fifo && in.held[in.record.Group] {`}}, inIngest, `FIFO_`},
	{"an answer with an empty name", []edit{{respond, ` || b.Records[i].ID == "" {`, ` {`}}, inEnvelope, `C1_`},
	{"the lowest failed record is not the first", []edit{{respond, `return SequenceNumber(x).Compare(SequenceNumber(y))`,
		`return SequenceNumber(y).Compare(SequenceNumber(x))`}}, inEnvelope, `C1_`},
	{"a member that stands twice is taken", []edit{{"shared/tally/rules/flat.go", `if bytes.Equal(before, name) {`,
		`if bytes.Equal(before, name) && f.n > maxFlat {`}}, inRules, `D6_|Flat_`},
	{"a fraction is cut to an integer", []edit{{"shared/tally/rules/number.go",
		`if n.digits() > 0 && n.power+int64(scale) < 0 {`, `if n.digits() > 99 && n.power+int64(scale) < 0 {`}},
		inRules, `D5_`},
}
