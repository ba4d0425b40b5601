package envelope

import (
	"bytes"
	"math"
	"strconv"
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
			d.array(d.record)
		case 1:
			d.window = string(d.skip()) != "null"
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
	from := d.at
	var r read
	if d.batch.Kind == SQS {
		d.sqsRecord(&r)
	} else {
		d.kinesisRecord(&r)
	}
	d.place(&r)
	if d.err != nil {
		return
	}
	if d.ids == nil {
		// Records of one event are of one length, more or less.
		n := min((len(d.src)-d.at)/(d.at-from)+1, 10_000)
		d.ids, d.batch.Records = make([][]byte, 0, n), make([]Record, 0, n)
	}
	d.ids, d.batch.Records = append(d.ids, r.id), append(d.batch.Records, r.record)
}

var kinesisMembers, kinesisDataMembers = []string{"kinesis", "eventSource", "eventSourceARN", "eventID"},
	[]string{"sequenceNumber", "data", "approximateArrivalTimestamp"}

func (d *decoder) kinesisRecord(r *read) {
	d.object(kinesisMembers, func(member int) {
		switch member {
		case 0:
			d.object(kinesisDataMembers, func(member int) {
				switch member {
				case 0:
					r.id = d.text()
				case 1:
					r.record.Payload = d.base64()
				case 2:
					r.record.Arrived = arrival(d.skip())
				}
			})
		case 1:
			r.source = d.text()
		case 2:
			r.arn = d.text()
		case 3:
			r.eventID = d.text()
		}
	})
}

var sqsMembers, sqsAttributes = []string{"messageId", "body", "attributes", "eventSource", "eventSourceARN"},
	[]string{"SentTimestamp", "MessageGroupId", "ApproximateReceiveCount"}

func (d *decoder) sqsRecord(r *read) {
	d.object(sqsMembers, func(member int) {
		switch member {
		case 0:
			r.id = d.text()
		case 1:
			r.record.Payload = d.text()
		case 2:
			if d.peek() == 'n' {
				d.literal()
				return
			}
			d.object(sqsAttributes, func(member int) {
				switch member {
				case 0:
					r.record.Arrived = arrival(d.skip())
				case 1:
					r.record.Group = string(d.text())
				case 2:
					r.record.Receives, _ = strconv.Atoi(string(bytes.Trim(d.skip(), `"`)))
				}
			})
		case 3:
			r.source = d.text()
		case 4:
			r.arn = d.text()
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
	case len(r.id) == 0:
		d.fail("has a record (%d) without a message id", n)
	case len(r.arn) == 0:
		d.fail("has a record (%d) without an eventSourceARN", n)
	case n == 0:
		d.source, d.shard = r.arn, shard
	case !bytes.Equal(d.source, r.arn) || !bytes.Equal(d.shard, shard):
		d.fail("has a record (%d) of another stream, shard or queue than the first", n)
	}
}

// shardOf returns the shard in an eventID, which is "<shard>:<sequence number>"; empty for one that is not.
func shardOf(eventID, number []byte) []byte {
	shard, ok := bytes.CutSuffix(eventID, number)
	if n := len(shard) - 1; ok && n > 0 && shard[n] == ':' {
		return shard[:n]
	}
	return nil
}

// identify gives the batch its source and each record its names. The text of all identities is one string, of which each
// record has a part, so that naming 10,000 records costs one allocation.
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
	text := make([]byte, 0, size)
	for _, id := range d.ids {
		text = append(append(text, prefix...), id...)
	}
	rest := string(text)
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
