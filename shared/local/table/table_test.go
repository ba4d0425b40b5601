package table_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
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

// tab is the name of a table that most tests use.
var tab = aws.String("tab")

// keyed returns an item of nothing but its hash key.
func keyed(pk string) attrs { return attrs{"pk": str(pk)} }

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// makeTable creates a table with a hash key pk and, if sorted, a sort key sk, both texts.
func makeTable(t testing.TB, c *dynamodb.Client, name string, sorted bool) {
	t.Helper()
	in := simpleTable(name)
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

func put(t testing.TB, c *dynamodb.Client, name string, item attrs) {
	t.Helper()
	if _, err := c.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &name, Item: item}); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, c *dynamodb.Client, name string, key attrs) attrs {
	t.Helper()
	in := &dynamodb.GetItemInput{TableName: &name, Key: key, ConsistentRead: aws.Bool(true)}
	out, err := c.GetItem(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// numberIn returns the digits of an attribute, or "" if it is no number.
func numberIn(item attrs, name string) string {
	n, _ := item[name].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

// textIn returns the text of an attribute, or "" if it is none.
func textIn(item attrs, name string) string {
	s, _ := item[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// codeOf returns the code of a service's error.
func codeOf(err error) string {
	var modelled smithy.APIError
	if errors.As(err, &modelled) {
		return modelled.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// addTo is an update that adds to n of the item with this pk.
func addTo(name, pk, delta string) *types.Update {
	return &types.Update{TableName: &name, Key: keyed(pk), UpdateExpression: aws.String("ADD n :d"),
		ExpressionAttributeValues: attrs{":d": num(delta)}}
}

func update(c *dynamodb.Client, u *types.Update) error {
	_, err := c.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: u.TableName, Key: u.Key,
		UpdateExpression: u.UpdateExpression, ExpressionAttributeValues: u.ExpressionAttributeValues})
	return err
}

// transact runs the updates as one transaction under a token, if there is one.
func transact(c *dynamodb.Client, token string, updates ...*types.Update) error {
	in := &dynamodb.TransactWriteItemsInput{}
	if token != "" {
		in.ClientRequestToken = &token
	}
	for _, u := range updates {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: u})
	}
	_, err := c.TransactWriteItems(context.Background(), in)
	return err
}

// reasonsOf returns the codes of a cancelled transaction.
func reasonsOf(err error) string {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return codeOf(err)
	}
	var codes []string
	for _, r := range cancelled.CancellationReasons {
		codes = append(codes, *r.Code)
	}
	return strings.Join(codes, " ")
}
