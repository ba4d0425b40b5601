package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// consumed adds up the capacity that a response reports.
func consumed(response any) (usage Usage) {
	var one *types.ConsumedCapacity
	var many []types.ConsumedCapacity
	units := &usage.Write
	switch out := response.(type) {
	case *dynamodb.GetItemOutput:
		one, units = out.ConsumedCapacity, &usage.Read
	case *dynamodb.QueryOutput:
		one, units = out.ConsumedCapacity, &usage.Read
	case *dynamodb.BatchGetItemOutput:
		many, units = out.ConsumedCapacity, &usage.Read
	case *dynamodb.PutItemOutput:
		one = out.ConsumedCapacity
	case *dynamodb.UpdateItemOutput:
		one = out.ConsumedCapacity
	case *dynamodb.DeleteItemOutput:
		one = out.ConsumedCapacity
	case *dynamodb.BatchExecuteStatementOutput:
		many = out.ConsumedCapacity
	case *dynamodb.TransactWriteItemsOutput:
		many = out.ConsumedCapacity
	}
	if one != nil {
		many = append(many, *one)
	}
	for _, c := range many {
		*units += aws.ToFloat64(c.CapacityUnits)
	}
	return usage
}
