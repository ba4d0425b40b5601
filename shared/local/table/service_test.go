package table_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/local/table"
	"abacus/shared/local/wire"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestFault_FailBeforeAfterAndLost(t *testing.T) {
	s, c := start(t, table.Config{})
	makeTable(t, c, "tab", false)
	throttled := wire.Errorf("ProvisionedThroughputExceededException", "slow down")
	for name, f := range map[string]struct {
		fault wire.Fault
		code  string // "" where the connection is cut
		n     string
	}{
		"before": {wire.Fault{Before: throttled}, throttled.Code, ""},
		"after":  {wire.Fault{After: throttled}, throttled.Code, "1"},
		"lost":   {wire.Fault{Lose: true}, "", "1"},
		"refuse": {wire.Fault{Refuse: true}, "", ""},
	} {
		s.Inject(func(call wire.Call) wire.Fault {
			if call.Name == "UpdateItem" {
				return f.fault
			}
			return wire.Fault{}
		})
		err := update(c, addTo("tab", name, "1"))
		if err == nil || f.code != "" && codeOf(err) != f.code {
			t.Errorf("%s: %v, want %q", name, err, f.code)
		}
		s.Inject(nil)
		if n := numberIn(get(t, c, "tab", attrs{"pk": str(name)}), "n"); n != f.n {
			t.Errorf("%s: n = %q, want %q", name, n, f.n)
		}
	}
}

func TestFault_CanceledTellsItsReasonsInOrder(t *testing.T) {
	s, c := start(t, table.Config{})
	makeTable(t, c, "tab", false)
	s.Inject(func(call wire.Call) wire.Fault {
		if call.Name == "TransactWriteItems" {
			return wire.Fault{Before: table.Canceled("None", "TransactionConflict", "ThrottlingError")}
		}
		return wire.Fault{}
	})
	err := transact(c, "", addTo("tab", "a", "1"), addTo("tab", "b", "1"), addTo("tab", "c", "1"))
	if reasonsOf(err) != "None TransactionConflict ThrottlingError" {
		t.Errorf("reasons: %v", err)
	}
	if item := get(t, c, "tab", attrs{"pk": str("a")}); item != nil {
		t.Errorf("the cancelled transaction left %v", item)
	}
}

func TestPart_SomeOfABatchStaysUnprocessed(t *testing.T) {
	busy := wire.Errorf("ProvisionedThroughputExceededException", "slow down")
	_, c := start(t, table.Config{Part: func(p table.Part) table.PartFault {
		switch p.Index {
		case 1:
			return table.PartFault{Before: busy}
		case 2:
			return table.PartFault{After: busy}
		}
		return table.PartFault{}
	}})
	makeTable(t, c, "tab", false)
	var writes []types.WriteRequest
	var keys []map[string]types.AttributeValue
	var inserts []types.BatchStatementRequest
	for i := range 4 {
		key := attrs{"pk": str(fmt.Sprint(i))}
		keys = append(keys, key)
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key}})
		inserts = append(inserts, types.BatchStatementRequest{Statement: aws.String(`INSERT INTO "tab" VALUE {'pk':?}`),
			Parameters: []types.AttributeValue{str(fmt.Sprint("i", i))}})
	}
	written, err := c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"tab": writes}})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, w := range written.UnprocessedItems["tab"] {
		left = append(left, w.PutRequest.Item["pk"].(*types.AttributeValueMemberS).Value)
	}
	if !slices.Equal(left, []string{"1", "2"}) {
		t.Errorf("unprocessed writes: %q", left)
	}
	if get(t, c, "tab", keys[1]) != nil || get(t, c, "tab", keys[2]) == nil {
		t.Error("a part failed before is there, or one failed after is not")
	}
	read, err := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"tab": {Keys: keys, ConsistentRead: aws.Bool(true)}}})
	if err != nil {
		t.Fatal(err)
	}
	again := read.UnprocessedKeys["tab"]
	if len(read.Responses["tab"]) != 2 || len(again.Keys) != 2 || !*again.ConsistentRead {
		t.Errorf("%d read, %d unprocessed", len(read.Responses["tab"]), len(again.Keys))
	}
	done, err := c.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: inserts})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range done.Responses {
		failed := r.Error != nil && r.Error.Code == types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded
		there := get(t, c, "tab", attrs{"pk": str(fmt.Sprint("i", i))}) != nil
		if failed != (i == 1 || i == 2) || there != (i != 1) {
			t.Errorf("statement %d: failed %t, there %t", i, failed, there)
		}
	}
}

func TestStatement_DuplicateShowsItsItemOnlyByOption(t *testing.T) {
	for _, shows := range []bool{false, true} {
		_, c := start(t, table.Config{DuplicateShowsItem: shows})
		makeTable(t, c, "tab", false)
		put(t, c, "tab", attrs{"pk": str("a"), "n": num("1")})
		out, err := c.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
			{Statement: aws.String(`INSERT INTO "tab" VALUE {'pk':'a'}`), ReturnValuesOnConditionCheckFailure: "ALL_OLD"}}})
		if err != nil {
			t.Fatal(err)
		}
		if e := out.Responses[0].Error; e == nil || e.Code != "DuplicateItem" || (e.Item != nil) != shows {
			t.Errorf("option %t: %+v", shows, e)
		}
	}
}

func TestTTL_ExpiredItemsStayUntilTheSweep(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var changes []table.Change
	s, c := start(t, table.Config{Now: func() time.Time { return now }, Changed: func(ch table.Change) { changes = append(changes, ch) }})
	makeTable(t, c, "tab", false)
	makeTable(t, c, "other", false)
	_, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("tab"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) types.AttributeValue { return num(fmt.Sprint(now.Add(d).Unix())) }
	stays := map[string]types.AttributeValue{"now": at(0), "later": at(time.Second), "text": str(fmt.Sprint(now.Unix() - 5)),
		"ancient": at(-6 * 365 * 24 * time.Hour), "milliseconds": num(fmt.Sprint(now.UnixMilli()))}
	goes := map[string]types.AttributeValue{"past": at(-time.Second), "fraction": num(fmt.Sprint(now.Unix()-10) + ".5")}
	for _, group := range []map[string]types.AttributeValue{stays, goes} {
		for pk, ttl := range group {
			put(t, c, "tab", attrs{"pk": str(pk), "ttl": ttl})
		}
	}
	put(t, c, "tab", attrs{"pk": str("none")})
	put(t, c, "other", attrs{"pk": str("past"), "ttl": at(-time.Hour)})
	if get(t, c, "tab", attrs{"pk": str("past")}) == nil {
		t.Error("an expired item is gone before the sweep")
	}
	used := s.Used()
	changes = nil
	if n := s.Expire(); n != len(goes) {
		t.Errorf("%d expired, want %d", n, len(goes))
	}
	if s.Used() != used {
		t.Error("the sweep consumed capacity")
	}
	for _, ch := range changes {
		if !ch.Expired || ch.New != nil || ch.Table != "tab" {
			t.Errorf("change %+v", ch)
		}
	}
	for pk := range stays {
		if get(t, c, "tab", attrs{"pk": str(pk)}) == nil {
			t.Errorf("%s is gone", pk)
		}
	}
	for pk := range goes {
		if get(t, c, "tab", attrs{"pk": str(pk)}) != nil {
			t.Errorf("%s is still there", pk)
		}
	}
	if get(t, c, "other", attrs{"pk": str("past")}) == nil {
		t.Error("a table without TTL lost an item")
	}
}

// The hook for a stream learns of every change once, in the order of commits, and of nothing else.
func TestChanged_EveryChangeInCommitOrder(t *testing.T) {
	var changes []string
	_, c := start(t, table.Config{Changed: func(ch table.Change) {
		show := func(i table.Item) string {
			text, _ := i.MarshalJSON()
			return string(text)
		}
		line := "+"
		switch {
		case ch.Old == nil:
			line = "insert " + show(ch.New)
		case ch.New == nil:
			line = "remove " + show(ch.Old)
		default:
			line = "modify " + show(ch.Old) + " " + show(ch.New)
		}
		changes = append(changes, line)
	}})
	makeTable(t, c, "tab", false)
	put(t, c, "tab", attrs{"pk": str("a"), "n": num("1")})
	put(t, c, "tab", attrs{"pk": str("a"), "n": num("1.0")}) // the same
	if err := transact(c, "", addTo("tab", "a", "2"), addTo("tab", "b", "5")); err != nil {
		t.Fatal(err)
	}
	if err := transact(c, "", addTo("tab", "a", "0")); err != nil { // the same
		t.Fatal(err)
	}
	_, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("tab"), Key: attrs{"pk": str("a")}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("tab"), Key: attrs{"pk": str("a")}}) // nothing
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`insert {"n":{"N":"1"},"pk":{"S":"a"}}`, `modify {"n":{"N":"1"},"pk":{"S":"a"}} {"n":{"N":"3"},"pk":{"S":"a"}}`,
		`insert {"n":{"N":"5"},"pk":{"S":"b"}}`, `remove {"n":{"N":"3"},"pk":{"S":"a"}}`,
	}
	if !slices.Equal(changes, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(changes, "\n"), strings.Join(want, "\n"))
	}
}

// Used counts what a response cannot tell: failed conditions and cancelled transactions cost as if they had succeeded.
func TestUsed_CountsFailedWrites(t *testing.T) {
	s, c := start(t, table.Config{})
	makeTable(t, c, "tab", false)
	put(t, c, "tab", attrs{"pk": str("big"), "x": str(strings.Repeat("x", 1500))})
	absent := aws.String("attribute_not_exists(pk)")
	for name, step := range map[string]struct {
		write float64
		do    func() error
	}{
		"a failed put over 2 KB": {2, func() error {
			_, err := c.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("tab"), Item: attrs{"pk": str("big")}, ConditionExpression: absent})
			return err
		}},
		"a cancelled transaction": {6, func() error {
			_, err := c.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: aws.String("tab"), Item: attrs{"pk": str("big")}, ConditionExpression: absent}}, {Update: addTo("tab", "n", "1")}}})
			return err
		}},
		"a refused request": {0, func() error {
			return update(c, &types.Update{TableName: aws.String("tab"), Key: attrs{"pk": str("a")}, UpdateExpression: aws.String("ADD")})
		}},
	} {
		before := s.Used()
		if err := step.do(); err == nil {
			t.Errorf("%s succeeded", name)
		}
		if got := s.Used().Write - before.Write; got != step.write {
			t.Errorf("%s took %g, want %g", name, got, step.write)
		}
	}
}

func TestTable_IsNotUsableWhileItIsMade(t *testing.T) {
	var later atomic.Int64
	begin := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	_, c := start(t, table.Config{Creating: time.Minute, Now: func() time.Time { return begin.Add(time.Duration(later.Load())) }})
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("tab"), BillingMode: "PAY_PER_REQUEST",
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		wait   time.Duration
		status types.TableStatus
		code   string
	}{{0, "CREATING", "ResourceNotFoundException"}, {time.Minute - 1, "CREATING", "ResourceNotFoundException"}, {1, "ACTIVE", ""}} {
		later.Add(int64(step.wait))
		out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("tab")})
		if err != nil || out.Table.TableStatus != step.status {
			t.Errorf("%s later: %v, want %s", step.wait, err, step.status)
		}
		_, err = c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("tab"), Key: attrs{"pk": str("a")}})
		if codeOf(err) != step.code {
			t.Errorf("%s later: GetItem answers %v, want %q", step.wait, err, step.code)
		}
	}
}

func TestTable_ProtectedFromDeletion(t *testing.T) {
	_, c := start(t, table.Config{})
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("kept"), BillingMode: "PAY_PER_REQUEST", DeletionProtectionEnabled: aws.Bool(true),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("kept")})
	if codeOf(err) != "ValidationException" {
		t.Errorf("DeleteTable: %v", err)
	}
	if out, err := c.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil || !slices.Equal(out.TableNames, []string{"kept"}) {
		t.Errorf("ListTables: %v", err)
	}
}

// A parallel scan's segments have every item once between them, and its pages too.
func TestScan_SegmentsAndPagesHaveEachItemOnce(t *testing.T) {
	_, c := start(t, table.Config{})
	makeTable(t, c, "tab", true)
	want := 0
	for i := range 40 {
		for j := range i % 3 {
			put(t, c, "tab", attrs{"pk": str(fmt.Sprint(i)), "sk": str(fmt.Sprint(j))})
			want++
		}
	}
	for _, segments := range []int32{1, 3, 7} {
		seen := make(map[string]int)
		for segment := range segments {
			pages := dynamodb.NewScanPaginator(c, &dynamodb.ScanInput{TableName: aws.String("tab"), Segment: &segment, TotalSegments: &segments, Limit: aws.Int32(4)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range page.Items {
					seen[fmt.Sprint(item["pk"].(*types.AttributeValueMemberS).Value, "/", item["sk"].(*types.AttributeValueMemberS).Value)]++
				}
			}
		}
		if len(seen) != want {
			t.Errorf("%d segments: %d items, want %d", segments, len(seen), want)
		}
		for key, n := range seen {
			if n != 1 {
				t.Errorf("%d segments: %s appears %d times", segments, key, n)
			}
		}
	}
}

func TestLatency_DelaysEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := table.New(table.Config{Latency: 5 * time.Millisecond})
		begin := time.Now()
		var all sync.WaitGroup
		for range 10 { // outside of any lock: together they take no longer than one
			all.Go(func() {
				req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`))
				req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, req); w.Code != 200 {
					t.Error(w.Body)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took != 5*time.Millisecond {
			t.Errorf("ten calls took %s", took)
		}
	})
}

func TestErrors_AreTheSDKsOwnTypes(t *testing.T) {
	_, c := start(t, table.Config{})
	_, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("none"), Key: attrs{"pk": str("a")}})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("GetItem: %v", err)
	}
	makeTable(t, c, "tab", false)
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("tab"), Item: attrs{"pk": str("a")}, ConditionExpression: aws.String("attribute_exists(pk)")})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || failed.ErrorMessage() != "The conditional request failed" {
		t.Errorf("PutItem: %v", err)
	}
}
