package stream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"
)

// iteratorLife is how long an iterator may be used, as often as wanted
// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_GetShardIterator.html).
const iteratorLife = 5 * time.Minute

// iterator is a place in a shard. Its text is opaque to clients and refused if it is altered.
type iterator struct {
	Stream  string
	Created int64 // of the stream, Unix milliseconds: a new stream of the same name is another one
	Shard   string
	Next    uint64 // index of the first record to read
	Empty   bool   // reads nothing, ever; see TrimmedReadsEmpty
	Issued  int64  // Unix milliseconds
}

func (i iterator) text() string {
	body, _ := json.Marshal(i)
	sum := sha256.Sum256(body)
	return base64.StdEncoding.EncodeToString(append(sum[:8], body...))
}

func parseIterator(text string) (iterator, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < 8 {
		return iterator{}, refused("Invalid ShardIterator.")
	}
	sum := sha256.Sum256(raw[8:])
	var i iterator
	if !bytes.Equal(sum[:8], raw[:8]) || json.Unmarshal(raw[8:], &i) != nil {
		return iterator{}, refused("Invalid ShardIterator.")
	}
	return i, nil
}

func (s *Server) getShardIterator(r struct {
	target
	ShardId                string
	ShardIteratorType      string
	StartingSequenceNumber string
	Timestamp              *float64
}) (any, error) {
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	d, ok := found.shard(r.ShardId)
	if !ok {
		return nil, notFound("Shard %s in stream %s under account %s does not exist", r.ShardId, found.name,
			s.config.Account)
	}
	now := s.config.Now()
	if s.config.Throttle && !d.seeks.admit(now, 1, 0, readCalls, bytesRead) {
		return nil, exceeded("Rate exceeded for shard %s in stream %s under account %s.", d.id, found.name,
			s.config.Account)
	}
	i := iterator{Stream: found.name, Created: found.created.UnixMilli(), Shard: d.id, Issued: now.UnixMilli()}
	numbered := r.ShardIteratorType == "AT_SEQUENCE_NUMBER" || r.ShardIteratorType == "AFTER_SEQUENCE_NUMBER"
	if numbered != (r.StartingSequenceNumber != "") {
		return nil, refused("Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber "+
			"or (2) another type and none; the type is %q", r.ShardIteratorType)
	}
	switch r.ShardIteratorType {
	case "TRIM_HORIZON":
		i.Next = d.trimmed
	case "LATEST":
		i.Next = d.next
	case "AT_TIMESTAMP":
		i.Next, err = d.since(r.Timestamp, now)
	case "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER":
		err = s.seek(&i, found, d, r.StartingSequenceNumber, r.ShardIteratorType == "AFTER_SEQUENCE_NUMBER")
	default:
		err = invalid("ShardIteratorType %q is none of AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER, AT_TIMESTAMP, "+
			"TRIM_HORIZON, LATEST", r.ShardIteratorType)
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"ShardIterator": i.text()}, nil
}

// since returns the index of the first record that came at or after the timestamp; one before the horizon means the
// horizon.
func (d *shard) since(timestamp *float64, now time.Time) (uint64, error) {
	if timestamp == nil {
		return 0, refused("an iterator of type AT_TIMESTAMP needs Timestamp")
	}
	at := time.UnixMilli(int64(*timestamp*1000 + 0.5))
	if at.After(now) {
		return 0, refused("Timestamp must not lie in the future")
	}
	for _, r := range d.records {
		if !r.arrived.Before(at) {
			return r.index, nil
		}
	}
	return d.next, nil
}

// seek places i at, or after, a sequence number, which must be of this shard of this stream.
func (s *Server) seek(i *iterator, m *stream, d *shard, number string, after bool) error {
	bad := func(why string) error {
		return refused("StartingSequenceNumber %s used in GetShardIterator on shard %s in stream %s under account %s "+
			"is invalid%s.", number, d.id, m.name, s.config.Account, why)
	}
	q, err := parseSequence(number)
	switch {
	case err != nil:
		return bad("")
	case q.shard != d.ix:
		return refused("Invalid StartingSequenceNumber. It encodes shardId-%012d, while it was used in a call to a shard "+
			"with %s", q.shard, d.id)
	case q.created != d.created || (q.index >= d.next && q.index != lastIndex):
		return bad(" because it did not come from this stream")
	}
	i.Next = min(q.index, d.next)
	if after {
		i.Next = min(q.index+1, d.next)
	}
	// Index 0 is the shard's own starting number, at which no record ever stood.
	if i.Next < d.trimmed && q.index > 0 {
		switch s.config.Trimmed {
		case TrimmedReadsEmpty:
			i.Empty = true
		case TrimmedIsRefused:
			return refused("StartingSequenceNumber %s is older than the retention period of stream %s", number, m.name)
		}
	}
	return nil
}
