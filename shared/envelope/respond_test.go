package envelope

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// batchOf is a batch whose records have the given names.
func batchOf(kind Kind, ids ...string) *Batch {
	b := &Batch{Kind: kind}
	for _, id := range ids {
		b.Records = append(b.Records, Record{ID: id})
	}
	return b
}

func TestC1_TheAnswerIsExact(t *testing.T) {
	long := strings.Repeat("9", 56)
	numbers := batchOf(Kinesis, "100", "99", long, "1"+strings.Repeat("0", 56))
	messages := batchOf(SQS, "m1", "m2", "m3")
	window := batchOf(Kinesis, "5")
	window.State = []byte(`{"1": 2}`)
	for _, c := range []struct {
		batch  *Batch
		failed []int
		want   string
	}{
		{messages, nil, `{"batchItemFailures":[]}`},
		{messages, []int{1}, `{"batchItemFailures":[{"itemIdentifier":"m2"}]}`},
		{messages, []int{0, 1, 2},
			`{"batchItemFailures":[{"itemIdentifier":"m1"},{"itemIdentifier":"m2"},{"itemIdentifier":"m3"}]}`},
		{messages, []int{2, 2}, `{"batchItemFailures":[{"itemIdentifier":"m3"}]}`},
		{numbers, nil, `{"batchItemFailures":[]}`},
		{numbers, []int{0}, `{"batchItemFailures":[{"itemIdentifier":"100"}]}`},
		{numbers, []int{3, 2, 1, 0}, `{"batchItemFailures":[{"itemIdentifier":"99"},{"itemIdentifier":"100"},` +
			`{"itemIdentifier":"` + long + `"},{"itemIdentifier":"1` + strings.Repeat("0", 56) + `"}]}`},
		{batchOf(Kinesis), nil, `{"batchItemFailures":[]}`},
		{window, nil, `{"state":{"1": 2},"batchItemFailures":[]}`},
		{window, []int{0}, `{"state":{"1": 2},"batchItemFailures":[{"itemIdentifier":"5"}]}`},
		{batchOf(SQS, `quote"\`), []int{0}, `{"batchItemFailures":[{"itemIdentifier":"quote\"\\"}]}`},
	} {
		got, err := Respond(c.batch, c.failed)
		if err != nil || string(got) != c.want {
			t.Errorf("%s %v:\n got %s, %v\nwant %s", c.batch.Kind, c.failed, got, err, c.want)
		}
	}
}

func TestC1_NoAnswerNamesARecordByNothing(t *testing.T) {
	for _, failed := range [][]int{{1}, {0, 1}, {2}, {-1}} {
		if got, err := Respond(batchOf(SQS, "m1", ""), failed); !errors.Is(err, ErrUnnamed) || got != nil {
			t.Errorf("%v: %s, %v, want ErrUnnamed", failed, got, err)
		}
	}
	if got, err := Respond(batchOf(SQS, "m1", ""), []int{0}); err != nil {
		t.Errorf("a record that did not fail needs no name: %s, %v", got, err)
	}
}

func TestC1_TheLowestFailedSequenceNumberIsAlwaysNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[1-9][0-9]{0,60}`), 1, 20, rapid.ID).Draw(t, "numbers")
		b := batchOf(Kinesis, ids...)
		failed := rapid.SliceOfNDistinct(rapid.IntRange(0, len(ids)-1), 1, len(ids), rapid.ID).Draw(t, "failed")
		text, err := Respond(b, failed)
		var answer struct {
			BatchItemFailures []struct{ ItemIdentifier string }
		}
		if err != nil || json.Unmarshal(text, &answer) != nil || len(answer.BatchItemFailures) != len(failed) {
			t.Fatalf("%s, %v", text, err)
		}
		lowest := slices.MinFunc(failed, func(i, j int) int { return number(ids[i]).Cmp(number(ids[j])) })
		if got := answer.BatchItemFailures[0].ItemIdentifier; got != ids[lowest] {
			t.Fatalf("first is %s, the lowest %s", got, ids[lowest])
		}
	})
}
