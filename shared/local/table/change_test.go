package table_test

import (
	"slices"
	"strings"
	"testing"

	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
	_, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: tab, Key: keyed("a")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: tab, Key: keyed("a")}) // nothing
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
			_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: tab, Item: keyed("big"), ConditionExpression: absent})
			return err
		}},
		"a cancelled transaction": {6, func() error {
			items := []types.TransactWriteItem{
				{Put: &types.Put{TableName: tab, Item: keyed("big"), ConditionExpression: absent}},
				{Update: addTo("tab", "n", "1")}}
			_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items})
			return err
		}},
		"a refused request": {0, func() error {
			return update(c, &types.Update{TableName: tab, Key: keyed("a"), UpdateExpression: aws.String("ADD")})
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
