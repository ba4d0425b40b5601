package envelope

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

// decoder fills a batch from an event's JSON.
type decoder struct {
	scanner
	batch  Batch
	listed bool // the event has a list of records
	window bool // the event is of a tumbling window
	source []byte
	shard  []byte
	ids    [][]byte // of the records, parts of src or arena
	shape  shape    // of the first record
}

// read is what one record says of itself.
type read struct {
	id, source, arn, eventID []byte
	record                   Record
}

func (d *decoder) event() {
	d.object([]string{"Records", "window", "state"}, func(member int) {
		switch member {
		case 0:
			if d.peek() == 'n' {
				d.literal()
				return
			}
			d.listed = true
			d.scalar = func(from int) { d.note(unread, from, nil) }
			d.array(d.record)
			d.scalar = nil
		case 1:
			d.window = string(d.skip()) != "null" && d.batch.Kind == Kinesis
		case 2:
			d.batch.State = d.skip()
		}
	})
	if d.err == nil && (d.peek() != 0 || d.at < len(d.src)) {
		d.malformed()
	}
}

// check looks at the event as a whole.
func (d *decoder) check() {
	switch {
	case !d.listed:
		d.fail("has no list of records named Records; let an event source mapping of %s invoke this function", d.batch.Kind)
	case len(d.ids) == 0 && d.batch.Kind != Kinesis:
		d.fail("has an empty list of records, which %s never sends", d.batch.Kind)
	case !d.window:
		d.batch.State = nil
	case len(d.batch.State) == 0 || d.batch.State[0] != '{':
		d.batch.State = []byte("{}")
	}
}

func (d *decoder) record() {
	d.peek()
	from := d.at
	if !d.shape.closed {
		d.shape.end = from
	}
	var r read
	switch {
	case d.shape.closed && d.follow(&r):
	case d.batch.Kind == SQS:
		d.sqsRecord(&r)
	default:
		d.kinesisRecord(&r)
	}
	d.place(&r)
	if d.err != nil {
		return
	}
	if d.ids == nil {
		d.shape.tail, d.shape.closed = d.src[d.shape.end:d.at], true
		// Records of one event are of one length, more or less.
		n := (len(d.src) - d.at) / (d.at - from)
		n = min(n+n/16+1, 10_000)
		d.ids, d.batch.Records = make([][]byte, 0, n), make([]Record, 0, n)
		d.room(min(n*(len(d.arena)+8), len(d.src)-d.at))
	}
	d.ids, d.batch.Records = append(d.ids, r.id), append(d.batch.Records, r.record)
}

// member is a scalar of a record that is read.
type member uint8

const (
	unread member = iota
	memberID
	memberSource
	memberARN
	memberEventID
	memberData
	memberBody
	memberArrival
	memberGroup
	memberReceives
)

// read consumes the value of a member, and returns what it says.
func (d *decoder) read(m member, r *read) (value []byte) {
	switch m {
	case unread, memberArrival, memberReceives:
		value = d.skip()
	case memberData:
		value = d.base64()
	default:
		value = d.text()
	}
	r.set(m, value)
	return value
}

func (r *read) set(m member, value []byte) {
	switch m {
	case memberID:
		r.id = value
	case memberSource:
		r.source = value
	case memberARN:
		r.arn = value
	case memberEventID:
		r.eventID = value
	case memberData, memberBody:
		r.record.Payload = value
	case memberArrival:
		r.record.Arrived = arrival(value)
	case memberGroup:
		r.record.Group = string(value)
	case memberReceives:
		r.record.Receives, _ = strconv.Atoi(string(bytes.Trim(value, `"`)))
	}
}

var (
	kinesisNames = []string{"kinesis", "eventSource", "eventSourceARN", "eventID"}
	kinesisReads = []member{unread, memberSource, memberARN, memberEventID}
	dataNames    = []string{"sequenceNumber", "data", "approximateArrivalTimestamp"}
	dataReads    = []member{memberID, memberData, memberArrival}

	sqsNames       = []string{"attributes", "messageId", "body", "eventSource", "eventSourceARN"}
	sqsReads       = []member{unread, memberID, memberBody, memberSource, memberARN}
	attributeNames = []string{"SentTimestamp", "MessageGroupId", "ApproximateReceiveCount"}
	attributeReads = []member{memberArrival, memberGroup, memberReceives}
)

func (d *decoder) kinesisRecord(r *read) {
	d.object(kinesisNames, func(i int) {
		if i == 0 {
			d.object(dataNames, func(i int) { d.learn(dataReads[i], r) })
			return
		}
		d.learn(kinesisReads[i], r)
	})
}

func (d *decoder) sqsRecord(r *read) {
	d.object(sqsNames, func(i int) {
		switch {
		case i > 0:
			d.learn(sqsReads[i], r)
		case d.peek() == 'n':
			d.skip()
		default:
			d.object(attributeNames, func(i int) { d.learn(attributeReads[i], r) })
		}
	})
}

// place checks that a record is of the batch's source and has what its identity is made of.
func (d *decoder) place(r *read) {
	n := len(d.ids)
	if string(r.source) != string(d.batch.Kind) {
		d.fail("has a record (%d) of the source %.40q, not %q; let this function serve sources of its own kind only",
			n, r.source, d.batch.Kind)
		return
	}
	var shard []byte
	if d.batch.Kind == Kinesis {
		if !allDigits(r.id) {
			d.fail("has a record (%d) without a sequence number", n)
			return
		}
		if shard = shardOf(r.eventID, r.id); len(shard) == 0 {
			d.fail("has a record (%d) whose eventID is not its shard and sequence number", n)
			return
		}
	}
	switch {
	case d.batch.Kind == SQS && !isName(r.id):
		d.fail("has a record (%d) without a message id", n)
	case n == 0 && !(isName(r.arn) && (isName(shard) || d.batch.Kind == SQS)):
		d.fail("has a record (%d) without an eventSourceARN and a shard that are names", n)
	case n == 0:
		d.source, d.shard = r.arn, shard
	case !bytes.Equal(d.source, r.arn) || !bytes.Equal(d.shard, shard):
		d.fail("has a record (%d) of another stream, shard or queue than the first", n)
	}
}

// isName reports whether text can be part of an identity: not empty, printable ASCII, and without the separators of
// identities. All names that AWS gives can.
func isName(text []byte) bool {
	for _, c := range text {
		if c <= ' ' || c > '~' || c == separator[0] || c == documentMark[0] {
			return false
		}
	}
	return len(text) > 0
}

// shardOf returns the shard in an eventID, which is "<shard>:<sequence number>"; empty for one that is not.
func shardOf(eventID, number []byte) []byte {
	shard, ok := bytes.CutSuffix(eventID, number)
	if n := len(shard) - 1; ok && n > 0 && shard[n] == ':' {
		return shard[:n]
	}
	return nil
}

// identify gives the batch its source and each record its names. The text of all identities is one string, of which
// each record has a part, so that naming 10,000 records costs one allocation.
func (d *decoder) identify() {
	if len(d.ids) == 0 {
		return
	}
	d.batch.Source, d.batch.Shard = streamARN(string(d.source)), string(d.shard)
	prefix := SQSIdentity(d.batch.Source, "")
	if d.batch.Kind == Kinesis {
		prefix = KinesisIdentity(d.batch.Source, d.batch.Shard, "")
	}
	size := len(prefix) * len(d.ids)
	for _, id := range d.ids {
		size += len(id)
	}
	var text strings.Builder
	text.Grow(size)
	for _, id := range d.ids {
		text.WriteString(prefix)
		text.Write(id)
	}
	rest := text.String()
	for i, id := range d.ids {
		r, n := &d.batch.Records[i], len(prefix)+len(id)
		r.Identity, r.ID, rest = rest[:n], rest[len(prefix):n], rest[n:]
	}
}

// Numbers from firstMilliseconds up are milliseconds since 1970, below it seconds: the year 5138 in seconds, 1973 in
// milliseconds. The last time that can be written in RFC 3339 bounds them.
const firstMilliseconds, lastMilliseconds = 1e11, 253_402_300_799_999

// arrival reads a time as seconds or milliseconds since 1970, a number or a string of one, rounded to milliseconds:
// sources differ in all of that. It returns the zero time for anything else.
func arrival(text []byte) time.Time {
	text = bytes.Trim(text, `"`)
	n, ok := decimal(text)
	if !ok {
		n, _ = strconv.ParseFloat(string(text), 64)
	}
	if n < firstMilliseconds {
		n *= 1000
	}
	if !(n > 0 && n <= lastMilliseconds) {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(n))).UTC()
}

// decimal reads digits with or without a fraction, the form that nearly every time has, without an allocation.
func decimal(text []byte) (n float64, ok bool) {
	digits, scale := uint64(0), 0.0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9' && digits < 1e14: // 15 digits are exact in a float64
			digits, scale = digits*10+uint64(c-'0'), scale*10
		case c == '.' && scale == 0:
			scale = 1
		default:
			return 0, false
		}
	}
	return float64(digits) / max(scale, 1), len(text) > 0
}
