package table_test

import (
	"fmt"
	"testing"
	"time"

	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestTTL_ExpiredItemsStayUntilTheSweep(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var changes []table.Change
	s, c := start(t, table.Config{
		Now:     func() time.Time { return now },
		Changed: func(ch table.Change) { changes = append(changes, ch) },
	})
	makeTable(t, c, "tab", false)
	makeTable(t, c, "other", false)
	_, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: tab,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) types.AttributeValue { return num(fmt.Sprint(now.Add(d).Unix())) }
	stays := attrs{"now": at(0), "later": at(time.Second), "text": str(fmt.Sprint(now.Unix() - 5)),
		"ancient": at(-6 * 365 * 24 * time.Hour), "milliseconds": num(fmt.Sprint(now.UnixMilli()))}
	goes := attrs{"past": at(-time.Second), "fraction": num(fmt.Sprint(now.Unix()-10) + ".5")}
	for _, group := range []attrs{stays, goes} {
		for pk, ttl := range group {
			put(t, c, "tab", attrs{"pk": str(pk), "ttl": ttl})
		}
	}
	put(t, c, "tab", keyed("none"))
	put(t, c, "other", attrs{"pk": str("past"), "ttl": at(-time.Hour)})
	if get(t, c, "tab", keyed("past")) == nil {
		t.Error("an expired item is gone before the sweep")
	}
	used := s.Used()
	changes = nil
	if n := s.Expire(); n != len(goes) {
		t.Errorf("%d expired, want %d", n, len(goes))
	}
	if s.Used() != used {
		t.Error("the sweep consumed capacity")
	}
	for _, ch := range changes {
		if !ch.Expired || ch.New != nil || ch.Table != "tab" {
			t.Errorf("change %+v", ch)
		}
	}
	for pk := range stays {
		if get(t, c, "tab", keyed(pk)) == nil {
			t.Errorf("%s is gone", pk)
		}
	}
	for pk := range goes {
		if get(t, c, "tab", keyed(pk)) != nil {
			t.Errorf("%s is still there", pk)
		}
	}
	if get(t, c, "other", keyed("past")) == nil {
		t.Error("a table without TTL lost an item")
	}
}
