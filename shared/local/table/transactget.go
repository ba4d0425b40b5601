package table

import (
	"context"
)

type transactGetRequest struct {
	TransactItems          []transactGetItem
	ReturnConsumedCapacity string
}

type transactGetItem struct {
	Get *struct {
		TableName                string
		Key                      Item
		ProjectionExpression     *string
		ExpressionAttributeNames map[string]string
	}
}

type transactGetAnswer struct {
	Responses        []itemAnswer
	ConsumedCapacity []consumed `json:",omitempty"`
}

type itemAnswer struct {
	Item Item `json:",omitzero"`
}

// transactGetItems reads items as they stand together. It meets transactions that hold one of them; everything else
// here is over before it can begin.
func (s *Service) transactGetItems(_ context.Context, q *transactGetRequest) (*transactGetAnswer, error) {
	if err := checkLength("transactItems", q.TransactItems, maxActions); err != nil {
		return nil, err
	}
	if err := enum("returnConsumedCapacity", q.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE"); err != nil {
		return nil, err
	}
	keeps := make([]*selection, len(q.TransactItems))
	for n, t := range q.TransactItems {
		if t.Get == nil {
			return nil, invalid("The parameter 'Get' is required but was not present in the request")
		}
		var err error
		if keeps[n], err = parseProjection(t.Get.ProjectionExpression, t.Get.ExpressionAttributeNames); err != nil {
			return nil, err
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.readTogether(q, keeps)
}

func (s *Service) readTogether(q *transactGetRequest, keeps []*selection) (*transactGetAnswer, error) {
	answer := &transactGetAnswer{Responses: make([]itemAnswer, len(keeps))}
	reasons := make([]reason, len(keeps))
	seen := make(map[string]bool)
	b := make(bill)
	total, met := 0, false
	for n, t := range q.TransactItems {
		item, place, err := s.read(t.Get.TableName, t.Get.Key)
		if err != nil {
			return nil, err
		}
		if spot := t.Get.TableName + "\x00" + place; seen[spot] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		} else {
			seen[spot] = true
		}
		if reasons[n].Code = "None"; s.tables[t.Get.TableName].held[place] {
			reasons[n], met = reason{Code: "TransactionConflict", Message: "Transaction is ongoing for the item"}, true
		}
		total += item.size()
		b.of(t.Get.TableName).table.Read += 2 * readUnits(item.size(), true)
		answer.Responses[n].Item = keeps[n].of(item)
	}
	s.settle(b)
	switch {
	case met:
		return nil, canceled(reasons)
	case total > maxTransactionBytes:
		return nil, invalid("Transaction size exceeds the limit of 4 MB: it has %d bytes", total)
	}
	answer.ConsumedCapacity = b.report(q.ReturnConsumedCapacity, true)
	return answer, nil
}
