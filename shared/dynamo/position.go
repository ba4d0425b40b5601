package dynamo

import (
	"context"
	"fmt"
	"strings"

	"abacus/shared/merge"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attrMark is the position of the last event in a row of the position guard. It is text: a sequence number has more
// digits than a number of DynamoDB keeps.
const attrMark = "p"

var _ merge.MarkStore = (*Store)(nil)

// Advance implements merge.MarkStore: one conditional update, whose failure shows the row that stood. Validation
// refuses an update for what the row holds or for the table's schema; DynamoDB's text says which, and either way no
// retry helps.
func (s *Store) Advance(ctx context.Context, m merge.Move) (string, bool, error) {
	const operation = "UpdateItem"
	in, err := s.advance(m)
	if err != nil {
		return "", false, &merge.RefusedError{Adds: []int{0}, Cause: err}
	}
	_, err = ask(ctx, &s.link, operation, s.client.UpdateItem, in)
	if err == nil {
		return m.Last, true, nil
	}
	item, stood := conditionFailed(err)
	switch mark, err2 := textOf(item, attrMark); {
	case stood && err2 == nil:
		return mark, false, nil
	case stood:
		// Only a row that was deleted since, or that something else wrote, has none; the next try sees which.
		return "", false, fmt.Errorf("%s on table %s: the row that was in the way shows no mark", operation, s.counters)
	case strings.TrimSuffix(codeOf(err), "Exception") == "Validation" && classify(err) == permanent:
		err = fmt.Errorf("%s on table %s: %w", operation, s.counters, err)
		return "", false, &merge.RefusedError{Adds: []int{0}, Cause: err}
	}
	return "", false, failure(ctx, operation, s.counters, err)
}

func (s *Store) advance(m merge.Move) (*dynamodb.UpdateItemInput, error) {
	pk, sk, err := rowKeys(m.Cell, m.Serial)
	if err != nil {
		return nil, err
	}
	delta := m.Delta.String()
	if len(strings.TrimPrefix(delta, "-")) > maxDigits {
		return nil, fmt.Errorf("a move by more than %d digits", maxDigits)
	}
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(s.counters), Key: row{attrPK: text(pk), attrSK: text(sk)},
		UpdateExpression:                    aws.String("ADD #n :delta SET #p = :last REMOVE #ttl"),
		ConditionExpression:                 aws.String("attribute_not_exists(#p) OR #p < :first"),
		ExpressionAttributeNames:            map[string]string{"#n": attrN, "#p": attrMark, "#ttl": attrTTL},
		ExpressionAttributeValues:           row{":delta": digits(delta), ":last": text(m.Last), ":first": text(m.Below)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	}
	if m.At != "" {
		in.ConditionExpression, in.ExpressionAttributeValues[":first"] = aws.String("#p = :first"), text(m.At)
	}
	if m.Expires != 0 {
		in.UpdateExpression = aws.String("ADD #n :delta SET #p = :last, #ttl = :ttl")
		in.ExpressionAttributeValues[":ttl"] = number(m.Expires)
	}
	return in, nil
}

func digits(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }
