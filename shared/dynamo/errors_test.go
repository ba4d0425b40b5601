package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// kindOf says which of merge.Store's promises an error makes.
func kindOf(err error) string {
	var contended *merge.ConflictError
	var refused *merge.RefusedError
	var kinds []string
	if errors.As(err, &contended) {
		kinds = append(kinds, fmt.Sprintf("conflict %v %t", contended.Adds, contended.Record))
	}
	if errors.As(err, &refused) {
		kinds = append(kinds, fmt.Sprintf("refused %v", refused.Adds))
	}
	if errors.Is(err, merge.ErrThrottled) {
		kinds = append(kinds, "throttled")
	}
	if errors.Is(err, merge.ErrPermanent) {
		kinds = append(kinds, "permanent")
	}
	if err != nil && kinds == nil {
		return "unknown"
	}
	return strings.Join(kinds, ", ")
}

const secretID, secretToken = "customer-4711", "T0KEN"

// private fails where an error tells what must stay out of logs.
func private(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{secretID, secretToken, "secret"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells %q: %v", secret, err)
		}
	}
}

func someClaim(token merge.Token) merge.Claim {
	now := time.Now()
	return merge.Claim{Event: secretID, Token: token, Lease: now.Add(time.Minute), Expires: now.Add(time.Hour)}
}

func someAttempt(n int) merge.Attempt {
	a := merge.Attempt{Token: secretToken, Expires: time.Now().Add(2 * time.Hour)}
	for i := range n {
		a.Adds = append(a.Adds, merge.SlottedAdd{
			Cell: tally.Cell{Counter: "c", Key: fmt.Sprint("k", i), Window: "all"}, Delta: tally.SumOf(1),
		})
	}
	return a
}

// methods calls every method of a Store once and returns its error.
var methods = map[string]func(context.Context, *Store) error{
	"BatchExecuteStatement": func(ctx context.Context, s *Store) error {
		return s.PutClaims(ctx, []merge.Claim{someClaim(secretToken)})[0].Err
	},
	"PutItem": func(ctx context.Context, s *Store) error {
		_, err := s.TakeClaim(ctx, someClaim(secretToken), "old")
		return err
	},
	"GetItem": func(ctx context.Context, s *Store) error {
		_, err := s.FindRecord(ctx, secretToken)
		return err
	},
	"TransactWriteItems": func(ctx context.Context, s *Store) error {
		_, err := s.Commit(ctx, someAttempt(1))
		return err
	},
	"DeleteItem": func(ctx context.Context, s *Store) error { return s.Release(ctx, secretID, secretToken) },
}

func TestErrors_EachAnswerKeepsItsPromise(t *testing.T) {
	tests := []struct {
		name  string
		reply reply
		want  string
		says  string
	}{
		{"provisioned throughput", refusalOf("ProvisionedThroughputExceededException", ""), "throttled", "capacity"},
		{"throttling", refusalOf("ThrottlingException", ""), "throttled", "capacity"},
		{"request limit", refusalOf("RequestLimitExceeded", ""), "throttled", "capacity"},
		{"conflict", refusalOf("TransactionConflictException", ""), "conflict [] false", "try again"},
		{"no table", refusalOf("ResourceNotFoundException", ""), "permanent", "check the table's name"},
		{"expired credentials", refusalOf("ExpiredTokenException", ""), "permanent", "renew the credentials"},
		{"unknown client", refusalOf("UnrecognizedClientException", ""), "permanent", "check the credentials"},
		{"validation", refusalOf("ValidationException", ""), "permanent", "key schema"},
		{"item collection", refusalOf("ItemCollectionSizeLimitExceededException", ""), "permanent", "check the deployment"},
		{"signature, after a thaw", refusalOf("InvalidSignatureException", ""), "unknown", "unknown"},
		{"mismatch", refusalOf("IdempotentParameterMismatchException", ""), "unknown", "unknown"},
		{"in progress", refusalOf("TransactionInProgressException", ""), "unknown", "unknown"},
		{"limit of another API", refusalOf("LimitExceededException", ""), "unknown", "unknown"},
		{"HTTP 500", reply{status: 500, body: `{"__type":"x#InternalServerError","message":"m"}`}, "unknown", "unknown"},
		{"HTTP 503", reply{status: 503, body: `{"__type":"x#ServiceUnavailable"}`}, "unknown", "unknown"},
		{"HTTP 502 of a proxy", reply{status: 502, body: `<html>bad gateway</html>`}, "unknown", "unknown"},
		{"connection cut", reply{cut: true}, "unknown", "unknown"},
		{"answer cut", reply{body: `{"Responses":`}, "unknown", "unknown"},
		{"no answer", reply{hang: true}, "unknown", "no answer in time"},
	}
	for _, test := range tests {
		for operation, call := range methods {
			t.Run(test.name+"/"+operation, func(t *testing.T) {
				s := &script{replies: map[string][]reply{operation: {test.reply}}}
				o := scripted(t, s)
				if test.reply.hang {
					o.CallTimeout = 50 * time.Millisecond
				}
				err := call(t.Context(), storeOn(t, o))
				if got := kindOf(err); got != test.want || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: %v\nwant %s and %q", got, err, test.want, test.says)
				}
				if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("%v passes for the end of the caller's context", err)
				}
				private(t, err)
				if s.operations() != operation {
					t.Errorf("requests %s, want one", s.operations())
				}
			})
		}
	}
}

func TestErrors_DeniedAndUnknownOperationsArePermanent(t *testing.T) {
	for operation, call := range methods {
		if operation == operationBatch {
			continue // has another way: TestPutClaims_GoesOnOneByOne
		}
		for code, says := range map[string]string{
			"AccessDeniedException": "grant the function's role", "UnknownOperationException": "check that the endpoint",
		} {
			s := &script{replies: map[string][]reply{operation: {refusalOf(code, "")}}}
			err := call(t.Context(), storeOn(t, scripted(t, s)))
			if kindOf(err) != "permanent" || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", operation, err)
			}
		}
	}
}

func TestErrors_EndOfTheCallersContextSaysSo(t *testing.T) {
	for operation, call := range methods {
		s := &script{replies: map[string][]reply{operation: {{hang: true}}}}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := call(ctx, storeOn(t, scripted(t, s)))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || kindOf(err) != "unknown" {
			t.Errorf("%s: %v", operation, err)
		}
	}
}

// reasons are one answer of TransactWriteItems: a code for each action, the record's first.
func reasons(items map[int]string, codes ...string) reply {
	parts := make([]string, len(codes))
	for i, code := range codes {
		parts[i] = fmt.Sprintf(`{"Code":%q,"Message":"m"`, code)
		if item := items[i]; item != "" {
			parts[i] += `,"Item":` + item
		}
		parts[i] += "}"
	}
	return refusalOf("TransactionCanceledException", `"CancellationReasons":[`+strings.Join(parts, ",")+"]")
}

const (
	committedRow = `{"pk":{"S":"commit|T0KEN"},"state":{"S":"committed"},"except":{"SS":["claim|e1"]},
		"ttl":{"N":"9999999999"}}`
	abortedRow = `{"pk":{"S":"commit|T0KEN"},"state":{"S":"aborted"},"ttl":{"N":"9999999999"}}`
)

// Case B3: which reasons of a cancelled transaction mean what.
func TestB3_EachReasonOfACancelledTransaction(t *testing.T) {
	const none, failed, met = "None", "ConditionalCheckFailed", "TransactionConflict"
	const full, bad = "ThrottlingError", "ValidationError"
	standing := map[int]string{0: committedRow}
	tests := []struct {
		name  string
		reply reply
		found string // what GetItem then finds of the record
		state merge.State
		want  string
		asked string
	}{
		{"conflict on an add", reasons(nil, none, met, none), "", 0, "conflict [0] false", ""},
		{"conflict on all adds", reasons(nil, none, met, met), "", 0, "conflict [0 1] false", ""},
		{"conflict on the record", reasons(nil, met, none, none), "", 0, "conflict [] true", ""},
		{"conflict on both", reasons(nil, met, none, met), "", 0, "conflict [1] true", ""},
		{"committed before", reasons(standing, failed, none, none), "", merge.Committed, "", ""},
		{"aborted", reasons(map[int]string{0: abortedRow}, failed, none, none), "", merge.Aborted, "", ""},
		{"committed before, and a conflict", reasons(standing, failed, met, none), "", merge.Committed, "", ""},
		{"condition without the item", reasons(nil, failed, none, none), committedRow, merge.Committed, "", "GetItem"},
		{"condition without the item, a conflict", reasons(nil, failed, met, none), abortedRow, merge.Aborted, "", "GetItem"},
		{"condition, and then no record", reasons(nil, failed, met, none), "", 0, "conflict [] true", "GetItem"},
		{"throttled add", reasons(nil, none, full, none), "", 0, "throttled", ""},
		{"throttled record", reasons(nil, "ProvisionedThroughputExceeded", none, none), "", 0, "throttled", ""},
		{"conflict and throttle", reasons(nil, none, met, full), "", 0, "conflict [0] false, throttled", ""},
		{"record's conflict and throttle", reasons(nil, met, full, none), "", 0, "conflict [] true, throttled", ""},
		{"add refused", reasons(nil, none, bad, none), "", 0, "refused [0]", ""},
		{"adds refused", reasons(nil, none, bad, bad), "", 0, "refused [0 1]", ""},
		{"add refused, and a conflict", reasons(nil, met, met, bad), "", 0, "refused [1]", ""},
		{"record refused", reasons(nil, bad, none, none), "", 0, "permanent", ""},
		{"no reason at all", reasons(nil, none, none, none), "", 0, "unknown", ""},
		{"a reason that nobody knows", reasons(nil, none, "Moonlight", met), "", 0, "unknown", ""},
		{"condition of an add, which has none", reasons(nil, none, failed, none), "", 0, "unknown", ""},
		{"too few reasons", reasons(nil, none, met), "", 0, "unknown", ""},
		{"the whole request is invalid", refusalOf("ValidationException", ""), "", 0, "permanent", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &script{replies: map[string][]reply{operationCommit: {test.reply}}}
			if test.found != "" {
				s.replies["GetItem"] = []reply{{body: `{"Item":` + test.found + `}`}}
			}
			record, err := storeOn(t, scripted(t, s)).Commit(t.Context(), someAttempt(2))
			if kindOf(err) != test.want || record.State != test.state {
				t.Errorf("%+v, %s: %v; want state %d, %s", record, kindOf(err), err, test.state, test.want)
			}
			if record.State == merge.Committed && !slices.Equal(record.Except, []string{"e1"}) {
				t.Errorf("exceptions %q", record.Except)
			}
			if want := strings.TrimSpace(operationCommit + " " + test.asked); s.operations() != want {
				t.Errorf("requests %s, want %s", s.operations(), want)
			}
			private(t, err)
		})
	}
}

func TestErrors_RefusalSaysWhatToMend(t *testing.T) {
	s := &script{replies: map[string][]reply{operationCommit: {reasons(nil, "None", "ValidationError")}}}
	_, err := storeOn(t, scripted(t, s)).Commit(t.Context(), someAttempt(1))
	if err == nil || !strings.Contains(err.Error(), "ValidationError: m; mend the counter's row") {
		t.Errorf("%v", err)
	}
}

// A row that no key can name is refused before DynamoDB refuses the whole transaction for it without naming it.
func TestCommit_AddsThatNoRowCanTakeAreRefusedByName(t *testing.T) {
	s := &script{}
	a := someAttempt(2)
	wide, _ := tally.ParseSum("100000000000000000000000000000000000001") // 39 digits
	cell := func(change func(*tally.Cell)) merge.SlottedAdd {
		add := a.Adds[0]
		change(&add.Cell)
		return add
	}
	for name, bad := range map[string]merge.SlottedAdd{
		"partition key": cell(func(c *tally.Cell) { c.Key = strings.Repeat("x", maxPartitionKey-len("c|")+1) }),
		"sort key":      cell(func(c *tally.Cell) { c.Window = strings.Repeat("w", maxSortKey); c.Bucket = 3600 }),
		"empty key":     cell(func(c *tally.Cell) { c.Key = "" }),
		"not UTF-8":     cell(func(c *tally.Cell) { c.Key = "\xff" }),
		"year 10000":    cell(func(c *tally.Cell) { c.Window, c.Bucket = "1h", 253402300800 }),
		"delta":         {Cell: a.Adds[0].Cell, Delta: wide},
	} {
		t.Run(name, func(t *testing.T) {
			with := a
			with.Adds = []merge.SlottedAdd{a.Adds[0], bad, a.Adds[1]}
			_, err := storeOn(t, scripted(t, s)).Commit(t.Context(), with)
			if kindOf(err) != "refused [1]" {
				t.Errorf("%v", err)
			}
		})
	}
	if s.operations() != "" {
		t.Errorf("requests %s", s.operations())
	}
	a.Adds[0].Cell.Key = strings.Repeat("x", maxPartitionKey-len("c|"))
	a.Adds[1].Cell.Window, a.Adds[1].Cell.Bucket = "1h", 253402300799
	if _, err := storeOn(t, scripted(t, s)).Commit(t.Context(), a); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

func TestAbort_ContendedByItsOwnCommitIsAConflictOnTheRecord(t *testing.T) {
	s := &script{replies: map[string][]reply{"PutItem": {refusalOf("TransactionConflictException", "")}}}
	_, err := storeOn(t, scripted(t, s)).Abort(t.Context(), secretToken, time.Now())
	if kindOf(err) != "conflict [] true" {
		t.Errorf("%v", err)
	}
}

func TestFailure_AnAnswerCountsThoughTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := failure(ctx, "PutItem", dedupName, &types.ProvisionedThroughputExceededException{})
	if kindOf(err) != "throttled" {
		t.Errorf("%v", err)
	}
}

// An answer after tries that nobody saw says nothing of those tries: case B5, with the SDK's own retries on.
func TestClassify_TheLastOfSeveralTriesPromisesNothing(t *testing.T) {
	throttle := &types.ProvisionedThroughputExceededException{}
	for _, test := range []struct {
		err  error
		want class
	}{
		{throttle, throttled},
		{&retry.MaxAttemptsError{Attempt: 1, Err: throttle}, throttled},
		{&retry.MaxAttemptsError{Attempt: 2, Err: throttle}, unknown},
		{errors.Join(throttle, ratelimit.QuotaExceededError{}), unknown},
		{fmt.Errorf("failed to get rate limit token, %w", ratelimit.QuotaExceededError{}), unknown},
		{&smithy.GenericAPIError{Code: "Moonlight"}, unknown},
		{errors.New("read: connection reset by peer"), unknown},
		{smithy.InvalidParamsError{}, permanent},
		{&types.DuplicateItemException{}, condition},
	} {
		if got := classify(test.err); got != test.want {
			t.Errorf("%v is of class %d, want %d", test.err, got, test.want)
		}
	}
}

func TestAbort_RecordThatIsGoneAgainDecidesNothing(t *testing.T) {
	for found, want := range map[string]merge.State{
		"": merge.Undecided, `"Item":` + committedRow: merge.Committed, `"Item":` + abortedRow: merge.Aborted,
	} {
		s := &script{replies: map[string][]reply{
			"PutItem": {refusalOf("ConditionalCheckFailedException", "")}, "GetItem": {{body: "{" + found + "}"}},
		}}
		record, err := storeOn(t, scripted(t, s)).Abort(t.Context(), secretToken, time.Now())
		if record.State != want || (err == nil) != (want != merge.Undecided) {
			t.Errorf("%+v, %v; want state %d", record, err, want)
		}
		if err != nil && kindOf(err) != "conflict [] true" {
			t.Errorf("%v", err)
		}
	}
}
