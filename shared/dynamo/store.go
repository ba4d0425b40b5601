package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"abacus/shared/merge"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Store keeps claims, commit records and counters in two tables. Its contract is merge.Store's.
type Store struct {
	link
	counters, dedup string
	parallel        int
	single          atomic.Bool // claims go one by one
}

var _ merge.Store = (*Store)(nil)

// NewStore returns a Store, or every fault of o at once. It makes no request.
func NewStore(o Options) (*Store, error) {
	l, err := o.complete(true)
	if err != nil {
		return nil, err
	}
	s := &Store{link: l, counters: o.Counters, dedup: o.Dedup, parallel: o.Parallel}
	s.single.Store(o.SingleClaims)
	return s, nil
}

// Batches reports whether claims still go in batches: false once the endpoint has refused BatchExecuteStatement.
func (s *Store) Batches() bool { return !s.single.Load() }

// FindRecord implements merge.Store.
func (s *Store) FindRecord(ctx context.Context, token merge.Token) (merge.Record, error) {
	found, err := s.get(ctx, recordKey(token))
	if err != nil {
		return merge.Record{}, err
	}
	return recordFrom(found)
}

// Abort implements merge.Store.
func (s *Store) Abort(ctx context.Context, token merge.Token, expires time.Time) (merge.Record, error) {
	standing, err := s.putIf(ctx, recordRow(token, stateAborted, nil, expires), absent, nil)
	var contended *merge.ConflictError
	switch {
	case errors.As(err, &contended):
		contended.Record = true // the attempt's own Commit is under way
		return merge.Record{}, err
	case err != nil:
		return merge.Record{}, err
	case standing == nil:
		return merge.Record{State: merge.Aborted}, nil
	}
	return s.decision(standing)
}

// decision reads the record that kept a write out; one that is gone again decides nothing, so the write must be tried
// again.
func (s *Store) decision(inTheWay row) (merge.Record, error) {
	record, err := recordFrom(inTheWay)
	if err == nil && record.State == merge.Undecided {
		err = fmt.Errorf("table %s: the record that was in the way is gone: %w", s.dedup, &merge.ConflictError{Record: true})
	}
	return record, err
}

// TakeClaim implements merge.Store.
func (s *Store) TakeClaim(ctx context.Context, claim merge.Claim, from merge.Token) (merge.Claim, error) {
	standing, err := s.putIf(ctx, claimRow(claim), heldBy, row{":held": text(string(from))})
	return s.standing(claim, standing, err)
}

// standing returns the claim that stands after a put of claim, which ended with err or was kept out by the row in its
// way.
func (s *Store) standing(claim merge.Claim, inTheWay row, err error) (merge.Claim, error) {
	switch {
	case err != nil:
		return merge.Claim{}, err
	case inTheWay == nil:
		return claim, nil
	}
	return claimFrom(inTheWay, claim.Event)
}

// Release implements merge.Store.
func (s *Store) Release(ctx context.Context, event string, token merge.Token) error {
	const operation = "DeleteItem"
	_, err := ask(ctx, &s.link, operation, s.client.DeleteItem, &dynamodb.DeleteItemInput{
		TableName: aws.String(s.dedup), Key: row{attrPK: text(claimKey(event))},
		ConditionExpression:       aws.String(heldBy.expression),
		ExpressionAttributeNames:  heldBy.names,
		ExpressionAttributeValues: row{":held": text(string(token))},
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	})
	if _, failed := conditionFailed(err); failed || err == nil {
		return nil
	}
	return failure(ctx, operation, s.dedup, err)
}

// guard is a condition of a write.
type guard struct {
	expression string
	names      map[string]string
}

// The conditions that rows of the dedup table are written under.
var (
	absent = guard{"attribute_not_exists(#pk)", map[string]string{"#pk": attrPK}}
	heldBy = guard{"#token = :held", map[string]string{"#token": attrToken}}
)

// putIf puts a row of the dedup table under a guard. Where the guard fails it returns the row that stands, which is not
// nil and has no attributes where there is none. Our own row of an earlier try is such a row: it carries our token.
func (s *Store) putIf(ctx context.Context, r row, g guard, values row) (standing row, err error) {
	const operation = "PutItem"
	_, err = ask(ctx, &s.link, operation, s.client.PutItem, &dynamodb.PutItemInput{
		TableName: aws.String(s.dedup), Item: r,
		ConditionExpression: aws.String(g.expression), ExpressionAttributeNames: g.names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	})
	if err == nil {
		return nil, nil
	}
	item, failed := conditionFailed(err)
	switch {
	case !failed:
		return nil, failure(ctx, operation, s.dedup, err)
	case len(item) > 0:
		return item, nil
	}
	// No item: the row is gone, or the endpoint does not return it.
	return s.get(ctx, r[attrPK].(*types.AttributeValueMemberS).Value)
}

// get reads a row of the dedup table, strongly consistent; without attributes, and not nil, where there is none.
func (s *Store) get(ctx context.Context, pk string) (row, error) {
	const operation = "GetItem"
	out, err := ask(ctx, &s.link, operation, s.client.GetItem, &dynamodb.GetItemInput{
		TableName: aws.String(s.dedup), Key: row{attrPK: text(pk)}, ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return nil, failure(ctx, operation, s.dedup, err)
	}
	if out.Item == nil {
		return row{}, nil
	}
	return out.Item, nil
}
