package table

import (
	"context"
	"sync"
	"time"

	"abacus/shared/local/wire"

	"github.com/go-json-experiment/json"
)

// Config says how a stand-in behaves. The zero value is a healthy one on the machine's clock.
type Config struct {
	// Now is the clock for TTL, the ten minutes of a request token and the state of a new table; nil means time.Now.
	Now func() time.Time
	// Latency is added to every call before it is applied, outside any lock.
	Latency time.Duration
	// Creating is how long a new table stays CREATING, and unusable, by the clock.
	Creating time.Duration
	// Hold, if set, is called by each transactional write between the check of its actions and their commit. Until it
	// returns the transaction holds its items: other transactions on them are cancelled with TransactionConflict, single
	// writes answered with TransactionConflictException, and a repeat with the same token with
	// TransactionInProgressException. It may sleep or wait for a test.
	Hold func(context.Context)
	// Part, if set, decides the fate of each part of a batch. It is called by many goroutines, and must not call the
	// stand-in.
	Part func(Part) PartFault
	// DuplicateShowsItem lets an INSERT that asks for ALL_OLD show the item that was in its way; AWS does not document it.
	DuplicateShowsItem bool
	// Changed, if set, learns of every change of an item, in the order in which they are committed; a write that leaves
	// its item as it was is none. It is called with the stand-in locked and must not call it.
	Changed func(Change)
}

// Part is one element of a BatchGetItem, BatchWriteItem or BatchExecuteStatement.
type Part struct {
	Operation string // such as "BatchWriteItem"
	Index     int    // in the request's order; within one table for BatchGetItem and BatchWriteItem
	Table     string
	Key       Item // for a statement: the whole item
}

// PartFault says how one part of a batch goes wrong. The zero value is a healthy one. In BatchGetItem and
// BatchWriteItem any error makes the part unprocessed; in BatchExecuteStatement its code, less "Exception", becomes the
// statement's.
type PartFault struct {
	Before *wire.Error // instead of applying the part
	After  *wire.Error // after applying it
}

// Change is one committed change of one item.
type Change struct {
	Table    string
	Key      Item
	Old, New Item // nil where there was or is none
	Expired  bool // the item was deleted because its TTL had passed
}

// Service is one stand-in with its own tables: an http.Handler for the DynamoDB operations that Abacus uses. Its
// embedded wire.Service has the fault switch of whole calls.
type Service struct {
	wire.Service
	config Config

	mu     sync.RWMutex // guards the next two and all they hold
	tables map[string]*table
	tokens tokens

	meter sync.Mutex // guards used
	used  Units
}

// Units are capacity units, as AWS bills them.
type Units struct{ Read, Write float64 }

// New returns a stand-in without tables.
func New(config Config) *Service {
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Service{config: config, tables: make(map[string]*table)}
	s.Target, s.Version, s.Namespace = "DynamoDB_20120810", "1.0", "com.amazonaws.dynamodb.v20120810"
	s.Operations = map[string]wire.Operation{
		"CreateTable":           operation(s, s.createTable),
		"DescribeTable":         operation(s, s.describeTable),
		"DeleteTable":           operation(s, s.deleteTable),
		"ListTables":            operation(s, s.listTables),
		"UpdateTimeToLive":      operation(s, s.updateTimeToLive),
		"DescribeTimeToLive":    operation(s, s.describeTimeToLive),
		"GetItem":               operation(s, s.getItem),
		"PutItem":               operation(s, s.putItem),
		"UpdateItem":            operation(s, s.updateItem),
		"DeleteItem":            operation(s, s.deleteItem),
		"Query":                 operation(s, s.query),
		"Scan":                  operation(s, s.scan),
		"BatchGetItem":          operation(s, s.batchGetItem),
		"BatchWriteItem":        operation(s, s.batchWriteItem),
		"TransactWriteItems":    operation(s, s.transactWriteItems),
		"TransactGetItems":      operation(s, s.transactGetItems),
		"ExecuteStatement":      operation(s, s.executeStatement),
		"BatchExecuteStatement": operation(s, s.batchExecuteStatement),
	}
	return s
}

// Used returns what all calls have consumed so far, failed ones included as AWS bills them.
func (s *Service) Used() Units {
	s.meter.Lock()
	defer s.meter.Unlock()
	return s.used
}

// operation wraps one operation's typed form.
func operation[Q, A any](s *Service, answer func(context.Context, *Q) (*A, error)) wire.Operation {
	return func(ctx context.Context, body []byte) (any, error) {
		if s.config.Latency > 0 {
			time.Sleep(s.config.Latency)
		}
		request := new(Q)
		if err := decode(body, request); err != nil {
			return nil, err
		}
		if r, ok := any(request).(interface{ keepBody([]byte) }); ok {
			r.keepBody(body)
		}
		a, err := answer(ctx, request)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(a)
		return wire.Encoded(text), err
	}
}

// table returns a table that can be used. The caller holds the lock.
func (s *Service) table(name string) (*table, error) {
	if err := checkName("TableName", name); err != nil {
		return nil, err
	}
	t, found := s.tables[name]
	if !found || t.status(s.config.Now()) != statusActive {
		return nil, wire.Errorf("ResourceNotFoundException", "Requested resource not found")
	}
	return t, nil
}

// anyTable returns a table in any state.
func (s *Service) anyTable(name string) (*table, error) {
	if err := checkName("TableName", name); err != nil {
		return nil, err
	}
	t, found := s.tables[name]
	if !found {
		return nil, wire.Errorf("ResourceNotFoundException", "Requested resource not found: Table: %s not found", name)
	}
	return t, nil
}
