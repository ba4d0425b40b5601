package table_test

import (
	"fmt"
	"slices"
	"testing"

	"abacus/shared/local/table"
	"abacus/shared/local/wire"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
		key := keyed(fmt.Sprint(i))
		keys = append(keys, key)
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key}})
		inserts = append(inserts, types.BatchStatementRequest{Statement: aws.String(`INSERT INTO "tab" VALUE {'pk':?}`),
			Parameters: []types.AttributeValue{str(fmt.Sprint("i", i))}})
	}
	written, err := c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{"tab": writes}})
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
	read, err := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{"tab": {Keys: keys, ConsistentRead: aws.Bool(true)}}})
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
		there := get(t, c, "tab", keyed(fmt.Sprint("i", i))) != nil
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
		insert := types.BatchStatementRequest{Statement: aws.String(`INSERT INTO "tab" VALUE {'pk':'a'}`),
			ReturnValuesOnConditionCheckFailure: "ALL_OLD"}
		out, err := c.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{
			Statements: []types.BatchStatementRequest{insert}})
		if err != nil {
			t.Fatal(err)
		}
		if e := out.Responses[0].Error; e == nil || e.Code != "DuplicateItem" || (e.Item != nil) != shows {
			t.Errorf("option %t: %+v", shows, e)
		}
	}
}
