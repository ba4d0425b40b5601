package stream

import (
	"crypto/md5"
	"unicode/utf8"

	"abacus/shared/local/wire"
)

// Limits of PutRecords (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html).
const (
	maxEntries      = 500
	maxRequestBytes = 10 << 20
)

type entry struct {
	Data            []byte
	PartitionKey    string
	ExplicitHashKey string
}

func (e entry) size() int { return len(e.Data) + len(e.PartitionKey) }

// place checks an entry and returns where in the hash space it belongs: at its explicit hash key, else at the MD5 of
// its partition key.
func (e entry) place(m *stream) (hashKey, error) {
	switch n := utf8.RuneCountInString(e.PartitionKey); {
	case n < 1 || n > 256:
		return hashKey{}, invalid("PartitionKey must have between 1 and 256 characters; it has %d", n)
	case e.Data == nil:
		return hashKey{}, invalid("Data must not be null")
	case e.size() > m.maxRecord:
		return hashKey{}, invalid("Data and PartitionKey have %d bytes, more than the stream's %d; "+
			"raise MaxRecordSizeInKiB or send less", e.size(), m.maxRecord)
	case e.ExplicitHashKey == "":
		return md5.Sum([]byte(e.PartitionKey)), nil
	}
	k, ok := parseHashKey(e.ExplicitHashKey)
	if !ok {
		return hashKey{}, refused("Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. "+
			"Specified value was %s", e.ExplicitHashKey)
	}
	return k, nil
}

func (s *Server) putRecord(r struct {
	target
	Data            []byte
	PartitionKey    string
	ExplicitHashKey string
}) (any, error) {
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	one := entry{Data: r.Data, PartitionKey: r.PartitionKey, ExplicitHashKey: r.ExplicitHashKey}
	k, err := one.place(found)
	if err != nil {
		return nil, err
	}
	put := s.put(found, one, k)
	switch put.ErrorCode {
	case "":
		return put, nil
	case "InternalFailure":
		return nil, &wire.Error{Code: put.ErrorCode, Message: put.ErrorMessage, Status: 500}
	}
	return nil, wire.Errorf(put.ErrorCode, "%s", put.ErrorMessage)
}

type putRecordsRequest struct {
	target
	Records []entry
}

// putRecords answers with status 200 whatever becomes of the single records; a malformed one fails the whole request.
func (s *Server) putRecords(r putRecordsRequest) (any, error) {
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	if len(r.Records) < 1 || len(r.Records) > maxEntries {
		return nil, invalid("Records must have between 1 and %d members; it has %d", maxEntries, len(r.Records))
	}
	places, total := make([]hashKey, len(r.Records)), 0
	for i, one := range r.Records {
		if places[i], err = one.place(found); err != nil {
			return nil, err
		}
		total += one.size()
	}
	if total > maxRequestBytes {
		return nil, refused("Records have %d bytes, more than %d; send fewer", total, maxRequestBytes)
	}
	failed, results := 0, make([]result, len(r.Records))
	for i, one := range r.Records {
		if results[i] = s.put(found, one, places[i]); results[i].ErrorCode != "" {
			failed++
		}
	}
	return map[string]any{"FailedRecordCount": failed, "Records": results}, nil
}

type result struct {
	SequenceNumber string `json:",omitempty"`
	ShardId        string `json:",omitempty"`
	ErrorCode      string `json:",omitempty"`
	ErrorMessage   string `json:",omitempty"`
}

func (s *Server) put(m *stream, one entry, k hashKey) result {
	d, now := m.route(k), s.config.Now()
	if s.config.FailRecord != nil {
		if code := s.config.FailRecord(m.name, one.PartitionKey, one.Data); code != "" {
			return result{ErrorCode: code, ErrorMessage: "injected"}
		}
	}
	if s.config.Throttle && !d.written.admit(now, 1, one.size(), recordsWritten, bytesWritten) {
		return result{ErrorCode: "ProvisionedThroughputExceededException", ErrorMessage: "Rate exceeded for shard " + d.id +
			" in stream " + m.name + " under account " + s.config.Account + "."}
	}
	return result{SequenceNumber: d.append(one.PartitionKey, one.Data, now), ShardId: d.id}
}
