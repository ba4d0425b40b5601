package table

import (
	"context"
	"strings"

	"abacus/shared/local/wire"
)

const (
	maxStatements = 25
	maxStatement  = 8192 // bytes
)

type statement struct {
	Statement                           string
	Parameters                          []Value
	ReturnValuesOnConditionCheckFailure string
}

type executeRequest struct {
	statement
	ReturnConsumedCapacity string
}

type executeAnswer struct {
	Items            []Item
	ConsumedCapacity *consumed `json:",omitzero"`
}

func (s *Service) executeStatement(_ context.Context, q *executeRequest) (*executeAnswer, error) {
	if err := enum("returnConsumedCapacity", q.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE"); err != nil {
		return nil, err
	}
	w, err := q.insert()
	if err != nil {
		return nil, err
	}
	_, _, b, err := s.apply(w)
	if err != nil {
		return nil, s.duplicate(err)
	}
	return &executeAnswer{Items: []Item{}, ConsumedCapacity: b.reportOne(q.ReturnConsumedCapacity)}, nil
}

type batchExecuteRequest struct {
	Statements []struct {
		statement
		ConsistentRead bool
	}
	ReturnConsumedCapacity string
}

type batchExecuteAnswer struct {
	Responses        []statementAnswer
	ConsumedCapacity []consumed `json:",omitempty"`
}

type statementAnswer struct {
	TableName string          `json:",omitzero"`
	Error     *statementError `json:",omitzero"`
}

type statementError struct {
	Code    string
	Message string
	Item    Item `json:",omitzero"`
}

func (s *Service) batchExecuteStatement(_ context.Context, q *batchExecuteRequest) (*batchExecuteAnswer, error) {
	if err := enum("returnConsumedCapacity", q.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE"); err != nil {
		return nil, err
	}
	if err := checkLength("statements", q.Statements, maxStatements); err != nil {
		return nil, err
	}
	answer := &batchExecuteAnswer{Responses: make([]statementAnswer, len(q.Statements))}
	b := make(bill)
	for n := range q.Statements {
		one := &answer.Responses[n]
		w, err := q.Statements[n].insert()
		if err == nil {
			one.TableName = w.tableName
			err = s.executePart(w, n, b)
		}
		if err != nil {
			if one.Error = statementErrorOf(err); one.Error.Code == "ValidationError" {
				one.TableName = "" // it is told of statements that ran
			}
		}
	}
	answer.ConsumedCapacity = b.report(q.ReturnConsumedCapacity, false)
	return answer, nil
}

func (s *Service) executePart(w *write, n int, b bill) error {
	fault := s.partFault(Part{"BatchExecuteStatement", n, w.tableName, w.item})
	if fault.Before != nil {
		return fault.Before
	}
	_, _, cost, err := s.apply(w)
	if err != nil {
		return s.duplicate(err)
	}
	b.add(cost)
	if fault.After != nil {
		return fault.After
	}
	return nil
}

// insert reads an INSERT statement, the only one that this stand-in knows: a put of an item whose key must be free
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html).
func (q *statement) insert() (*write, error) {
	if n := len(q.Statement); n < 1 || n > maxStatement {
		return nil, invalid("1 validation error detected: Value at 'statement' failed to satisfy constraint: "+
			"Member must have length from 1 to %d; it has %d", maxStatement, n)
	}
	table, item, err := parseInsert(q.Statement, q.Parameters)
	if err != nil {
		return nil, err
	}
	w := &write{action: actionPut, tableName: table, item: item, condition: vacant{}}
	return w, w.parse(&conditional{ReturnValuesOnConditionCheckFailure: q.ReturnValuesOnConditionCheckFailure}, nil)
}

// vacant holds where there is no item.
type vacant struct{}

func (vacant) holds(item Item) bool { return item == nil }

// duplicate turns the failed condition of an INSERT into its own error.
func (s *Service) duplicate(err error) error {
	if !conditionFailed(err) {
		return err
	}
	twice := wire.Errorf("DuplicateItemException", "Duplicate primary key exists in table")
	if s.config.DuplicateShowsItem {
		twice.Fields = err.(*wire.Error).Fields
	}
	return twice
}

// statementErrorOf names an error as a batch of statements does
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html).
func statementErrorOf(err error) *statementError {
	modelled, ok := err.(*wire.Error)
	if !ok {
		return &statementError{Code: "InternalServerError", Message: err.Error()}
	}
	code := strings.TrimSuffix(modelled.Code, "Exception")
	switch code {
	case "Validation", "Throttling":
		code += "Error"
	}
	item, _ := modelled.Fields["Item"].(Item)
	return &statementError{Code: code, Message: modelled.Message, Item: item}
}
