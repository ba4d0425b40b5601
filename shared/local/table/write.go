package table

import (
	"abacus/shared/local/wire"
)

// write is one conditional change of one item: a put, an update, a delete, or a mere check. Single writes, batches,
// transactions and INSERT statements all come down to it.
type write struct {
	action    action
	tableName string
	item      Item // the whole item of a put, else the key
	condition condition
	update    *update
	entered   map[string]bool // attributes that its expressions lead into
	reveal    bool            // a failed condition shows the item

	table       *table
	place       string
	misfit      error // in a transaction: the key does not fit the schema
	old, result Item  // in a transaction: the item as it was checked, and what the write makes of it
}

type action uint8

const (
	actionPut action = iota
	actionUpdate
	actionDelete
	actionCheck
)

// locate finds the write's table and place, and refuses a key that does not fit. The caller holds the lock.
func (s *Service) locate(w *write) error {
	misfit, err := s.find(w)
	if err == nil {
		err = misfit
	}
	return err
}

// find is locate with one error apart: that the key does not fit the schema, which cancels a transaction and leaves the
// write without a place.
func (s *Service) find(w *write) (misfit, err error) {
	t, err := s.table(w.tableName)
	if err != nil {
		return nil, err
	}
	w.table = t
	if err := t.keys.checkScalar(w.entered); err != nil {
		return nil, err
	}
	if w.action == actionPut {
		misfit = t.keys.fitsItem(w.item)
	} else {
		misfit = t.keys.fitsKey(w.item)
	}
	if misfit != nil {
		return misfit, nil
	}
	if err := t.keys.checkSizes(w.item); err != nil {
		return nil, err
	}
	w.place = t.keys.place(w.item)
	if w.update != nil {
		return nil, w.checkUpdatedKeys()
	}
	return nil, nil
}

func (w *write) checkUpdatedKeys() error {
	for _, a := range w.table.keys.attributes() {
		for _, at := range w.update.touched {
			if at[0].name == a.name {
				return invalid("One or more parameter values were invalid: "+
					"Cannot update attribute %s. This attribute is part of the key", a.name)
			}
		}
	}
	return nil
}

// next returns what the write makes of old; nil for no item. It changes nothing.
func (w *write) next(old Item) (Item, error) {
	if w.condition != nil && !w.condition.holds(old) {
		err := wire.Errorf("ConditionalCheckFailedException", "The conditional request failed")
		if w.reveal && old != nil {
			err.Fields = map[string]any{"Item": old}
		}
		return nil, err
	}
	switch w.action {
	case actionCheck:
		return old, nil
	case actionDelete:
		return nil, nil
	}
	next, err := w.item, error(nil)
	if w.action == actionUpdate {
		if next, err = w.updated(old); err != nil {
			return nil, err
		}
	}
	for _, i := range w.table.indexes {
		if err := i.checkItem(next); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func (w *write) updated(old Item) (Item, error) {
	next := old
	if next == nil {
		next = w.item
	}
	if w.update != nil {
		var err error
		if next, err = w.update.apply(next); err != nil {
			return nil, err
		}
	}
	if next.size() > maxItem {
		return nil, invalid("Item size to update has exceeded the maximum allowed size")
	}
	return next, nil
}

// commit puts next in old's place and tells who wants to know. The caller holds the write lock.
func (s *Service) commit(w *write, old, next Item) {
	if w.action == actionCheck || old == nil && next == nil {
		return
	}
	w.table.put(w.place, old, next)
	s.tell(w.table, w.item, old, next, false)
}

func (s *Service) tell(t *table, item, old, next Item, expired bool) {
	if s.config.Changed != nil && (old == nil || next == nil || !old.equal(next)) {
		s.config.Changed(Change{Table: t.name, Key: t.keys.of(item), Old: old, New: next, Expired: expired})
	}
}

// apply does one write alone.
func (s *Service) apply(w *write) (old, next Item, b bill, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applyLocked(w)
}

func (s *Service) applyLocked(w *write) (old, next Item, b bill, err error) {
	if err := s.locate(w); err != nil {
		return nil, nil, nil, err
	}
	if w.table.held[w.place] {
		return nil, nil, nil, wire.Errorf("TransactionConflictException", "Transaction is ongoing for the item")
	}
	old = w.table.rows.get(w.place)
	next, err = w.next(old)
	b = make(bill)
	if err != nil {
		if conditionFailed(err) { // which costs what the write would have
			b.of(w.table.name).table.Write += writeUnits(old.size(), w.item.size())
			s.settle(b)
		}
		return nil, nil, nil, err
	}
	b.write(w.table, w.place, old, next, 1)
	s.settle(b)
	s.commit(w, old, next)
	return old, next, b, nil
}

func conditionFailed(err error) bool {
	modelled, ok := err.(*wire.Error)
	return ok && modelled.Code == "ConditionalCheckFailedException"
}
