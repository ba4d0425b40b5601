package table_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestTable_IsNotUsableWhileItIsMade(t *testing.T) {
	var later atomic.Int64
	begin := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return begin.Add(time.Duration(later.Load())) }
	_, c := start(t, table.Config{Creating: time.Minute, Now: now})
	if _, err := c.CreateTable(t.Context(), simpleTable("tab")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		wait   time.Duration
		status types.TableStatus
		code   string
	}{
		{0, "CREATING", "ResourceNotFoundException"},
		{time.Minute - 1, "CREATING", "ResourceNotFoundException"},
		{1, "ACTIVE", ""},
	} {
		later.Add(int64(step.wait))
		out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: tab})
		if err != nil || out.Table.TableStatus != step.status {
			t.Errorf("%s later: %v, want %s", step.wait, err, step.status)
		}
		_, err = c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: tab, Key: keyed("a")})
		if codeOf(err) != step.code {
			t.Errorf("%s later: GetItem answers %v, want %q", step.wait, err, step.code)
		}
	}
}

func TestTable_ProtectedFromDeletion(t *testing.T) {
	_, c := start(t, table.Config{})
	kept := simpleTable("tab")
	kept.DeletionProtectionEnabled = aws.Bool(true)
	if _, err := c.CreateTable(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	_, err := c.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: tab})
	if codeOf(err) != "ValidationException" {
		t.Errorf("DeleteTable: %v", err)
	}
	out, err := c.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || !slices.Equal(out.TableNames, []string{"tab"}) {
		t.Errorf("ListTables: %v", err)
	}
}

// simpleTable is the definition of a table with a hash key pk.
func simpleTable(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
	}
}
