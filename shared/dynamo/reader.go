package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Reader reads counters back. Rows past their ttl count as absent. Reads are eventually consistent, and so may miss the
// last second or so, unless Consistent is set; either way a Query may see some adds of a transaction and not yet the
// others. A read that DynamoDB turns away is tried six times in all.
type Reader struct {
	// Consistent makes reads see every commit that was answered before they began, at twice the cost.
	Consistent bool

	link
	counters string
	parallel int
}

// Count is the value of one cell.
type Count struct {
	Cell tally.Cell
	N    tally.Sum
}

// NewReader returns a Reader, or every fault of o at once. It makes no request and needs no dedup table.
func NewReader(o Options) (*Reader, error) {
	l, err := o.complete(false)
	if err != nil {
		return nil, err
	}
	return &Reader{link: l, counters: o.Counters, parallel: o.Parallel}, nil
}

// Get returns the value of one cell; 0 where nothing was counted, or what was has expired.
func (r *Reader) Get(ctx context.Context, cell tally.Cell) (tally.Sum, error) {
	prefix, err := bucketPrefix(cell.Window, cell.Bucket)
	if err != nil {
		return tally.Sum{}, fmt.Errorf("read counter %s: %w", cell.Counter, err)
	}
	counts, err := r.query(ctx, cell.Counter, cell.Key, startsWith(prefix))
	if err != nil || len(counts) == 0 {
		return tally.Sum{}, err
	}
	return counts[0].N, nil
}

// GetMany returns the values of many cells, in their order.
func (r *Reader) GetMany(ctx context.Context, cells []tally.Cell) ([]tally.Sum, error) {
	sums := make([]tally.Sum, len(cells))
	within, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	parallel(r.parallel, len(cells), func(i int) {
		if within.Err() != nil {
			return
		}
		var err error
		if sums[i], err = r.Get(within, cells[i]); err != nil {
			fail(err)
		}
	})
	if err := context.Cause(within); err != nil {
		return nil, err
	}
	return sums, nil
}

// Window returns every bucket of one key in one window, oldest first.
func (r *Reader) Window(ctx context.Context, counter, key, window string) ([]Count, error) {
	return r.query(ctx, counter, key, startsWith(window+"|"))
}

// Range returns the buckets of one key in one window that start at from or later and before until, in Unix seconds,
// oldest first.
func (r *Reader) Range(ctx context.Context, counter, key, window string, from, until int64) ([]Count, error) {
	if from >= until {
		return nil, nil
	}
	low, errLow := bucketText(window, from)
	high, errHigh := bucketText(window, until)
	if err := errors.Join(errLow, errHigh); err != nil {
		return nil, fmt.Errorf("read counter %s: %w", counter, err)
	}
	// Every row of a bucket sorts after the bucket's own text, and those of until are not wanted.
	return r.query(ctx, counter, key, sorted{
		"#sk BETWEEN :low AND :high", row{":low": text(window + "|" + low), ":high": text(window + "|" + high)},
	})
}

// sorted is a condition on the sort key.
type sorted struct {
	expression string
	values     row
}

func startsWith(prefix string) sorted {
	return sorted{"begins_with(#sk, :prefix)", row{":prefix": text(prefix)}}
}

// query follows a Query page by page and sums the slots of each bucket.
func (r *Reader) query(ctx context.Context, counter, key string, which sorted) ([]Count, error) {
	pk := counterKey(counter, key)
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(r.counters),
		KeyConditionExpression:    aws.String("#pk = :pk AND " + which.expression),
		ExpressionAttributeNames:  map[string]string{"#pk": attrPK, "#sk": attrSK},
		ExpressionAttributeValues: row{":pk": text(pk)},
		ConsistentRead:            aws.Bool(r.Consistent),
		ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
	}
	for name, value := range which.values {
		in.ExpressionAttributeValues[name] = value
	}
	var counts []Count
	for {
		out, err := r.page(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			if counts, err = r.add(counts, counter, key, item); err != nil {
				return nil, err
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return counts, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// page makes one Query, again where it did not go through.
func (r *Reader) page(ctx context.Context, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	const operation = "Query"
	var last error
	for round := range maxRounds {
		if err := r.wait(ctx, round); err != nil {
			return nil, failure(ctx, operation, r.counters, errors.Join(last, err))
		}
		out, err := ask(ctx, &r.link, operation, r.client.Query, in)
		if err == nil {
			return out, nil
		}
		last = err
		if ctx.Err() != nil || classify(err) == permanent {
			break
		}
	}
	return nil, failure(ctx, operation, r.counters, last)
}

// add adds one row to the counts so far; rows come in the order of their sort keys.
func (r *Reader) add(counts []Count, counter, key string, item row) ([]Count, error) {
	sk, err := textOf(item, attrSK)
	if err != nil {
		return nil, r.spoilt(counter, key, "", err)
	}
	window, bucket, err := bucketOf(sk)
	if err != nil {
		return nil, r.spoilt(counter, key, sk, err)
	}
	if _, ok := item[attrTTL]; ok {
		ttl, err := numberOf(item, attrTTL)
		if err != nil {
			return nil, r.spoilt(counter, key, sk, err)
		}
		if ttl <= r.now().Unix() {
			return counts, nil
		}
	}
	n, err := sumOf(item)
	if err != nil {
		return nil, r.spoilt(counter, key, sk, err)
	}
	cell := tally.Cell{Counter: counter, Key: key, Window: window, Bucket: bucket}
	if last := len(counts) - 1; last >= 0 && counts[last].Cell == cell {
		if counts[last].N, err = plus(counts[last].N, n); err != nil {
			return nil, r.spoilt(counter, key, sk, err)
		}
		return counts, nil
	}
	return append(counts, Count{cell, n}), nil
}

func sumOf(item row) (tally.Sum, error) {
	value, ok := item[attrN].(*types.AttributeValueMemberN)
	if !ok {
		return tally.Sum{}, fmt.Errorf("attribute %q is not a number", attrN)
	}
	n, err := tally.ParseSum(value.Value)
	if err != nil {
		return tally.Sum{}, fmt.Errorf("attribute %q: %w", attrN, err)
	}
	return n, nil
}

// plus is a + b, or an error where a Sum cannot hold it: slots have 38 digits each, and so may sum to more.
func plus(a, b tally.Sum) (tally.Sum, error) {
	sum := a.Plus(b)
	if sum.Big().Cmp(new(big.Int).Add(a.Big(), b.Big())) != 0 {
		return tally.Sum{}, fmt.Errorf("sum of the slots: %w", tally.ErrRange)
	}
	return sum, nil
}

// spoilt reports a row that this package did not write.
func (r *Reader) spoilt(counter, key, sk string, why error) error {
	return fmt.Errorf("table %s: row %q, %q is malformed: %w; find out who else writes to the table and mend the row",
		r.counters, counterKey(counter, key), sk, why)
}
