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
	if !strings.Contains(operation, ".") {
		operation = "DynamoDB_20120810." + operation
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
	if status, answer := post(t, server.URL, "CreateTable", create); status != 200 {
		t.Fatal(answer)
	}
	streams := strings.Replace(create, `"tab"`, `"bat","StreamSpecification":{"StreamEnabled":true}`, 1)
	const validation, serialization = "ValidationException", "SerializationException"
	put := func(attribute string) string { return `{"TableName":"tab","Item":{"pk":{"S":"a"},` + attribute + `}}` }
	for name, c := range map[string]struct{ operation, body, want string }{
		"operation":         {"RestoreTableFromBackup", `{}`, "UnknownOperationException"},
		"service":           {"Streams.GetItem", `{}`, "UnknownOperationException"},
		"member":            {"GetItem", `{"TableName":"tab","Key":{"pk":{"S":"a"}},"Consistent":true}`, validation},
		"member's case":     {"GetItem", `{"TableName":"tab","Key":{"pk":{"S":"a"}},"consistentRead":true}`, validation},
		"legacy member":     {"PutItem", `{"TableName":"tab","Item":{"pk":{"S":"a"}},"Expected":{}}`, validation},
		"nested member":     {"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"tab","X":1}}]}`, validation},
		"member twice":      {"GetItem", `{"TableName":"tab","TableName":"tab","Key":{"pk":{"S":"a"}}}`, serialization},
		"attribute twice":   {"PutItem", put(`"pk":{"S":"b"}`), serialization},
		"kind":              {"PutItem", put(`"x":{"Q":"1"}`), serialization},
		"two kinds":         {"PutItem", put(`"x":{"S":"1","N":"1"}`), validation},
		"no kind":           {"PutItem", put(`"x":{}`), validation},
		"bare number":       {"PutItem", put(`"x":{"N":1}`), serialization},
		"bare value":        {"PutItem", `{"TableName":"tab","Item":{"pk":"a"}}`, serialization},
		"set of numbers":    {"PutItem", put(`"x":{"NS":[1]}`), serialization},
		"list of bare":      {"PutItem", put(`"x":{"L":["1"]}`), serialization},
		"boolean text":      {"PutItem", put(`"x":{"BOOL":"true"}`), serialization},
		"base64":            {"PutItem", put(`"x":{"B":"?"}`), serialization},
		"not JSON":          {"PutItem", `{"TableName":`, serialization},
		"more than JSON":    {"ListTables", `{} {}`, serialization},
		"not UTF-8":         {"PutItem", "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"\xff\"}}}", serialization},
		"no table":          {"GetItem", `{"Key":{"pk":{"S":"a"}}}`, validation},
		"no item":           {"PutItem", `{"TableName":"tab"}`, validation},
		"no key":            {"GetItem", `{"TableName":"tab"}`, validation},
		"streams":           {"CreateTable", streams, validation},
		"empty name":        {"PutItem", put(`"":{"S":"1"}`), validation},
		"statement":         {"ExecuteStatement", `{"Statement":"SELECT * FROM tab"}`, validation},
		"batch write of no": {"BatchWriteItem", `{"RequestItems":{"tab":[]}}`, validation},
		"batch get of no":   {"BatchGetItem", `{"RequestItems":{"tab":{"Keys":[]}}}`, validation},
		"TTL of no":         {"UpdateTimeToLive", `{"TableName":"tab","TimeToLiveSpecification":{}}`, validation},
	} {
		status, answer := post(t, server.URL, c.operation, c.body)
		if status != 400 || !strings.Contains(answer, "#"+c.want) {
			t.Errorf("unknown %s: %d %s, want %s", name, status, answer, c.want)
		}
	}
	if _, answer := post(t, server.URL, "Scan", `{"TableName":"tab"}`); !strings.Contains(answer, `"Count":0`) {
		t.Errorf("a refused request left something behind: %s", answer)
	}
}

func TestProtocol_EachInstanceHasItsOwnTables(t *testing.T) {
	_, one := start(t, table.Config{})
	_, two := start(t, table.Config{})
	makeTable(t, one, "same-name", false)
	makeTable(t, two, "same-name", false)
	put(t, one, "same-name", keyed("a"))
	if got := get(t, two, "same-name", keyed("a")); got != nil {
		t.Errorf("the other instance has %v", got)
	}
}
