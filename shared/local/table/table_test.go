package table_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// clientFor returns a client of the real SDK that makes one attempt a call.
func clientFor(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

// start returns a fresh stand-in and a client for it.
func start(t testing.TB, config table.Config) (*table.Service, *dynamodb.Client) {
	t.Helper()
	s := table.New(config)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, clientFor(server.URL)
}

type attrs = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// makeTable creates a table with a hash key pk and, if sorted, a sort key sk, both texts.
func makeTable(t testing.TB, c *dynamodb.Client, name string, sorted bool) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
	}
	if sorted {
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String("sk"), AttributeType: "S"})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("sk"), KeyType: "RANGE"})
	}
	if _, err := c.CreateTable(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	w := dynamodb.NewTableExistsWaiter(c)
	if err := w.Wait(context.Background(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		t.Fatal(err)
	}
}
