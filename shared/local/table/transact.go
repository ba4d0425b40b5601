package table

import (
	"context"
	"strings"

	"abacus/shared/local/wire"
)

// Limits of a transaction
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html).
const (
	maxActions          = 100
	maxTransactionBytes = 4 << 20
)

type transactRequest struct {
	TransactItems               []transactItem
	ClientRequestToken          string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string

	body []byte
}

func (q *transactRequest) keepBody(body []byte) { q.body = body }

// transactItem holds exactly one of its members.
type transactItem struct {
	Put *struct {
		TableName string
		Item      Item
		conditional
	}
	Update *struct {
		TableName        string
		Key              Item
		UpdateExpression *string
		conditional
	}
	Delete, ConditionCheck *struct {
		TableName string
		Key       Item
		conditional
	}
}

type transactAnswer struct {
	ConsumedCapacity []consumed `json:",omitempty"`
}

// write turns the one member into a write.
func (t *transactItem) write() (*write, error) {
	members := 0
	var w *write
	var c *conditional
	var update *string
	if p := t.Put; p != nil {
		members, w, c = members+1, &write{action: actionPut, tableName: p.TableName, item: p.Item}, &p.conditional
	}
	if u := t.Update; u != nil {
		members, w, c = members+1, &write{action: actionUpdate, tableName: u.TableName, item: u.Key}, &u.conditional
		if update = u.UpdateExpression; update == nil {
			return nil, invalid("The parameter 'UpdateExpression' is required but was not present in the request")
		}
	}
	if d := t.Delete; d != nil {
		members, w, c = members+1, &write{action: actionDelete, tableName: d.TableName, item: d.Key}, &d.conditional
	}
	if k := t.ConditionCheck; k != nil {
		members, w, c = members+1, &write{action: actionCheck, tableName: k.TableName, item: k.Key}, &k.conditional
		if c.ConditionExpression == nil {
			return nil, invalid("The parameter 'ConditionExpression' is required but was not present in the request")
		}
	}
	if members != 1 {
		return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	return w, w.parse(c, update)
}

func (s *Service) transactWriteItems(ctx context.Context, q *transactRequest) (*transactAnswer, error) {
	writes, err := q.writes()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.locateAll(writes); err != nil {
		return nil, err
	}
	switch repeat, err := s.tokens.begin(q.ClientRequestToken, q.body, s.config.Now()); {
	case err != nil:
		return nil, err
	case repeat:
		return &transactAnswer{s.billRepeat(writes).report(q.ReturnConsumedCapacity, true)}, nil
	}
	b, err := s.transact(ctx, writes)
	s.tokens.end(q.ClientRequestToken, err == nil, s.config.Now())
	if err != nil {
		return nil, err
	}
	return &transactAnswer{b.report(q.ReturnConsumedCapacity, true)}, nil
}

func (q *transactRequest) writes() ([]*write, error) {
	if err := checkLength("transactItems", q.TransactItems, maxActions); err != nil {
		return nil, err
	}
	want := answering{"", q.ReturnConsumedCapacity, q.ReturnItemCollectionMetrics}
	if err := want.check(); err != nil {
		return nil, err
	}
	if len(q.ClientRequestToken) > 36 {
		return nil, invalid("1 validation error detected: Value at 'clientRequestToken' failed to satisfy constraint: " +
			"Member must have length less than or equal to 36")
	}
	writes := make([]*write, len(q.TransactItems))
	for n := range q.TransactItems {
		var err error
		if writes[n], err = q.TransactItems[n].write(); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// locateAll finds the writes' places and refuses two on one item.
func (s *Service) locateAll(writes []*write) error {
	type spot struct {
		table *table
		place string
	}
	seen := make(map[spot]bool, len(writes))
	for _, w := range writes {
		misfit, err := s.find(w)
		if err != nil {
			return err
		}
		if w.misfit = misfit; misfit != nil {
			continue
		}
		if at := (spot{w.table, w.place}); !seen[at] {
			seen[at] = true
			continue
		}
		return invalid("Transaction request cannot include multiple operations on one item")
	}
	return nil
}

// transact applies all writes or none. The caller holds the write lock, which is given back while Hold runs.
func (s *Service) transact(ctx context.Context, writes []*write) (bill, error) {
	if err := s.check(writes); err != nil {
		return nil, err
	}
	if s.config.Hold != nil {
		// The items are held, so nothing that was checked can change before the lock is back.
		for _, w := range writes {
			w.table.held[w.place] = true
		}
		s.mu.Unlock()
		s.config.Hold(ctx)
		s.mu.Lock()
		for _, w := range writes {
			delete(w.table.held, w.place)
		}
	}
	b := make(bill)
	for _, w := range writes {
		b.write(w.table, w.place, w.old, w.result, 2)
		s.commit(w, w.old, w.result)
	}
	s.settle(b)
	return b, nil
}

// check cancels a transaction that meets another or whose actions cannot all be done, and notes in each write what it
// does.
func (s *Service) check(writes []*write) error {
	reasons := make([]reason, len(writes))
	b := make(bill)
	total, cancelled := 0, false
	for n, w := range writes {
		reasons[n].Code = "None"
		if w.misfit != nil {
			reasons[n], cancelled = reasonOf(w.misfit), true
			continue
		}
		if w.table.held[w.place] {
			reasons[n], cancelled = reason{Code: "TransactionConflict", Message: "Transaction is ongoing for the item"}, true
			continue
		}
		var err error
		w.old = w.table.rows.get(w.place)
		if w.result, err = w.next(w.old); err != nil {
			reasons[n], cancelled = reasonOf(err), true
		}
		total += max(w.old.size(), w.result.size())
		b.of(w.table.name).table.Write += 2 * writeUnits(w.old.size(), w.result.size(), w.item.size())
	}
	switch {
	case cancelled:
		s.settle(b)
		return canceled(reasons)
	case total > maxTransactionBytes:
		return invalid("Transaction size exceeds the limit of 4 MB: it has %d bytes", total)
	}
	return nil
}

// reason is why one action cancels its transaction.
type reason struct {
	Code    string
	Message string `json:",omitzero"`
	Item    Item   `json:",omitzero"`
}

func reasonOf(err error) reason {
	modelled, ok := err.(*wire.Error)
	switch {
	case ok && conditionFailed(err):
		item, _ := modelled.Fields["Item"].(Item)
		return reason{"ConditionalCheckFailed", modelled.Message, item}
	case ok:
		return reason{Code: "ValidationError", Message: modelled.Message}
	}
	return reason{Code: "InternalServerError", Message: err.Error()}
}

// Canceled returns the TransactionCanceledException whose reasons, in the order of the request's actions, have these
// codes: what a Fault answers to cancel a transaction.
func Canceled(codes ...string) *wire.Error {
	reasons := make([]reason, len(codes))
	for n, code := range codes {
		reasons[n].Code = code
	}
	return canceled(reasons)
}

func canceled(reasons []reason) *wire.Error {
	codes := make([]string, len(reasons))
	for n, r := range reasons {
		codes[n] = r.Code
	}
	err := wire.Errorf("TransactionCanceledException",
		"Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))
	err.Fields = map[string]any{"CancellationReasons": reasons}
	return err
}

// billRepeat bills the repeat of a transaction that was done before: the reads that find it out
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html).
func (s *Service) billRepeat(writes []*write) bill {
	b := make(bill)
	for _, w := range writes {
		b.of(w.table.name).table.Read += 2 * readUnits(w.table.rows.get(w.place).size(), true)
	}
	s.settle(b)
	return b
}
