package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"abacus/shared/local/wire"
	"abacus/shared/merge"
)

func claimsNamed(token merge.Token, names ...string) []merge.Claim {
	claims := make([]merge.Claim, len(names))
	for i, name := range names {
		claims[i] = someClaim(token)
		claims[i].Event = name
	}
	return claims
}

func claimItem(event, token string, ttl int64) string {
	return fmt.Sprintf(`{"pk":{"S":"claim|%s"},"token":{"S":%q},"lease":{"N":"1767323045680"},"ttl":{"N":"%d"}}`,
		event, token, ttl)
}

const farOff = 9999999999

func TestPutClaims_ReadsTheErrorOfEachStatement(t *testing.T) {
	answers := []struct{ code, item, want string }{
		{"", "", "T"},
		{"DuplicateItem", claimItem("e1", "other", farOff), "other"},
		{"ConditionalCheckFailed", claimItem("e2", "T", farOff), "T"}, // our own, from a try whose reply was lost
		{"TransactionConflict", "", "conflict [] false"},
		{"ThrottlingError", "", "throttled"},
		{"ProvisionedThroughputExceeded", "", "throttled"},
		{"RequestLimitExceeded", "", "throttled"},
		{"ValidationError", "", "permanent"},
		{"ResourceNotFound", "", "permanent"},
		{"ItemCollectionSizeLimitExceeded", "", "permanent"},
		{"InternalServerError", "", "unknown"},
		{"Moonlight", "", "unknown"},
	}
	var responses, names []string
	for i, answer := range answers {
		names = append(names, fmt.Sprint("e", i))
		switch {
		case answer.code == "":
			responses = append(responses, `{}`)
		case answer.item == "":
			responses = append(responses, fmt.Sprintf(`{"Error":{"Code":%q,"Message":"m"}}`, answer.code))
		default:
			responses = append(responses, fmt.Sprintf(`{"Error":{"Code":%q,"Item":%s}}`, answer.code, answer.item))
		}
	}
	all := `{"Responses":[` + strings.Join(responses, ",") + `]}`
	s := &script{replies: map[string][]reply{operationBatch: {{body: all}}}}
	for i, got := range storeOn(t, scripted(t, s)).PutClaims(t.Context(), claimsNamed("T", names...)) {
		said := string(got.Standing.Token)
		if got.Err != nil {
			said = kindOf(got.Err)
		} else if got.Standing.Event != names[i] {
			t.Errorf("reply %d is on event %q", i, got.Standing.Event)
		}
		if said != answers[i].want {
			t.Errorf("%s: %s (%v), want %s", answers[i].code, said, got.Err, answers[i].want)
		}
	}
	if s.operations() != operationBatch {
		t.Errorf("requests %s", s.operations())
	}
}

// Where a duplicate's error lacks the row, it is read; one that is gone by then is an empty token.
func TestPutClaims_LooksUpTheRowOfADuplicate(t *testing.T) {
	duplicate := `{"Error":{"Code":"DuplicateItem"}}`
	s := &script{replies: map[string][]reply{
		operationBatch: {{body: `{"Responses":[` + duplicate + "," + duplicate + "," + duplicate + `]}`}},
		"BatchGetItem": {
			{body: `{"UnprocessedKeys":{"abacus-dedup":{"ConsistentRead":true,
				"Keys":[{"pk":{"S":"claim|b"}},{"pk":{"S":"claim|c"}}]}}}`},
			{body: `{"Responses":{"abacus-dedup":[` +
				claimItem("c", "T", farOff) + "," + claimItem("b", "other", farOff) + `]}}`},
		},
	}}
	store := storeOn(t, scripted(t, s))
	store.sleep = noSleep
	replies := store.PutClaims(t.Context(), claimsNamed("T", "a", "b", "c"))
	for i, want := range []merge.Token{"", "other", "T"} {
		if replies[i].Err != nil || replies[i].Standing.Token != want {
			t.Errorf("reply %d: %+v, want token %q", i, replies[i], want)
		}
	}
	if s.operations() != operationBatch+" BatchGetItem BatchGetItem" {
		t.Fatalf("requests %s", s.operations())
	}
	second, _ := json.Marshal(s.seen()[2].Body["RequestItems"])
	if text := string(second); strings.Contains(text, "claim|a") || !strings.Contains(text, `"ConsistentRead":true`) {
		t.Errorf("the second lookup asks for %s", text)
	}
}

func TestPutClaims_KeysLeftUnprocessedForGoodAreThrottled(t *testing.T) {
	s := &script{replies: map[string][]reply{
		operationBatch: {{body: `{"Responses":[{"Error":{"Code":"DuplicateItem"}}]}`}},
		"BatchGetItem": {{body: `{"UnprocessedKeys":{"abacus-dedup":{"Keys":[{"pk":{"S":"claim|a"}}]}}}`}},
	}}
	store := storeOn(t, scripted(t, s))
	var waits []time.Duration
	store.sleep = recordWaits(&waits)
	got := store.PutClaims(t.Context(), claimsNamed("T", "a"))[0]
	if kindOf(got.Err) != "throttled" || len(s.seen()) != 1+maxRounds {
		t.Errorf("%v after %d requests", got.Err, len(s.seen()))
	}
	checkWaits(t, waits)
}

// A put over a row past its ttl would hide an attempt that may yet commit, if a clock is wrong: the row is the answer,
// whichever way the claim is put, and no request goes with a condition on the ttl.
func TestPutClaims_RowPastItsTTLStandsLikeAnyOther(t *testing.T) {
	now := time.Unix(1767323045, 999e6)
	for _, ttl := range []int64{now.Unix() + 1, now.Unix(), 1} {
		item := claimItem("a", "old", ttl)
		for name, answers := range map[string]map[string][]reply{
			operationBatch: {operationBatch: {{body: `{"Responses":[{"Error":{"Code":"DuplicateItem","Item":` + item + `}}]}`}}},
			operationBatch + " BatchGetItem": {
				operationBatch: {{body: `{"Responses":[{"Error":{"Code":"DuplicateItem"}}]}`}},
				"BatchGetItem": {{body: `{"Responses":{"abacus-dedup":[` + item + `]}}`}},
			},
			"PutItem GetItem": {
				"PutItem": {refusalOf("ConditionalCheckFailedException", "")}, "GetItem": {{body: `{"Item":` + item + `}`}},
			},
		} {
			s := &script{replies: answers}
			o := scripted(t, s)
			o.Now, o.SingleClaims = func() time.Time { return now }, strings.HasPrefix(name, "PutItem")
			got := storeOn(t, o).PutClaims(t.Context(), claimsNamed("T", "a"))[0]
			if got.Err != nil || got.Standing.Token != "old" || got.Standing.Expires.Unix() != ttl || s.operations() != name {
				t.Errorf("ttl %d: %+v after %s, want the row after %s", ttl, got, s.operations(), name)
			}
			for _, request := range s.seen() {
				if condition, _ := request.Body["ConditionExpression"].(string); strings.Contains(condition, "ttl") {
					t.Errorf("%s if %s", request.Operation, condition)
				}
			}
		}
	}
}

// An endpoint without BatchExecuteStatement, or a role without its permission, is remembered.
func TestPutClaims_GoesOnOneByOne(t *testing.T) {
	for name, answer := range map[string]reply{
		"unknown operation": refusalOf("UnknownOperationException", ""),
		"access denied":     refusalOf("AccessDeniedException", ""),
		"statement denied": {body: `{"Responses":[` + strings.Repeat(`{"Error":{"Code":"AccessDenied","Message":"m"}},`, 2) +
			`{"Error":{"Code":"AccessDenied"}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{replies: map[string][]reply{operationBatch: {answer}}}
			store := storeOn(t, scripted(t, s))
			if !store.Batches() {
				t.Error("claims do not go in batches at first")
			}
			for range 2 {
				for i, got := range store.PutClaims(t.Context(), claimsNamed("T", "a", "b", "c")) {
					if got.Err != nil || got.Standing.Token != "T" {
						t.Errorf("reply %d: %+v", i, got)
					}
				}
			}
			if want := operationBatch + strings.Repeat(" PutItem", 6); s.operations() != want || store.Batches() {
				t.Errorf("requests %s, want %s", s.operations(), want)
			}
		})
	}
}

func TestPutClaims_DeniedAltogetherIsPermanent(t *testing.T) {
	denied := []reply{refusalOf("AccessDeniedException", "")}
	s := &script{replies: map[string][]reply{operationBatch: denied, "PutItem": denied}}
	got := storeOn(t, scripted(t, s)).PutClaims(t.Context(), claimsNamed("T", "a"))[0]
	if kindOf(got.Err) != "permanent" || !strings.Contains(got.Err.Error(), "grant") {
		t.Errorf("%v", got.Err)
	}
}

func TestPutClaims_AnswersThatDoNotMatchTheStatementsAreUnknown(t *testing.T) {
	s := &script{replies: map[string][]reply{operationBatch: {{body: `{"Responses":[{}]}`}}}}
	for _, got := range storeOn(t, scripted(t, s)).PutClaims(t.Context(), claimsNamed("T", "a", "b")) {
		if kindOf(got.Err) != "unknown" || got.Standing.Token != "" {
			t.Errorf("%+v", got)
		}
	}
}

// Batches are cut at the limit of 25, and exactly as many are in flight as was asked for.
func TestPutClaims_BatchesAreBounded(t *testing.T) {
	const parallel, batches = 3, 9
	sky, client := stormyStandIn(t)
	var mu sync.Mutex
	var inFlight, most, requests int
	met := make(chan struct{}) // closed once so many requests are in flight together
	o := optionsFor(client)
	o.Parallel = parallel
	o.Meter = func(Usage) {
		mu.Lock()
		defer mu.Unlock()
		inFlight--
	}
	sky.turn(func(call wire.Call) wire.Fault {
		if n := len(statementsOf(t, call.Body)); n > maxStatements {
			t.Errorf("%d statements", n)
		}
		mu.Lock()
		requests++
		inFlight++
		most = max(most, inFlight)
		mine := met
		if requests%parallel == 0 {
			close(met)
			met = make(chan struct{})
		}
		mu.Unlock()
		select {
		case <-mine:
		case <-t.Context().Done():
		}
		return wire.Fault{}
	})
	names := make([]string, batches*maxStatements)
	for i := range names {
		names[i] = fmt.Sprint("e", i)
	}
	for i, got := range storeOn(t, o).PutClaims(t.Context(), claimsNamed("T", names...)) {
		if got.Err != nil || got.Standing.Event != names[i] {
			t.Fatalf("reply %d: %+v", i, got)
		}
	}
	if most != parallel || requests != batches {
		t.Errorf("%d in flight at most, %d requests; want %d and %d", most, requests, parallel, batches)
	}
}

func statementsOf(t *testing.T, body []byte) []any {
	t.Helper()
	var request struct{ Statements []any }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	return request.Statements
}

func TestPutClaims_MalformedRowInTheWayIsPermanentAndNamesTheAttribute(t *testing.T) {
	for want, item := range map[string]string{
		`"token" is not a string`: `{"pk":{"S":"claim|customer-4711"},"token":{"N":"1"},"lease":{"N":"1"},"ttl":{"N":"1"}}`,
		`"lease" is not a number`: `{"pk":{"S":"claim|customer-4711"},"token":{"S":"o"},"lease":{"S":"1"},"ttl":{"N":"1"}}`,
		`"ttl" is not a whole`:    `{"pk":{"S":"claim|customer-4711"},"token":{"S":"o"},"lease":{"N":"1"},"ttl":{"N":"1.5"}}`,
		`"source" is not`:         `{"token":{"S":"o"},"lease":{"N":"1"},"ttl":{"N":"1"},"source":{"N":"1"}}`,
	} {
		s := &script{replies: map[string][]reply{
			operationBatch: {{body: `{"Responses":[{"Error":{"Code":"DuplicateItem","Item":` + item + `}}]}`}},
		}}
		err := storeOn(t, scripted(t, s)).PutClaims(t.Context(), []merge.Claim{someClaim("T")})[0].Err
		if kindOf(err) != "permanent" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		private(t, err)
	}
}

func TestRecord_MalformedRowIsPermanent(t *testing.T) {
	for _, item := range []string{
		`{"pk":{"S":"x"}}`, `{"state":{"N":"1"}}`, `{"state":{"S":"maybe"}}`,
		`{"state":{"S":"committed"},"except":{"S":"claim|a"}}`,
		`{"state":{"S":"committed"},"except":{"SS":["a"]}}`, `{"state":{"S":"committed"},"except":{"SS":["bytes|zz"]}}`,
	} {
		s := &script{replies: map[string][]reply{"GetItem": {{body: `{"Item":` + item + `}`}}}}
		record, err := storeOn(t, scripted(t, s)).FindRecord(t.Context(), secretToken)
		if kindOf(err) != "permanent" || record.State != merge.Undecided {
			t.Errorf("%s: %+v, %v", item, record, err)
		}
		private(t, err)
	}
}

// A failed condition without its item is no answer: the row is read.
func TestPutIf_ReadsTheRowWhereTheErrorLacksIt(t *testing.T) {
	for found, want := range map[string]merge.Token{
		"": "",
		`"Item":` + claimItem("customer-4711", "T", farOff):     "T",
		`"Item":` + claimItem("customer-4711", "other", farOff): "other",
	} {
		s := &script{replies: map[string][]reply{
			"PutItem": {refusalOf("ConditionalCheckFailedException", "")}, "GetItem": {{body: "{" + found + "}"}},
		}}
		got, err := storeOn(t, scripted(t, s)).TakeClaim(t.Context(), someClaim("T"), "old")
		if err != nil || got.Token != want || s.operations() != "PutItem GetItem" {
			t.Errorf("%+v, %v after %s", got, err, s.operations())
		}
	}
}

func TestRelease_FailedConditionIsASuccess(t *testing.T) {
	s := &script{replies: map[string][]reply{"DeleteItem": {refusalOf("ConditionalCheckFailedException", "")}}}
	if err := storeOn(t, scripted(t, s)).Release(t.Context(), secretID, "T"); err != nil {
		t.Error(err)
	}
}

func TestPutClaims_OneFailedBatchLeavesTheOthers(t *testing.T) {
	sky, client := stormyStandIn(t)
	sky.turn(func(call wire.Call) wire.Fault {
		if strings.Contains(string(call.Body), "claim|e30") {
			return wire.Fault{Before: errors.New("down")}
		}
		return wire.Fault{}
	})
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprint("e", i))
	}
	for i, got := range storeOn(t, optionsFor(client)).PutClaims(t.Context(), claimsNamed("T", names...)) {
		if failed := i >= 25 && i < 50; (got.Err != nil) != failed {
			t.Errorf("reply %d: %+v", i, got)
		}
	}
}

func TestPutClaims_OnAContextThatIsDoneSendsNothing(t *testing.T) {
	for _, single := range []bool{false, true} {
		s := &script{}
		o := scripted(t, s)
		o.SingleClaims = single
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, got := range storeOn(t, o).PutClaims(ctx, claimsNamed("T", "a", "b")) {
			if !errors.Is(got.Err, context.Canceled) || got.Standing.Token != "" {
				t.Errorf("%+v", got)
			}
		}
		if len(s.seen()) > 0 {
			t.Errorf("requests %s", s.operations())
		}
	}
}
