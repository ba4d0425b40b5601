package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attribute names. They are in every row ever written: see the package comment.
const (
	attrPK     = "pk"
	attrSK     = "sk"
	attrTTL    = "ttl"
	attrN      = "n"
	attrToken  = "token"
	attrLease  = "lease"
	attrSource = "source"
	attrState  = "state"
	attrExcept = "except"
)

// TableSpec is the shape that a table must have. Its keys are strings.
type TableSpec struct {
	PartitionKey string
	SortKey      string // empty: none
	TTL          string // the attribute that Time to Live must be enabled on
}

// The two tables that this package keeps its rows in.
var (
	CountersTable = TableSpec{PartitionKey: attrPK, SortKey: attrSK, TTL: attrTTL}
	DedupTable    = TableSpec{PartitionKey: attrPK, TTL: attrTTL}
)

// CreateTable returns the request that makes such a table, billed on demand.
func (s TableSpec) CreateTable(name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest}
	key := func(name string, kind types.KeyType) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS,
		})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: kind})
	}
	key(s.PartitionKey, types.KeyTypeHash)
	if s.SortKey != "" {
		key(s.SortKey, types.KeyTypeRange)
	}
	return in
}

// EnableTTL returns the request that turns on Time to Live.
func (s TableSpec) EnableTTL(name string) *dynamodb.UpdateTimeToLiveInput {
	on := &types.TimeToLiveSpecification{AttributeName: aws.String(s.TTL), Enabled: aws.Bool(true)}
	return &dynamodb.UpdateTimeToLiveInput{TableName: aws.String(name), TimeToLiveSpecification: on}
}
