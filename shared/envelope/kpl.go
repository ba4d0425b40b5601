package envelope

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// An aggregated record is a magic number, a message of Protocol Buffers, and the MD5 of the message
// (https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md).
var aggregateMagic = []byte("\xf3\x89\x9a\xc2")

// The fields that are read, by number.
const (
	aggregateKeys, aggregateHashKeys, aggregateRecords = 1, 2, 3
	recordKey, recordHashKey, recordData               = 1, 2, 3
)

// isAggregate reports whether payload looks like an aggregated record. One that turns out not to be is a bad record like
// any other that is not JSON.
func isAggregate(payload []byte) bool {
	return len(payload) > len(aggregateMagic)+md5.Size && bytes.HasPrefix(payload, aggregateMagic)
}

func (w *walk) aggregate(payload []byte) error {
	message, sum := payload[len(aggregateMagic):len(payload)-md5.Size], payload[len(payload)-md5.Size:]
	records, err := aggregated(message, sum, w.maxDocuments)
	if err != nil {
		return fmt.Errorf("%w: aggregated record: %w; send it whole, as the Kinesis Producer Library does", ErrPayload, err)
	}
	for _, data := range records {
		if err := w.inner(data); err != nil {
			return err
		}
	}
	return nil
}

var (
	errAggregateSum   = errors.New("its checksum is wrong")
	errAggregateForm  = errors.New("it is not well formed")
	errAggregateIndex = errors.New("it names a key that its tables do not have")
)

// aggregated returns the data of the records of an aggregate's message, parts of it, at most so many.
func aggregated(message, sum []byte, most int) ([][]byte, error) {
	if got := md5.Sum(message); !bytes.Equal(got[:], sum) {
		return nil, errAggregateSum
	}
	var keys, hashKeys uint64
	var records []aggregatedRecord
	err := fields(message, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case aggregateKeys:
			keys++
		case aggregateHashKeys:
			hashKeys++
		case aggregateRecords:
			if len(records) == most {
				return fmt.Errorf("it has more than %d records", most)
			}
			record, err := parseAggregated(value)
			records = append(records, record)
			return err
		}
		return nil
	}, 0, 1<<aggregateKeys|1<<aggregateHashKeys|1<<aggregateRecords)
	if err != nil {
		return nil, err
	}
	data := make([][]byte, len(records))
	for i, r := range records {
		// The tables may stand behind the records, so indices are checked last.
		if r.key >= keys || r.hashed && r.hashKey >= hashKeys {
			return nil, errAggregateIndex
		}
		data[i] = r.data
	}
	return data, nil
}

type aggregatedRecord struct {
	key, hashKey uint64
	hashed       bool
	data         []byte
}

func parseAggregated(message []byte) (r aggregatedRecord, err error) {
	var seen uint64
	err = fields(message, func(number protowire.Number, value []byte, n uint64) error {
		switch number {
		case recordKey:
			r.key = n
		case recordHashKey:
			r.hashKey, r.hashed = n, true
		case recordData:
			r.data = value
		}
		seen |= 1 << number
		return nil
	}, 1<<recordKey|1<<recordHashKey, 1<<recordData)
	if required := uint64(1<<recordKey | 1<<recordData); err == nil && seen&required != required {
		err = errAggregateForm
	}
	return r, err
}

// fields walks the fields of a message and calls field for those whose numbers are in the sets varints and bytes, which
// must be of these wire types. It passes over others.
func fields(message []byte, field func(number protowire.Number, value []byte, n uint64) error,
	varints, texts uint64) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return errAggregateForm
		}
		message = message[size:]
		var value []byte
		var n uint64
		known := number < 64 && (varints|texts)&(1<<number) != 0
		switch {
		case known && kind == protowire.VarintType && varints&(1<<number) != 0:
			n, size = protowire.ConsumeVarint(message)
		case known && kind == protowire.BytesType && texts&(1<<number) != 0:
			value, size = protowire.ConsumeBytes(message)
		case known:
			return errAggregateForm
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return errAggregateForm
		}
		message = message[size:]
		if known {
			if err := field(number, value, n); err != nil {
				return err
			}
		}
	}
	return nil
}
