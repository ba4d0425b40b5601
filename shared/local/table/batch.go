package table

import (
	"context"
	"maps"
	"slices"
)

// Limits of batches
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-api).
const (
	maxBatchWrites = 25
	maxBatchReads  = 100
	maxBatchBytes  = 16 << 20
)

type batchWriteRequest struct {
	RequestItems                map[string][]batchWrite
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

// batchWrite holds exactly one of its members.
type batchWrite struct {
	PutRequest    *struct{ Item Item } `json:",omitzero"`
	DeleteRequest *struct{ Key Item }  `json:",omitzero"`
}

type batchWriteAnswer struct {
	UnprocessedItems map[string][]batchWrite
	ConsumedCapacity []consumed `json:",omitempty"`
}

func (s *Service) batchWriteItem(_ context.Context, q *batchWriteRequest) (*batchWriteAnswer, error) {
	want := answering{"", q.ReturnConsumedCapacity, q.ReturnItemCollectionMetrics}
	if err := want.check(); err != nil {
		return nil, err
	}
	writes, err := q.writes()
	if err != nil {
		return nil, err
	}
	answer := &batchWriteAnswer{UnprocessedItems: make(map[string][]batchWrite)}
	b := make(bill)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkBatch(writes); err != nil {
		return nil, err
	}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(q.RequestItems)) {
		for i, part := range q.RequestItems[name] {
			w := writes[n]
			n++
			if !s.applyPart(w, i, b) {
				answer.UnprocessedItems[name] = append(answer.UnprocessedItems[name], part)
			}
		}
	}
	answer.ConsumedCapacity = b.report(q.ReturnConsumedCapacity, false)
	return answer, nil
}

// writes returns the batch's writes by table name and then in the request's order.
func (q *batchWriteRequest) writes() ([]*write, error) {
	var writes []*write
	for _, name := range slices.Sorted(maps.Keys(q.RequestItems)) {
		if len(q.RequestItems[name]) == 0 {
			return nil, invalid("1 validation error detected: Value at 'requestItems.%s' failed to satisfy constraint: "+
				"Member must have length greater than or equal to 1", name)
		}
		for _, part := range q.RequestItems[name] {
			w := &write{tableName: name}
			switch {
			case part.PutRequest != nil && part.DeleteRequest == nil:
				w.item = part.PutRequest.Item
			case part.DeleteRequest != nil && part.PutRequest == nil:
				w.action, w.item = actionDelete, part.DeleteRequest.Key
			default:
				return nil, invalid("Supplied AttributeValue has more than one datatypes set, " +
					"must contain exactly one of the supported datatypes")
			}
			if err := w.parse(&conditional{}, nil); err != nil {
				return nil, err
			}
			writes = append(writes, w)
		}
	}
	if len(writes) == 0 {
		return nil, invalid("The batch write request list for a table cannot be null or empty")
	}
	if len(writes) > maxBatchWrites {
		return nil, invalid("Too many items requested for the BatchWriteItem call")
	}
	return writes, nil
}

// checkBatch refuses a batch of which any part could never be done. The caller holds the lock.
func (s *Service) checkBatch(writes []*write) error {
	seen := make(map[string]bool)
	total := 0
	for _, w := range writes {
		if err := s.locate(w); err != nil {
			return err
		}
		if spot := w.tableName + "\x00" + w.place; seen[spot] {
			return invalid("Provided list of item keys contains duplicates")
		} else {
			seen[spot] = true
		}
		if _, err := w.next(nil); err != nil {
			return err
		}
		total += w.item.size()
	}
	if total > maxBatchBytes {
		return invalid("The batch exceeds the limit of 16 MB: it has %d bytes", total)
	}
	return nil
}

// applyPart does one write of a batch, or reports that it stays unprocessed.
func (s *Service) applyPart(w *write, index int, b bill) bool {
	fault := s.partFault(Part{"BatchWriteItem", index, w.tableName, w.table.keys.of(w.item)})
	if fault.Before != nil {
		return false
	}
	_, _, cost, err := s.applyLocked(w)
	if err != nil {
		return false
	}
	b.add(cost)
	return fault.After == nil
}

func (s *Service) partFault(p Part) PartFault {
	if s.config.Part == nil {
		return PartFault{}
	}
	return s.config.Part(p)
}

func (b bill) add(other bill) {
	for name, t := range other {
		sum := b.of(name)
		sum.table.Read += t.table.Read
		sum.table.Write += t.table.Write
		for index, u := range t.indexes {
			sum.index(index).Read += u.Read
			sum.index(index).Write += u.Write
		}
	}
}

type batchGetRequest struct {
	RequestItems           map[string]batchGet
	ReturnConsumedCapacity string
}

type batchGet struct {
	Keys                     []Item
	ConsistentRead           bool              `json:",omitzero"`
	ProjectionExpression     *string           `json:",omitzero"`
	ExpressionAttributeNames map[string]string `json:",omitempty"`
}

type batchGetAnswer struct {
	Responses        map[string][]Item
	UnprocessedKeys  map[string]batchGet
	ConsumedCapacity []consumed `json:",omitempty"`
}

func (s *Service) batchGetItem(_ context.Context, q *batchGetRequest) (*batchGetAnswer, error) {
	if err := enum("returnConsumedCapacity", q.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE"); err != nil {
		return nil, err
	}
	keeps, err := q.check()
	if err != nil {
		return nil, err
	}
	answer := &batchGetAnswer{Responses: make(map[string][]Item), UnprocessedKeys: make(map[string]batchGet)}
	b := make(bill)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.checkDistinct(q); err != nil {
		return nil, err
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(q.RequestItems)) {
		part := q.RequestItems[name]
		answer.Responses[name] = []Item{}
		for i, key := range part.Keys {
			item, _, err := s.read(name, key)
			if err != nil {
				return nil, err
			}
			fault := s.partFault(Part{"BatchGetItem", i, name, key})
			if total += item.size(); total > maxBatchBytes || fault != (PartFault{}) {
				answer.postpone(name, part, key)
				continue
			}
			b.of(name).table.Read += readUnits(item.size(), part.ConsistentRead)
			if item != nil {
				answer.Responses[name] = append(answer.Responses[name], keeps[name].of(item))
			}
		}
	}
	s.settle(b)
	answer.ConsumedCapacity = b.report(q.ReturnConsumedCapacity, false)
	return answer, nil
}

// postpone leaves a key unprocessed.
func (a *batchGetAnswer) postpone(table string, part batchGet, key Item) {
	keys := a.UnprocessedKeys[table].Keys
	part.Keys = append(keys, key)
	a.UnprocessedKeys[table] = part
}

// check reads the projections and counts the keys.
func (q *batchGetRequest) check() (map[string]*selection, error) {
	keeps := make(map[string]*selection)
	count := 0
	for name, part := range q.RequestItems {
		if len(part.Keys) == 0 {
			return nil, invalid("1 validation error detected: Value at 'requestItems.%s.member.keys' failed to satisfy "+
				"constraint: Member must have length greater than or equal to 1", name)
		}
		var err error
		if keeps[name], err = parseProjection(part.ProjectionExpression, part.ExpressionAttributeNames); err != nil {
			return nil, err
		}
		count += len(part.Keys)
	}
	if count == 0 {
		return nil, invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: " +
			"Member must have length greater than or equal to 1")
	}
	if count > maxBatchReads {
		return nil, invalid("Too many items requested for the BatchGetItem call")
	}
	return keeps, nil
}

func (s *Service) checkDistinct(q *batchGetRequest) error {
	seen := make(map[string]bool)
	for name, part := range q.RequestItems {
		for _, key := range part.Keys {
			_, place, err := s.read(name, key)
			if err != nil {
				return err
			}
			if spot := name + "\x00" + place; seen[spot] {
				return invalid("Provided list of item keys contains duplicates")
			} else {
				seen[spot] = true
			}
		}
	}
	return nil
}
