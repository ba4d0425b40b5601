package table

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"abacus/shared/local/wire"
)

// tableDefinition is what CreateTable is asked for.
type tableDefinition struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	BillingMode               string            `json:",omitzero"`
	ProvisionedThroughput     *throughput       `json:",omitzero"`
	GlobalSecondaryIndexes    []indexDefinition `json:",omitempty"`
	DeletionProtectionEnabled bool              `json:",omitzero"`
	TableClass                string            `json:",omitzero"`
	SSESpecification          *encryptionWish   `json:",omitzero"`
	StreamSpecification       *streamWish       `json:",omitzero"`
	Tags                      []tag             `json:",omitempty"`
}

type attributeDefinition struct{ AttributeName, AttributeType string }

type keyElement struct{ AttributeName, KeyType string }

type throughput struct{ ReadCapacityUnits, WriteCapacityUnits int64 }

type indexDefinition struct {
	IndexName             string
	KeySchema             []keyElement
	Projection            projectionDefinition
	ProvisionedThroughput *throughput `json:",omitzero"`
}

type projectionDefinition struct {
	ProjectionType   string   `json:",omitzero"`
	NonKeyAttributes []string `json:",omitempty"`
}

type encryptionWish struct {
	Enabled        bool
	SSEType        string `json:",omitzero"`
	KMSMasterKeyId string `json:",omitzero"`
}

type streamWish struct {
	StreamEnabled  bool
	StreamViewType string `json:",omitzero"`
}

type tag struct{ Key, Value string }

// tableDescription is how a table is told about.
type tableDescription struct {
	TableName                 string
	TableArn                  string
	TableStatus               string
	CreationDateTime          float64
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	ItemCount                 int
	TableSizeBytes            int
	BillingModeSummary        *billingMode       `json:",omitzero"`
	ProvisionedThroughput     throughput         `json:""`
	DeletionProtectionEnabled bool               `json:""`
	GlobalSecondaryIndexes    []indexDescription `json:",omitempty"`
}

type billingMode struct{ BillingMode string }

type indexDescription struct {
	IndexName             string
	IndexArn              string
	IndexStatus           string
	KeySchema             []keyElement
	Projection            projectionDefinition
	ItemCount             int
	ProvisionedThroughput throughput
}

const arnPrefix = "arn:aws:dynamodb:us-east-1:000000000000:table/"

func (t *table) describe(now time.Time) tableDescription {
	d := tableDescription{
		TableName: t.name, TableArn: arnPrefix + t.name, TableStatus: t.status(now),
		CreationDateTime:     float64(t.created.UnixMilli()) / 1000,
		AttributeDefinitions: t.definition.AttributeDefinitions, KeySchema: t.definition.KeySchema,
		ItemCount: t.rows.count, TableSizeBytes: t.bytes,
		DeletionProtectionEnabled: t.definition.DeletionProtectionEnabled,
	}
	if t.definition.BillingMode == "PAY_PER_REQUEST" {
		d.BillingModeSummary = &billingMode{"PAY_PER_REQUEST"}
	} else {
		d.ProvisionedThroughput = *t.definition.ProvisionedThroughput
	}
	for n, i := range t.definition.GlobalSecondaryIndexes {
		about := indexDescription{
			IndexName: i.IndexName, IndexArn: arnPrefix + t.name + "/index/" + i.IndexName, IndexStatus: d.TableStatus,
			KeySchema: i.KeySchema, Projection: i.Projection, ItemCount: t.indexes[n].rows.count,
		}
		if i.ProvisionedThroughput != nil {
			about.ProvisionedThroughput = *i.ProvisionedThroughput
		}
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, about)
	}
	return d
}

type createAnswer struct{ TableDescription tableDescription }

func (s *Service) createTable(_ context.Context, q *tableDefinition) (*createAnswer, error) {
	t, err := newTable(q)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[q.TableName] != nil {
		return nil, wire.Errorf("ResourceInUseException", "Table already exists: %s", q.TableName)
	}
	t.created = s.config.Now()
	t.activeAfter = t.created.Add(s.config.Creating)
	s.tables[q.TableName] = t
	answer := &createAnswer{t.describe(t.created)}
	answer.TableDescription.TableStatus = "CREATING" // as AWS answers, however soon the table is ready
	return answer, nil
}

type tableRequest struct{ TableName string }

type describeAnswer struct{ Table tableDescription }

func (s *Service) describeTable(_ context.Context, q *tableRequest) (*describeAnswer, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.anyTable(q.TableName)
	if err != nil {
		return nil, err
	}
	return &describeAnswer{t.describe(s.config.Now())}, nil
}

func (s *Service) deleteTable(_ context.Context, q *tableRequest) (*createAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.anyTable(q.TableName)
	if err != nil {
		return nil, err
	}
	if t.definition.DeletionProtectionEnabled {
		return nil, invalid("Resource cannot be deleted as it is currently protected against deletion. "+
			"Disable deletion protection first: table %s", t.name)
	}
	delete(s.tables, t.name)
	answer := &createAnswer{t.describe(s.config.Now())}
	answer.TableDescription.TableStatus = "DELETING"
	return answer, nil
}

type listRequest struct {
	Limit                   *int
	ExclusiveStartTableName string
}

type listAnswer struct {
	TableNames             []string
	LastEvaluatedTableName string `json:",omitzero"`
}

func (s *Service) listTables(_ context.Context, q *listRequest) (*listAnswer, error) {
	limit := 100
	if q.Limit != nil {
		limit = *q.Limit
	}
	if limit < 1 || limit > 100 {
		return nil, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: "+
			"Member must have a value from 1 to 100", limit)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	answer := &listAnswer{TableNames: []string{}}
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		if name <= q.ExclusiveStartTableName {
			continue
		}
		if len(answer.TableNames) == limit {
			answer.LastEvaluatedTableName = answer.TableNames[limit-1]
			break
		}
		answer.TableNames = append(answer.TableNames, name)
	}
	return answer, nil
}

// checkName refuses the name of a table or an index that is not 3 to 255 letters, digits, '_', '-' or '.'. A table's
// ARN, which DynamoDB takes in place of its name, is not a name here.
func checkName(member, name string) error {
	if len(name) < 3 || len(name) > 255 {
		return invalid("%s must be at least 3 characters long and at most 255 characters long", member)
	}
	for i := range len(name) {
		if c := name[i]; !wordByte(c) && c != '-' && c != '.' {
			return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
				"Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+", name, lowerFirst(member))
		}
	}
	return nil
}

func lowerFirst(s string) string { return fmt.Sprintf("%c%s", s[0]|0x20, s[1:]) }
