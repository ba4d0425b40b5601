package table_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
		if n := numberIn(get(t, c, "tab", keyed(name)), "n"); n != f.n {
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
	if item := get(t, c, "tab", keyed("a")); item != nil {
		t.Errorf("the cancelled transaction left %v", item)
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
	_, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("none"), Key: keyed("a")})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("GetItem: %v", err)
	}
	makeTable(t, c, "tab", false)
	there := aws.String("attribute_exists(pk)")
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: tab, Item: keyed("a"), ConditionExpression: there})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || failed.ErrorMessage() != "The conditional request failed" {
		t.Errorf("PutItem: %v", err)
	}
}
