package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// naive counts as a hand-written handler does: mark the event as seen, then add to each key, one call after the other.
// It is the reference of this bench, not a way to count: a crash between its calls loses or doubles counts.
type naive struct {
	client *dynamodb.Client
	rules  string
	meter  *meter
}

func (n *naive) handle(ctx context.Context, raw []byte) error {
	views, err := decodeByLibrary(raw)
	if err != nil {
		return err
	}
	for _, v := range views {
		put, err := n.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(dedupTable), ConditionExpression: aws.String("attribute_not_exists(pk)"),
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			Item:                   map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: v.id}},
		})
		if err != nil {
			return fmt.Errorf("naive claim: %w", err)
		}
		n.meter.note(aws.ToFloat64(put.ConsumedCapacity.CapacityUnits))
		for _, key := range v.keysOf(n.rules) {
			added, err := n.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: aws.String(countersTable), UpdateExpression: aws.String("ADD n :d"),
				ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
				Key: map[string]types.AttributeValue{
					"pk": &types.AttributeValueMemberS{Value: "naive|" + key}, "sk": &types.AttributeValueMemberS{Value: "all"},
				},
				ExpressionAttributeValues: map[string]types.AttributeValue{":d": &types.AttributeValueMemberN{Value: "1"}},
			})
			if err != nil {
				return fmt.Errorf("naive add: %w", err)
			}
			n.meter.note(aws.ToFloat64(added.ConsumedCapacity.CapacityUnits))
		}
	}
	return nil
}

// decodeByLibrary reads a Lambda event with aws-lambda-go's types and each record with encoding/json.
func decodeByLibrary(raw []byte) ([]view, error) {
	var event events.KinesisEvent
	if err := json.Unmarshal(raw, &event); err != nil {
		return nil, err
	}
	out := make([]view, 0, len(event.Records))
	for _, r := range event.Records {
		var document map[string]any
		if err := json.Unmarshal(r.Kinesis.Data, &document); err != nil {
			return nil, err
		}
		text := func(name string) string { s, _ := document[name].(string); return s }
		out = append(out, view{id: text("view"), page: text("page"), country: text("country")})
	}
	return out, nil
}

// naiveInvoke is the whole of an invocation but its store: decode by the libraries, count in a map, answer.
func naiveInvoke(raw []byte, rules string, totals map[string]int64) ([]byte, error) {
	views, err := decodeByLibrary(raw)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(views))
	for _, v := range views {
		if seen[v.id] {
			continue
		}
		seen[v.id] = true
		for _, key := range v.keysOf(rules) {
			totals["views|"+key]++
		}
	}
	return json.Marshal(events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}})
}

func format(n float64) string {
	switch {
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n >= 1:
		return strconv.FormatFloat(n, 'f', 2, 64)
	default:
		return strconv.FormatFloat(n, 'f', 4, 64)
	}
}
