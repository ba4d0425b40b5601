package table_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"abacus/shared/local/table"
)

// post sends one request as it stands.
func post(t *testing.T, url, operation, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", operation)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// What the stand-in does not know is an error, never ignored.
func TestProtocol_NothingUnknownIsIgnored(t *testing.T) {
	server := httptest.NewServer(table.New(table.Config{}))
	defer server.Close()
	const create = `{"TableName":"tab","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk",` +
		`"AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`
	if status, answer := post(t, server.URL, "DynamoDB_20120810.CreateTable", create); status != 200 {
		t.Fatal(answer)
	}
	for name, c := range map[string]struct{ operation, body, want string }{
		"operation":         {"DynamoDB_20120810.RestoreTableFromBackup", `{}`, "UnknownOperationException"},
		"service":           {"DynamoDBStreams_20120810.GetItem", `{}`, "UnknownOperationException"},
		"member":            {"DynamoDB_20120810.GetItem", `{"TableName":"tab","Key":{"pk":{"S":"a"}},"Consistent":true}`, "ValidationException"},
		"member's case":     {"DynamoDB_20120810.GetItem", `{"TableName":"tab","Key":{"pk":{"S":"a"}},"consistentRead":true}`, "ValidationException"},
		"legacy member":     {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"}},"Expected":{}}`, "ValidationException"},
		"nested member":     {"DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"tab","Item":{"pk":{"S":"a"}},"X":1}}]}`, "ValidationException"},
		"member twice":      {"DynamoDB_20120810.GetItem", `{"TableName":"tab","TableName":"tab","Key":{"pk":{"S":"a"}}}`, "SerializationException"},
		"attribute twice":   {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"pk":{"S":"b"}}}`, "SerializationException"},
		"kind":              {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{"Q":"1"}}}`, "SerializationException"},
		"two kinds":         {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{"S":"1","N":"1"}}}`, "ValidationException"},
		"no kind":           {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{}}}`, "ValidationException"},
		"bare number":       {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{"N":1}}}`, "SerializationException"},
		"bare value":        {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":"a"}}`, "SerializationException"},
		"set of numbers":    {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{"NS":[1]}}}`, "SerializationException"},
		"list of bare":      {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{"L":["1"]}}}`, "SerializationException"},
		"boolean text":      {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{"BOOL":"true"}}}`, "SerializationException"},
		"base64":            {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"x":{"B":"?"}}}`, "SerializationException"},
		"not JSON":          {"DynamoDB_20120810.PutItem", `{"TableName":`, "SerializationException"},
		"more than JSON":    {"DynamoDB_20120810.ListTables", `{} {}`, "SerializationException"},
		"not UTF-8":         {"DynamoDB_20120810.PutItem", "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"\xff\"}}}", "SerializationException"},
		"no table":          {"DynamoDB_20120810.GetItem", `{"Key":{"pk":{"S":"a"}}}`, "ValidationException"},
		"no item":           {"DynamoDB_20120810.PutItem", `{"TableName":"tab"}`, "ValidationException"},
		"no key":            {"DynamoDB_20120810.GetItem", `{"TableName":"tab"}`, "ValidationException"},
		"streams":           {"DynamoDB_20120810.CreateTable", strings.Replace(create, `"tab"`, `"bat","StreamSpecification":{"StreamEnabled":true}`, 1), "ValidationException"},
		"empty name":        {"DynamoDB_20120810.PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"},"":{"S":"1"}}}`, "ValidationException"},
		"statement":         {"DynamoDB_20120810.ExecuteStatement", `{"Statement":"SELECT * FROM tab"}`, "ValidationException"},
		"batch write of no": {"DynamoDB_20120810.BatchWriteItem", `{"RequestItems":{"tab":[]}}`, "ValidationException"},
		"batch get of no":   {"DynamoDB_20120810.BatchGetItem", `{"RequestItems":{"tab":{"Keys":[]}}}`, "ValidationException"},
		"TTL of no":         {"DynamoDB_20120810.UpdateTimeToLive", `{"TableName":"tab","TimeToLiveSpecification":{"AttributeName":"ttl"}}`, "ValidationException"},
	} {
		status, answer := post(t, server.URL, c.operation, c.body)
		if status != 400 || !strings.Contains(answer, "#"+c.want) {
			t.Errorf("unknown %s: %d %s, want %s", name, status, answer, c.want)
		}
	}
	if _, answer := post(t, server.URL, "DynamoDB_20120810.Scan", `{"TableName":"tab"}`); !strings.Contains(answer, `"Count":0`) {
		t.Errorf("a refused request left something behind: %s", answer)
	}
}

func TestProtocol_EachInstanceHasItsOwnTables(t *testing.T) {
	_, one := start(t, table.Config{})
	_, two := start(t, table.Config{})
	makeTable(t, one, "same-name", false)
	makeTable(t, two, "same-name", false)
	put(t, one, "same-name", attrs{"pk": str("a")})
	if got := get(t, two, "same-name", attrs{"pk": str("a")}); got != nil {
		t.Errorf("the other instance has %v", got)
	}
}
