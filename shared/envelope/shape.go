package envelope

import "bytes"

// shape is what all records of an event have in common: the text between their scalars. Lambda writes every record of
// an event in one form, so once the first is read by the rules of JSON, the others are read by comparing that text
// and consuming scalars in its gaps. That is exactly as strict: the text has been found well formed around any value,
// and each scalar is consumed as in the first record. A record of another form is read like the first.
type shape struct {
	steps  []step
	end    int    // of the last scalar
	tail   []byte // after it
	closed bool
}

// step is a scalar, and the text between the one before it and itself.
type step struct {
	before []byte
	member member
	whole  []byte // before and the scalar, where that is likely the same in every record; else empty
	value  []byte // what it says
}

// note adds a scalar that began at from and has just been consumed to the form of the first record.
func (d *decoder) note(m member, from int, value []byte) {
	s := &d.shape
	if s.closed || d.err != nil {
		return
	}
	next := step{before: d.src[s.end:from], member: m}
	if m == unread || m == memberSource || m == memberARN {
		next.whole, next.value = d.src[s.end:d.at], value
	}
	s.steps, s.end = append(s.steps, next), d.at
}

// learn consumes the value of a member and notes it, if it is the first record's.
func (d *decoder) learn(m member, r *read) {
	d.peek()
	from, scalar := d.at, d.scalar
	d.scalar = nil // whatever the value holds, it is one step
	value := d.read(m, r)
	d.scalar = scalar
	d.note(m, from, value)
}

// follow consumes a record of the known form. It reports false, and consumes nothing, if the record is of another: also
// where it seems malformed, since an empty list may stand where the first record's had an element.
func (d *decoder) follow(r *read) bool {
	before := d.scanner
	for i := range d.shape.steps {
		next := &d.shape.steps[i]
		switch {
		case len(next.whole) > 0 && d.pass(next.whole):
			r.set(next.member, next.value)
		case d.pass(next.before):
			d.read(next.member, r)
		default:
			d.malformed()
		}
	}
	if d.err == nil && d.pass(d.shape.tail) {
		return true
	}
	d.scanner, *r = before, read{}
	return false
}

// pass consumes text if it is what comes next.
func (d *decoder) pass(text []byte) bool {
	if !bytes.HasPrefix(d.src[d.at:], text) {
		return false
	}
	d.at += len(text)
	return true
}
