package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abacus/shared/merge"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const operationCommit = "TransactWriteItems"

// maxDigits is how many digits a number of DynamoDB keeps.
const maxDigits = 38

// Commit implements merge.Store. The record and the adds are one transaction; what makes a second call harmless is the
// record alone. Its request token is fresh in each call, for DynamoDB remembers one for ten minutes only and answers
// IdempotentParameterMismatch where the slots have changed.
func (s *Store) Commit(ctx context.Context, a merge.Attempt) (merge.Record, error) {
	actions := make([]types.TransactWriteItem, 1, 1+len(a.Adds))
	actions[0].Put = &types.Put{
		TableName: aws.String(s.dedup), Item: recordRow(a.Token, stateCommitted, a.Except, a.Expires),
		ConditionExpression: aws.String(absent.expression), ExpressionAttributeNames: absent.names,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	refused := &merge.RefusedError{}
	for i, add := range a.Adds {
		update, err := s.update(add)
		if err != nil {
			refused.Adds, refused.Cause = append(refused.Adds, i), err
		}
		actions = append(actions, types.TransactWriteItem{Update: update})
	}
	if len(refused.Adds) > 0 {
		return merge.Record{}, refused
	}
	_, err := ask(ctx, &s.link, operationCommit, s.client.TransactWriteItems, &dynamodb.TransactWriteItemsInput{
		TransactItems: actions, ClientRequestToken: aws.String(rand.Text()),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err == nil {
		return merge.Record{State: merge.Committed, Except: slices.Clone(a.Except)}, nil
	}
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == len(actions) {
		return s.cancelled(ctx, a.Token, cancelled.CancellationReasons, err)
	}
	return merge.Record{}, failure(ctx, operationCommit, s.counters, err)
}

// update adds one delta to its row, or says why no row can take it. One such add would make DynamoDB refuse the whole
// transaction without naming it.
func (s *Store) update(add merge.SlottedAdd) (*types.Update, error) {
	pk, sk, err := rowKeys(add.Cell, strconv.Itoa(add.Slot))
	if err != nil {
		return nil, err
	}
	delta := add.Delta.String()
	if len(strings.TrimPrefix(delta, "-")) > maxDigits {
		return nil, fmt.Errorf("a move by more than %d digits", maxDigits)
	}
	u := &types.Update{
		TableName: aws.String(s.counters), Key: row{attrPK: text(pk), attrSK: text(sk)},
		UpdateExpression:          aws.String("ADD #n :delta REMOVE #ttl"),
		ExpressionAttributeNames:  map[string]string{"#n": attrN, "#ttl": attrTTL},
		ExpressionAttributeValues: row{":delta": &types.AttributeValueMemberN{Value: delta}},
	}
	if add.Expires != 0 {
		u.UpdateExpression = aws.String("ADD #n :delta SET #ttl = :ttl")
		u.ExpressionAttributeValues[":ttl"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(add.Expires, 10)}
	}
	return u, nil
}

// cancelled reads why a transaction was cancelled. Reasons stand in the order of the actions, the record's first
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html). Nothing was applied by
// this call; an earlier one may have been, and only the record says so.
func (s *Store) cancelled(
	ctx context.Context, token merge.Token, reasons []types.CancellationReason, err error,
) (merge.Record, error) {
	first := classOf(aws.ToString(reasons[0].Code))
	if first == condition {
		return s.decided(ctx, token, reasons[0].Item)
	}
	var refused, contended []int
	full, strange := first == throttled, false
	for i, reason := range reasons[1:] {
		switch code := aws.ToString(reason.Code); classOf(code) {
		case conflict:
			contended = append(contended, i)
		case throttled:
			full = true
		case permanent: // the row's n is not a number, the sum leaves 38 digits
			refused = append(refused, i)
		default:
			strange = strange || code != "" && code != "None"
		}
	}
	met := &merge.ConflictError{Adds: contended, Record: first == conflict}
	switch crowded := met.Record || len(contended) > 0; {
	case first == permanent:
		return merge.Record{}, judged(operationCommit, s.dedup, aws.ToString(reasons[0].Code), permanent, err)
	case len(refused) > 0:
		return merge.Record{}, &merge.RefusedError{Adds: refused, Cause: refusal(reasons[1+refused[0]])}
	case strange || !crowded && !full:
		return merge.Record{}, judged(operationCommit, s.counters, "", unknown, err)
	case !full:
		return merge.Record{}, fmt.Errorf("%s on table %s: %w", operationCommit, s.counters, met)
	case crowded:
		err = fmt.Errorf("%w; %w", met, err)
	}
	return merge.Record{}, judged(operationCommit, s.counters, "", throttled, err)
}

// decided returns the record that kept a transaction out. Only its row says how the attempt ended, so it is read where
// the reason lacks it.
func (s *Store) decided(ctx context.Context, token merge.Token, item row) (merge.Record, error) {
	if len(item) > 0 {
		return s.decision(item)
	}
	item, err := s.get(ctx, recordKey(token))
	if err != nil {
		return merge.Record{}, err
	}
	return s.decision(item)
}

func refusal(reason types.CancellationReason) error {
	return fmt.Errorf("%s: %s", aws.ToString(reason.Code), aws.ToString(reason.Message))
}
