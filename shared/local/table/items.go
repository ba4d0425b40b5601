package table

import (
	"context"
	"slices"
	"strings"
)

// given are the members that every request with expressions shares.
type given struct {
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues Item
}

// conditional are the members of a conditional write.
type conditional struct {
	given
	ConditionExpression                 *string
	ReturnValuesOnConditionCheckFailure string
}

// answering are the members that ask for more than the bare answer.
type answering struct {
	ReturnValues                string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string // there are no local indexes, so there is nothing to return
}

type putRequest struct {
	TableName string
	Item      Item
	conditional
	answering
}

type updateRequest struct {
	TableName        string
	Key              Item
	UpdateExpression *string
	conditional
	answering
}

type deleteRequest struct {
	TableName string
	Key       Item
	conditional
	answering
}

type writeAnswer struct {
	Attributes       Item      `json:",omitempty"`
	ConsumedCapacity *consumed `json:",omitzero"`
}

func (s *Service) putItem(_ context.Context, q *putRequest) (*writeAnswer, error) {
	if err := q.answering.check("NONE", "ALL_OLD"); err != nil {
		return nil, err
	}
	w := &write{action: actionPut, tableName: q.TableName, item: q.Item}
	return s.single(w, &q.conditional, nil, &q.answering)
}

func (s *Service) updateItem(_ context.Context, q *updateRequest) (*writeAnswer, error) {
	if err := q.answering.check("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"); err != nil {
		return nil, err
	}
	w := &write{action: actionUpdate, tableName: q.TableName, item: q.Key}
	return s.single(w, &q.conditional, q.UpdateExpression, &q.answering)
}

func (s *Service) deleteItem(_ context.Context, q *deleteRequest) (*writeAnswer, error) {
	if err := q.answering.check("NONE", "ALL_OLD"); err != nil {
		return nil, err
	}
	w := &write{action: actionDelete, tableName: q.TableName, item: q.Key}
	return s.single(w, &q.conditional, nil, &q.answering)
}

func (s *Service) single(w *write, c *conditional, update *string, want *answering) (*writeAnswer, error) {
	if err := w.parse(c, update); err != nil {
		return nil, err
	}
	old, next, b, err := s.apply(w)
	if err != nil {
		return nil, err
	}
	answer := &writeAnswer{ConsumedCapacity: b.reportOne(want.ReturnConsumedCapacity)}
	switch want.ReturnValues {
	case "ALL_OLD":
		answer.Attributes = old
	case "ALL_NEW":
		answer.Attributes = next
	case "UPDATED_OLD", "UPDATED_NEW":
		if w.update == nil {
			break
		}
		touched := selectPaths(w.update.touched)
		if answer.Attributes = touched.of(old); want.ReturnValues == "UPDATED_NEW" {
			answer.Attributes = touched.of(next)
		}
	}
	return answer, nil
}

// parse reads the expressions of a write.
func (w *write) parse(c *conditional, update *string) error {
	if w.tableName == "" || w.item == nil {
		return invalid("The parameters 'TableName' and 'Item' or 'Key' are required but one was not present in the request")
	}
	if err := checkNames(w.item); err != nil {
		return err
	}
	if w.action == actionPut && w.item.size() > maxItem {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	onFailure := c.ReturnValuesOnConditionCheckFailure
	if err := enum("returnValuesOnConditionCheckFailure", onFailure, "ALL_OLD", "NONE"); err != nil {
		return err
	}
	w.reveal = onFailure == "ALL_OLD"
	p, err := newPlaceholders(c.ExpressionAttributeNames, c.ExpressionAttributeValues)
	if err != nil {
		return err
	}
	w.entered = p.entered
	if update != nil {
		if w.update, err = parse("UpdateExpression", *update, p, (*parser).update); err != nil {
			return err
		}
	}
	if c.ConditionExpression != nil {
		if w.condition, err = parse("ConditionExpression", *c.ConditionExpression, p, (*parser).condition); err != nil {
			return err
		}
	}
	return p.finish()
}

func (a *answering) check(returnValues ...string) error {
	if a.ReturnValues != "" && !slices.Contains(returnValues, a.ReturnValues) {
		return invalid("Return values set to invalid value; use one of %s", strings.Join(returnValues, ", "))
	}
	if err := enum("returnItemCollectionMetrics", a.ReturnItemCollectionMetrics, "SIZE", "NONE"); err != nil {
		return err
	}
	return enum("returnConsumedCapacity", a.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE")
}

// enum refuses a value outside of a set; an absent one is fine.
func enum(member, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
		"Member must satisfy enum value set: [%s]", value, member, strings.Join(allowed, ", "))
}

// checkLength refuses a list that is empty or too long.
func checkLength[T any](member string, list []T, most int) error {
	switch {
	case len(list) == 0:
		return invalid("1 validation error detected: Value '[]' at '%s' failed to satisfy constraint: "+
			"Member must have length greater than or equal to 1", member)
	case len(list) > most:
		return invalid("1 validation error detected: Value '[%d members]' at '%s' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", len(list), member, most)
	}
	return nil
}

// checkNames refuses attribute names that are empty or too long, at the top of an item as inside of it.
func checkNames(item Item) error {
	for name, v := range item {
		if name == "" || len(name) > maxAttributeName {
			return invalid("One or more parameter values were invalid: an attribute name has 1 to 65535 bytes")
		}
		if v.kind == kindM {
			if err := checkNames(v.attrs); err != nil {
				return err
			}
		}
	}
	return nil
}

type getRequest struct {
	TableName                string
	Key                      Item
	ConsistentRead           bool
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
	ReturnConsumedCapacity   string
}

type getAnswer struct {
	Item             Item      `json:",omitzero"`
	ConsumedCapacity *consumed `json:",omitzero"`
}

func (s *Service) getItem(_ context.Context, q *getRequest) (*getAnswer, error) {
	if err := enum("returnConsumedCapacity", q.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE"); err != nil {
		return nil, err
	}
	keeps, err := parseProjection(q.ProjectionExpression, q.ExpressionAttributeNames)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	item, _, err := s.read(q.TableName, q.Key)
	if err != nil {
		return nil, err
	}
	b := make(bill)
	b.of(q.TableName).table.Read = readUnits(item.size(), q.ConsistentRead)
	s.settle(b)
	return &getAnswer{Item: keeps.of(item), ConsumedCapacity: b.reportOne(q.ReturnConsumedCapacity)}, nil
}

func parseProjection(text *string, names map[string]string) (*selection, error) {
	p, err := newPlaceholders(names, nil)
	if err != nil {
		return nil, err
	}
	var keeps *selection
	if text != nil {
		if keeps, err = parse("ProjectionExpression", *text, p, (*parser).projection); err != nil {
			return nil, err
		}
	}
	return keeps, p.finish()
}

// read returns the item under a key, or nil, and its place. The caller holds the lock.
func (s *Service) read(tableName string, key Item) (Item, string, error) {
	t, err := s.table(tableName)
	if err != nil {
		return nil, "", err
	}
	if err := t.keys.checkKey(key); err != nil {
		return nil, "", err
	}
	place := t.keys.place(key)
	return t.rows.get(place), place, nil
}
