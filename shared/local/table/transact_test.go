package table_test

import (
	"context"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// holding is a stand-in whose first transaction holds its items until the test lets it go.
func holding(t *testing.T) (c *dynamodb.Client, held, release chan struct{}) {
	held, release = make(chan struct{}), make(chan struct{})
	var later atomic.Bool
	_, c = start(t, table.Config{Hold: func(context.Context) {
		if !later.Swap(true) {
			held <- struct{}{}
			<-release
		}
	}})
	makeTable(t, c, "tab", false)
	return c, held, release
}

func TestConflict_WhatMeetsAHeldItem(t *testing.T) {
	c, held, release := holding(t)
	put(t, c, "tab", attrs{"pk": str("hot"), "n": num("1")})
	first := make(chan error, 1)
	go func() { first <- transact(c, "", addTo("tab", "hot", "10"), addTo("tab", "cold", "10")) }()
	<-held

	hot := keyed("hot")
	err := transact(c, "", addTo("tab", "other", "1"), addTo("tab", "hot", "1"))
	if reasonsOf(err) != "None TransactionConflict" {
		t.Errorf("another transaction: %v", err)
	}
	if code := codeOf(update(c, addTo("tab", "hot", "1"))); code != "TransactionConflictException" {
		t.Errorf("UpdateItem: %s", code)
	}
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: tab, Item: hot})
	if codeOf(err) != "TransactionConflictException" {
		t.Errorf("PutItem: %v", err)
	}
	_, err = c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: tab, Key: hot})
	if codeOf(err) != "TransactionConflictException" {
		t.Errorf("DeleteItem: %v", err)
	}
	_, err = c.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: tab, Key: hot}}}})
	if reasonsOf(err) != "TransactionConflict" {
		t.Errorf("TransactGetItems: %v", err)
	}
	insert := types.BatchStatementRequest{Statement: aws.String(`INSERT INTO "tab" VALUE {'pk':'cold'}`)}
	batch, err := c.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{
		Statements: []types.BatchStatementRequest{insert}})
	if err != nil || batch.Responses[0].Error == nil || batch.Responses[0].Error.Code != "TransactionConflict" {
		t.Errorf("INSERT: %v", err)
	}
	puts := []types.WriteRequest{
		{PutRequest: &types.PutRequest{Item: hot}}, {PutRequest: &types.PutRequest{Item: keyed("free")}}}
	written, err := c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{"tab": puts}})
	if err != nil || len(written.UnprocessedItems["tab"]) != 1 {
		t.Errorf("BatchWriteItem: %v", err)
	}
	// Reads of single items, and writes of others, go on, and see the item as it was.
	if n := numberIn(get(t, c, "tab", hot), "n"); n != "1" {
		t.Errorf("GetItem sees %s while the transaction is under way", n)
	}
	put(t, c, "tab", keyed("elsewhere"))

	release <- struct{}{}
	if err := <-first; err != nil {
		t.Errorf("the transaction itself: %v", err)
	}
	if n := numberIn(get(t, c, "tab", hot), "n"); n != "11" {
		t.Errorf("n = %s afterwards, want 11", n)
	}
	if err := update(c, addTo("tab", "hot", "1")); err != nil {
		t.Errorf("the item is still held: %v", err)
	}
}

func TestConflict_IsToldBesideAFailedCondition(t *testing.T) {
	c, held, release := holding(t)
	put(t, c, "tab", keyed("there"))
	first := make(chan error, 1)
	go func() { first <- transact(c, "", addTo("tab", "hot", "10")) }()
	<-held
	_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: tab, Item: keyed("there"), ConditionExpression: aws.String("attribute_not_exists(pk)")}},
		{Update: addTo("tab", "hot", "1")},
	}})
	if reasonsOf(err) != "ConditionalCheckFailed TransactionConflict" {
		t.Errorf("reasons: %v", err)
	}
	release <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestToken_FirstTryStillUnderWay(t *testing.T) {
	c, held, release := holding(t)
	first := make(chan error, 1)
	go func() { first <- transact(c, "token", addTo("tab", "a", "1")) }()
	<-held
	if err := transact(c, "token", addTo("tab", "a", "1")); codeOf(err) != "TransactionInProgressException" {
		t.Errorf("a repeat meanwhile: %v", err)
	}
	release <- struct{}{}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if err := transact(c, "token", addTo("tab", "a", "1")); err != nil {
		t.Errorf("a repeat afterwards: %v", err)
	}
	if n := numberIn(get(t, c, "tab", keyed("a")), "n"); n != "1" {
		t.Errorf("n = %s, want 1", n)
	}
}

// A token stands for ten minutes after its first use is done, and not a moment longer.
func TestToken_LivesTenMinutes(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	advance := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	_, c := start(t, table.Config{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	makeTable(t, c, "tab", false)
	for _, step := range []struct {
		wait time.Duration
		want string
	}{{0, "1"}, {10*time.Minute - 1, "1"}, {1, "2"}, {time.Minute, "2"}} {
		advance(step.wait)
		if err := transact(c, "token", addTo("tab", "a", "1")); err != nil {
			t.Fatal(err)
		}
		if n := numberIn(get(t, c, "tab", keyed("a")), "n"); n != step.want {
			t.Errorf("%s later: n = %s, want %s", step.wait, n, step.want)
		}
	}
}

func TestTransaction_TransfersConserveTheSum(t *testing.T) {
	briefly := func(context.Context) { time.Sleep(50 * time.Microsecond) }
	for name, hold := range map[string]func(context.Context){"at once": nil, "held": briefly} {
		t.Run(name, func(t *testing.T) {
			_, c := start(t, table.Config{Hold: hold})
			makeTable(t, c, "tab", false)
			var accounts []types.TransactGetItem
			for i := range 4 {
				put(t, c, "tab", attrs{"pk": str(fmt.Sprint(i)), "n": num("100")})
				accounts = append(accounts, types.TransactGetItem{Get: &types.Get{TableName: tab, Key: keyed(fmt.Sprint(i))}})
			}
			var writers, readers sync.WaitGroup
			stop := make(chan struct{})
			for w := range 8 {
				writers.Go(func() {
					for i := range 40 {
						from, to := fmt.Sprint((w+i)%4), fmt.Sprint((w+2*i+1)%4)
						if from == to {
							continue
						}
						err := transact(c, "", addTo("tab", from, "-1"), addTo("tab", to, "1"))
						if err != nil && reasonsOf(err) != "TransactionConflict None" && reasonsOf(err) != "None TransactionConflict" &&
							reasonsOf(err) != "TransactionConflict TransactionConflict" {
							t.Error(err)
						}
					}
				})
			}
			for range 2 {
				readers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						out, err := c.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: accounts})
						if err != nil {
							continue // it met a transaction
						}
						sum := new(big.Int)
						for _, r := range out.Responses {
							n, _ := new(big.Int).SetString(numberIn(r.Item, "n"), 10)
							sum.Add(sum, n)
						}
						if sum.Int64() != 400 {
							t.Errorf("sum %s, want 400", sum)
							return
						}
					}
				})
			}
			writers.Wait()
			close(stop)
			readers.Wait()
		})
	}
}

func TestAdd_IsExactUnderManyWriters(t *testing.T) {
	_, c := start(t, table.Config{})
	makeTable(t, c, "tab", false)
	put(t, c, "tab", attrs{"pk": str("n"), "n": num("9007199254740993")})
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 50 {
				if err := update(c, addTo("tab", "n", "3")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := numberIn(get(t, c, "tab", keyed("n")), "n"); n != "9007199254745793" {
		t.Errorf("n = %s, want 9007199254745793", n)
	}
}

func TestCondition_OneWinnerOfManyWriters(t *testing.T) {
	_, c := start(t, table.Config{})
	makeTable(t, c, "tab", false)
	var all sync.WaitGroup
	won := make(chan int, 32)
	for w := range 32 {
		all.Go(func() {
			_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: tab,
				Item: attrs{"pk": str("a"), "w": num(fmt.Sprint(w))}, ConditionExpression: aws.String("attribute_not_exists(pk)")})
			switch codeOf(err) {
			case "":
				won <- w
			case "ConditionalCheckFailedException":
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d winners", len(won))
	}
	if w := fmt.Sprint(<-won); numberIn(get(t, c, "tab", keyed("a")), "w") != w {
		t.Errorf("the item is not that of the winner %s", w)
	}
}
