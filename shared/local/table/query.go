package table

import (
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"math/bits"

	"abacus/shared/local/wire"
)

// maxPage is the most that a page of a Query or Scan looks at, before its filter
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html).
const maxPage = 1 << 20

// paging are the members that Query and Scan share.
type paging struct {
	TableName string
	IndexName *string
	given
	FilterExpression       *string
	ProjectionExpression   *string
	Select                 string
	Limit                  *int
	ExclusiveStartKey      Item
	ConsistentRead         bool
	ReturnConsumedCapacity string

	filter  condition
	filters map[string]bool // attributes that the filter looks at
	entered map[string]bool // attributes that the filter or the projection leads into
	keeps   *selection
	forward bool
}

type queryRequest struct {
	paging
	KeyConditionExpression *string
	ScanIndexForward       *bool
}

type scanRequest struct {
	paging
	Segment       *int
	TotalSegments *int
}

type pageAnswer struct {
	Items            []Item `json:",omitzero"`
	Count            int
	ScannedCount     int
	LastEvaluatedKey Item      `json:",omitempty"`
	ConsumedCapacity *consumed `json:",omitzero"`
}

func (s *Service) query(_ context.Context, q *queryRequest) (*pageAnswer, error) {
	p, err := q.check()
	if err != nil {
		return nil, err
	}
	if q.KeyConditionExpression == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	on, err := parse("KeyConditionExpression", *q.KeyConditionExpression, p, (*parser).condition)
	if err != nil {
		return nil, err
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	q.forward = q.ScanIndexForward == nil || *q.ScanIndexForward
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, err := s.view(&q.paging)
	if err != nil {
		return nil, err
	}
	within, err := v.keys.span(on)
	if err != nil {
		return nil, err
	}
	for _, a := range v.keys.attributes() {
		if q.filters[a.name] {
			return nil, invalid("Filter Expression can only contain non-primary key attributes: "+
				"Primary key attribute: %s", a.name)
		}
	}
	if start := q.ExclusiveStartKey; start != nil && !start[v.keys.hash.name].equal(within.hash) {
		return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	return s.page(&q.paging, v, within)
}

func (s *Service) scan(_ context.Context, q *scanRequest) (*pageAnswer, error) {
	p, err := q.check()
	if err != nil {
		return nil, err
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	within, err := q.segment()
	if err != nil {
		return nil, err
	}
	q.forward = true
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, err := s.view(&q.paging)
	if err != nil {
		return nil, err
	}
	return s.page(&q.paging, v, within)
}

// segment returns the part of the hash range that a parallel scan looks at.
func (q *scanRequest) segment() (span, error) {
	if q.Segment == nil && q.TotalSegments == nil {
		return span{}, nil
	}
	if q.Segment == nil || q.TotalSegments == nil {
		return span{}, invalid("The Segment and TotalSegments parameters are required together")
	}
	n, of := *q.Segment, *q.TotalSegments
	if of < 1 || of > 1000000 || n < 0 || n >= of {
		return span{}, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: "+
			"Segment: %d is not less than TotalSegments: %d", n, of)
	}
	bound := func(n int) string {
		if n == of {
			return ""
		}
		at, _ := bits.Div64(uint64(n), 0, uint64(of))
		return string(binary.BigEndian.AppendUint64(nil, at))
	}
	return span{low: bound(n), high: bound(n + 1)}, nil
}

// check reads the filter and the projection.
func (q *paging) check() (*placeholders, error) {
	if err := enum("returnConsumedCapacity", q.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE"); err != nil {
		return nil, err
	}
	err := enum("select", q.Select, "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
	if err != nil {
		return nil, err
	}
	if q.Limit != nil && *q.Limit < 1 {
		return nil, invalid("1 validation error detected: Value at 'Limit' failed to satisfy constraint: " +
			"Member must have value greater than or equal to 1")
	}
	switch specific := q.ProjectionExpression != nil; {
	case specific && q.Select != "" && q.Select != "SPECIFIC_ATTRIBUTES":
		return nil, invalid("Cannot specify the ProjectionExpression when choosing to get %s", q.Select)
	case !specific && q.Select == "SPECIFIC_ATTRIBUTES":
		return nil, invalid("Must specify the AttributesToGet or ProjectionExpression " +
			"when choosing to get SPECIFIC_ATTRIBUTES")
	}
	p, err := newPlaceholders(q.ExpressionAttributeNames, q.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	q.entered = p.entered
	if q.FilterExpression != nil {
		q.filter, err = parse("FilterExpression", *q.FilterExpression, p, func(p *parser) condition {
			q.filters = p.heads
			return p.condition()
		})
		if err != nil {
			return nil, err
		}
	}
	if q.ProjectionExpression != nil {
		q.keeps, err = parse("ProjectionExpression", *q.ProjectionExpression, p, (*parser).projection)
	}
	return p, err
}

// view is what a page reads: a table, or one of its indexes.
type view struct {
	table *table
	index *index // nil: the table itself
	keys  keys
	rows  *rows
}

func (s *Service) view(q *paging) (view, error) {
	t, err := s.table(q.TableName)
	if err != nil {
		return view{}, err
	}
	if q.IndexName == nil {
		if q.Select == "ALL_PROJECTED_ATTRIBUTES" {
			return view{}, invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
		}
		return view{table: t, keys: t.keys, rows: &t.rows}, nil
	}
	for _, i := range t.indexes {
		switch {
		case i.name != *q.IndexName:
			continue
		case q.ConsistentRead:
			return view{}, invalid("Consistent reads are not supported on global secondary indexes")
		case q.Select == "ALL_ATTRIBUTES" && i.keeps != nil:
			return view{}, invalid("One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for "+
				"global secondary index %s because its projection type is not ALL", i.name)
		}
		return view{table: t, index: i, keys: i.keys, rows: &i.rows}, nil
	}
	return view{}, invalid("The table does not have the specified index: %s", *q.IndexName)
}

// key returns what names an item for LastEvaluatedKey: in an index its key and the table's.
func (v view) key(item Item) Item {
	key := v.keys.of(item)
	maps.Copy(key, v.table.keys.of(item))
	return key
}

// resume cuts from a span what a page with this start key has behind it.
func (v view) resume(within span, start Item, forward bool) (span, error) {
	want := v.key(start)
	place := ""
	for name := range want {
		if _, found := start[name]; !found || len(start) != len(want) {
			return within, invalid("The provided starting key is invalid: The provided key element does not match the schema")
		}
	}
	err := v.table.keys.checkKey(v.table.keys.of(start))
	if place = v.table.keys.place(start); v.index != nil && err == nil {
		err = v.keys.checkKey(v.keys.of(start))
		place = v.keys.place(start) + place
	}
	switch {
	case err != nil:
		return within, invalid("The provided starting key is invalid: %s", err.(*wire.Error).Message)
	case place < within.low || within.high != "" && place >= within.high:
		return within, invalid("The provided starting key does not match the range key predicate")
	case forward:
		within.low = place + "\x00"
	default:
		within.high = place
	}
	return within, nil
}

func (s *Service) page(q *paging, v view, within span) (*pageAnswer, error) {
	if err := v.table.keys.checkScalar(q.entered); err != nil {
		return nil, err
	}
	if q.ExclusiveStartKey != nil {
		var err error
		if within, err = v.resume(within, q.ExclusiveStartKey, q.forward); err != nil {
			return nil, err
		}
	}
	answer := &pageAnswer{}
	if q.Select != "COUNT" {
		answer.Items = []Item{}
	}
	size := answer.fill(q, v, v.rows.between(within.low, within.high, q.forward))
	b := make(bill)
	if v.index != nil {
		b.of(v.table.name).index(v.index.name).Read = readUnits(size, false)
	} else {
		b.of(v.table.name).table.Read = readUnits(size, q.ConsistentRead)
	}
	s.settle(b)
	answer.ConsumedCapacity = b.reportOne(q.ReturnConsumedCapacity)
	return answer, nil
}

// fill takes rows up to the page's limits, and returns how many bytes it looked at. The row that reaches the size limit
// is still the page's.
func (a *pageAnswer) fill(q *paging, v view, rows iter.Seq[row]) int {
	size := 0
	for w := range rows {
		size += w.item.size()
		a.ScannedCount++
		if q.filter == nil || q.filter.holds(w.item) {
			a.Count++
			if a.Items != nil {
				a.Items = append(a.Items, q.keeps.of(w.item))
			}
		}
		if q.Limit != nil && a.ScannedCount == *q.Limit || size >= maxPage {
			a.LastEvaluatedKey = v.key(w.item)
			break
		}
	}
	return size
}
