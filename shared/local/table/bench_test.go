package table_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"abacus/shared/local/table"
)

// handler returns a stand-in with tables claims (pk) and counts (pk, sk), and a function that calls it without a
// network.
func handler(b *testing.B) func(operation, body string) {
	s := table.New(table.Config{})
	serve := func(operation, body string) {
		req, _ := http.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, req); w.Code != 200 {
			b.Error(w.Body)
		}
	}
	serve("CreateTable", `{"TableName":"claims","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`)
	serve("CreateTable", `{"TableName":"counts","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}`)
	return serve
}

// run measures one body, in which %d is the number of the call.
func run(b *testing.B, operation, body string, each int) {
	serve := handler(b)
	var calls atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			serve(operation, strings.ReplaceAll(body, "%d", fmt.Sprint(calls.Add(1))))
		}
	})
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "writes/s")
}

func BenchmarkConditionalPut(b *testing.B) {
	run(b, "PutItem", `{"TableName":"claims","Item":{"pk":{"S":"event-%d"},"token":{"S":"0123456789abcdef"},
		"lease":{"N":"1790000000000"},"ttl":{"N":"1790000000"}},
		"ConditionExpression":"attribute_not_exists(pk)","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`, 1)
}

func BenchmarkAdd(b *testing.B) {
	run(b, "UpdateItem", `{"TableName":"counts","Key":{"pk":{"S":"flights|all"},"sk":{"S":"1h|1790000000|3"}},
		"UpdateExpression":"ADD n :d SET #t = :t","ExpressionAttributeNames":{"#t":"ttl"},
		"ExpressionAttributeValues":{":d":{"N":"1"},":t":{"N":"1790000000"}}}`, 1)
}

func BenchmarkTransactionOf25Adds(b *testing.B) {
	items := []string{`{"Put":{"TableName":"claims","Item":{"pk":{"S":"commit-%d"},"state":{"S":"committed"}},
		"ConditionExpression":"attribute_not_exists(pk)"}}`}
	for i := range 24 {
		items = append(items, fmt.Sprintf(`{"Update":{"TableName":"counts",
			"Key":{"pk":{"S":"flights|route/%d"},"sk":{"S":"all|0|0"}},"UpdateExpression":"ADD n :d",
			"ExpressionAttributeValues":{":d":{"N":"%d"}}}}`, i, i))
	}
	run(b, "TransactWriteItems", `{"ClientRequestToken":"t-%d","TransactItems":[`+strings.Join(items, ",")+`]}`, 25)
}

func BenchmarkBatchOf25Inserts(b *testing.B) {
	var statements []string
	for i := range 25 {
		statements = append(statements, fmt.Sprintf(`{
			"Statement":"INSERT INTO \"claims\" VALUE {'pk':?,'token':?,'lease':?,'ttl':?}",
			"Parameters":[{"S":"event-%%d-%d"},{"S":"0123456789abcdef"},{"N":"1790000000000"},{"N":"1790000000"}]}`, i))
	}
	run(b, "BatchExecuteStatement", `{"Statements":[`+strings.Join(statements, ",")+`]}`, 25)
}

// The size of a table does not slow a query of one of its partitions.
func BenchmarkQueryAmong100000(b *testing.B) {
	serve := handler(b)
	for i := range 100000 {
		item := fmt.Sprintf(`{"pk":{"S":"p%d"},"sk":{"S":"s%d"},"n":{"N":"1"}}`, i%10000, i/10000)
		serve("PutItem", `{"TableName":"counts","Item":`+item+`}`)
	}
	b.ReportAllocs()
	for b.Loop() {
		serve("Query", `{"TableName":"counts","KeyConditionExpression":"pk = :p",
			"ExpressionAttributeValues":{":p":{"S":"p77"}}}`)
	}
}
