package stream

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"time"

	"abacus/shared/local/wire"
)

// epoch is a time as the JSON protocol writes it: seconds, with milliseconds as a fraction.
type epoch time.Time

// MarshalJSON writes t in Unix seconds.
func (t epoch) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Time(t).UnixMilli())/1000, 'f', -1, 64), nil
}

var _ json.Marshaler = epoch{}

type createRequest struct {
	StreamName         string
	ShardCount         int
	MaxRecordSizeInKiB int
}

func (s *Server) createStream(r createRequest) (any, error) {
	switch {
	case !nameForm.MatchString(r.StreamName):
		return nil, invalid("StreamName must match %s", nameForm)
	case r.ShardCount < 1 || r.ShardCount > 10_000:
		return nil, invalid("ShardCount must be between 1 and 10000; on-demand mode is not emulated")
	case r.MaxRecordSizeInKiB != 0 && (r.MaxRecordSizeInKiB < 1024 || r.MaxRecordSizeInKiB > 10240):
		return nil, invalid("MaxRecordSizeInKiB must be between 1024 and 10240")
	}
	if _, taken := s.streams[r.StreamName]; taken {
		return nil, wire.Errorf("ResourceInUseException", "Stream %s under account %s already exists.",
			r.StreamName, s.config.Account)
	}
	now := s.config.Now()
	created := &stream{name: r.StreamName, created: now, retention: 24 * time.Hour}
	created.maxRecord = max(r.MaxRecordSizeInKiB, 1024) << 10
	size := new(big.Int).Lsh(big.NewInt(1), 128)
	size.Div(size, big.NewInt(int64(r.ShardCount)))
	for i := range r.ShardCount {
		var from, to hashKey
		start := new(big.Int).Mul(size, big.NewInt(int64(i)))
		start.FillBytes(from[:])
		if i == r.ShardCount-1 {
			to = highest
		} else {
			start.Add(start, size).Sub(start, big.NewInt(1)).FillBytes(to[:])
		}
		created.add(newShard(i, from, to, now.Unix()))
	}
	s.streams[r.StreamName] = created
	return struct{}{}, nil
}

var highest = hashKey{0: 255, 1: 255, 2: 255, 3: 255, 4: 255, 5: 255, 6: 255, 7: 255,
	8: 255, 9: 255, 10: 255, 11: 255, 12: 255, 13: 255, 14: 255, 15: 255}

func (m *stream) add(d *shard) {
	m.shards = append(m.shards, d)
	m.serial++
}

func (s *Server) deleteStream(r target) (any, error) {
	found, err := s.find(r)
	if err != nil {
		return nil, err
	}
	delete(s.streams, found.name)
	return struct{}{}, nil
}

func (s *Server) listStreams(r struct {
	ExclusiveStartStreamName string
	Limit                    int
}) (any, error) {
	if r.Limit < 0 || r.Limit > 10_000 {
		return nil, invalid("Limit must be between 1 and 10000")
	}
	names := slices.Sorted(maps.Keys(s.streams))
	names = slices.DeleteFunc(names, func(n string) bool { return n <= r.ExclusiveStartStreamName })
	limit := 100
	if r.Limit > 0 {
		limit = r.Limit
	}
	shown := names[:min(limit, len(names))]
	return map[string]any{"StreamNames": append([]string{}, shown...), "HasMoreStreams": len(shown) < len(names)}, nil
}

type retentionRequest struct {
	target
	RetentionPeriodHours int
}

func (s *Server) increaseRetention(r retentionRequest) (any, error) {
	return s.retain(r, func(was, to time.Duration) bool { return to >= was })
}

func (s *Server) decreaseRetention(r retentionRequest) (any, error) {
	return s.retain(r, func(was, to time.Duration) bool { return to <= was })
}

// retain sets the retention period: 24 to 8,760 hours, in the direction that the operation is for.
func (s *Server) retain(r retentionRequest, allowed func(was, to time.Duration) bool) (any, error) {
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	to := time.Duration(r.RetentionPeriodHours) * time.Hour
	if r.RetentionPeriodHours < 24 || r.RetentionPeriodHours > 8760 || !allowed(found.retention, to) {
		return nil, refused("RetentionPeriodHours %d: it is %d now, must stay within 24 and 8760 "+
			"and move as the operation says", r.RetentionPeriodHours, int(found.retention.Hours()))
	}
	found.retention = to
	found.trim(s.config.Now())
	return struct{}{}, nil
}
