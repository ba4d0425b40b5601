package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"abacus/shared/merge"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	operationBatch = "BatchExecuteStatement"
	// maxStatements is DynamoDB's limit for one batch
	// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html).
	maxStatements = 25
	// singles is how many of a batch's claims are put at once where they go one by one.
	singles = 4
)

// PutClaims implements merge.Store.
func (s *Store) PutClaims(ctx context.Context, claims []merge.Claim) []merge.ClaimReply {
	replies := make([]merge.ClaimReply, len(claims))
	parallel(s.parallel, (len(claims)+maxStatements-1)/maxStatements, func(i int) {
		from, to := i*maxStatements, min((i+1)*maxStatements, len(claims))
		batch{s, claims[from:to], replies[from:to]}.put(ctx)
	})
	return replies
}

// batch is at most maxStatements claims and where their replies go.
type batch struct {
	*Store
	claims  []merge.Claim
	replies []merge.ClaimReply
}

func (b batch) put(ctx context.Context) {
	if b.single.Load() {
		b.putEach(ctx, b.all())
		return
	}
	statements := make([]types.BatchStatementRequest, len(b.claims))
	for i, claim := range b.claims {
		statements[i] = b.insert(claimRow(claim))
	}
	out, err := ask(ctx, &b.link, operationBatch, b.client.BatchExecuteStatement, &dynamodb.BatchExecuteStatementInput{
		Statements: statements, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	switch {
	case err == nil && len(out.Responses) != len(statements):
		err = fmt.Errorf("%d answers for %d statements", len(out.Responses), len(statements))
		b.failAll(failure(ctx, operationBatch, b.dedup, err))
	case err == nil:
		b.read(ctx, out.Responses)
	case ctx.Err() == nil && notForUs(err):
		b.single.Store(true)
		b.putEach(ctx, b.all())
	default:
		b.failAll(failure(ctx, operationBatch, b.dedup, err))
	}
}

// read settles each claim by its statement's answer. An INSERT never overwrites, so a duplicate is a failed condition:
// the row in the way may be another's, or ours by a try whose reply was lost.
func (b batch) read(ctx context.Context, answers []types.BatchStatementResponse) {
	var denied, lookup []int
	for i, answer := range answers {
		switch e := answer.Error; {
		case e == nil:
			b.replies[i].Standing = b.claims[i]
		case e.Code == types.BatchStatementErrorCodeEnumAccessDenied:
			b.single.Store(true) // PartiQL needs a permission of its own; putting the item may be allowed
			denied = append(denied, i)
		case classOf(string(e.Code)) != condition:
			b.replies[i].Err = statementFailure(b.dedup, e)
		case len(e.Item) == 0:
			lookup = append(lookup, i)
		default:
			b.settle(i, e.Item)
		}
	}
	if len(lookup) > 0 {
		b.lookup(ctx, lookup)
	}
	b.putEach(ctx, denied)
}

// settle answers claim i with the row that stands.
func (b batch) settle(i int, standing row) {
	b.replies[i].Standing, b.replies[i].Err = claimFrom(standing, b.claims[i].Event)
}

// lookup reads the rows in the way of the claims numbered, where their statements' errors did not carry them.
func (b batch) lookup(ctx context.Context, numbers []int) {
	keys := make([]string, len(numbers))
	for k, i := range numbers {
		keys[k] = claimKey(b.claims[i].Event)
	}
	rows, err := b.readRows(ctx, keys)
	for k, i := range numbers {
		switch standing, ok := rows[keys[k]]; {
		case ok:
			b.settle(i, standing)
		default: // without an error: gone again, which the contract says by an empty token
			b.replies[i].Err = err
		}
	}
}

func (b batch) all() []int {
	numbers := make([]int, len(b.claims))
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

func (b batch) failAll(err error) {
	for i := range b.replies {
		b.replies[i] = merge.ClaimReply{Err: err}
	}
}

// putEach puts the claims numbered one by one.
func (b batch) putEach(ctx context.Context, numbers []int) {
	parallel(singles, len(numbers), func(k int) {
		i := numbers[k]
		b.replies[i].Standing, b.replies[i].Err = b.putOne(ctx, b.claims[i])
	})
}

func (s *Store) putOne(ctx context.Context, claim merge.Claim) (merge.Claim, error) {
	if err := ctx.Err(); err != nil {
		return merge.Claim{}, failure(ctx, "PutItem", s.dedup, errors.New("not sent"))
	}
	standing, err := s.putIf(ctx, claimRow(claim), absent, nil)
	return s.standing(claim, standing, err)
}

// insert is the statement that puts a row where there is none. Names are single-quoted and the table double-quoted
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html); values are parameters.
func (s *Store) insert(r row) types.BatchStatementRequest {
	names := []string{attrPK, attrToken, attrLease, attrTTL}
	if _, ok := r[attrSource]; ok {
		names = append(names, attrSource)
	}
	statement := fmt.Sprintf(`INSERT INTO "%s" VALUE {`, s.dedup)
	parameters := make([]types.AttributeValue, len(names))
	for i, name := range names {
		if i > 0 {
			statement += ", "
		}
		statement += "'" + name + "': ?"
		parameters[i] = r[name]
	}
	return types.BatchStatementRequest{
		Statement: aws.String(statement + "}"), Parameters: parameters,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// readRows reads at most 100 rows of the dedup table by key, strongly consistent, and asks again for those that
// DynamoDB did not get to. It returns the rows that it has, and an error if some could not be read.
func (s *Store) readRows(ctx context.Context, keys []string) (map[string]row, error) {
	const operation = "BatchGetItem"
	found := map[string]row{}
	ask1 := func(asked types.KeysAndAttributes) (types.KeysAndAttributes, error) {
		out, err := ask(ctx, &s.link, operation, s.client.BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{s.dedup: asked},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			return asked, failure(ctx, operation, s.dedup, err)
		}
		for _, r := range out.Responses[s.dedup] {
			if pk, err := textOf(r, attrPK); err == nil {
				found[pk] = r
			}
		}
		return out.UnprocessedKeys[s.dedup], nil
	}
	asked := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, key := range slices.Sorted(slices.Values(keys)) {
		asked.Keys = append(asked.Keys, row{attrPK: text(key)})
	}
	for round := range maxRounds {
		if err := s.wait(ctx, round); err != nil {
			return found, failure(ctx, operation, s.dedup, err)
		}
		rest, err := ask1(asked)
		if err != nil || len(rest.Keys) == 0 {
			return found, err
		}
		asked = rest
	}
	return found, judged(operation, s.dedup, "", throttled, fmt.Errorf("%d keys were left unprocessed", len(asked.Keys)))
}
