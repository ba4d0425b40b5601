package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// consumed adds up the capacity that a response reports.
func consumed(response any) Usage {
	var usage Usage
	read := func(c types.ConsumedCapacity) { usage.Read += aws.ToFloat64(c.CapacityUnits) }
	write := func(c types.ConsumedCapacity) { usage.Write += aws.ToFloat64(c.CapacityUnits) }
	one := func(c *types.ConsumedCapacity, add func(types.ConsumedCapacity)) {
		if c != nil {
			add(*c)
		}
	}
	each := func(cs []types.ConsumedCapacity, add func(types.ConsumedCapacity)) {
		for _, c := range cs {
			add(c)
		}
	}
	switch out := response.(type) {
	case *dynamodb.GetItemOutput:
		if out != nil {
			one(out.ConsumedCapacity, read)
		}
	case *dynamodb.QueryOutput:
		if out != nil {
			one(out.ConsumedCapacity, read)
		}
	case *dynamodb.BatchGetItemOutput:
		if out != nil {
			each(out.ConsumedCapacity, read)
		}
	case *dynamodb.PutItemOutput:
		if out != nil {
			one(out.ConsumedCapacity, write)
		}
	case *dynamodb.DeleteItemOutput:
		if out != nil {
			one(out.ConsumedCapacity, write)
		}
	case *dynamodb.BatchExecuteStatementOutput:
		if out != nil {
			each(out.ConsumedCapacity, write)
		}
	case *dynamodb.TransactWriteItemsOutput:
		if out != nil {
			each(out.ConsumedCapacity, write)
		}
	}
	return usage
}
