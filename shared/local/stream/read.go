package stream

import (
	"slices"
	"time"

	"abacus/shared/local/wire"
)

// Limits of GetRecords (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_GetRecords.html).
const (
	maxRecords   = 10_000
	maxReadBytes = 10 << 20
)

type recordShape struct {
	SequenceNumber              string
	PartitionKey                string
	Data                        []byte
	ApproximateArrivalTimestamp epoch
}

type childShape struct {
	ShardId      string
	ParentShards []string
	HashKeyRange hashKeyRange
}

type readRequest struct {
	ShardIterator string
	StreamARN     string
	Limit         *int
}

func (s *Server) getRecords(r readRequest) (any, error) {
	i, err := parseIterator(r.ShardIterator)
	if err != nil {
		return nil, err
	}
	limit := maxRecords
	if r.Limit != nil {
		limit = *r.Limit
	}
	if limit < 1 || limit > maxRecords {
		return nil, invalid("Limit must be between 1 and %d", maxRecords)
	}
	found, err := s.find(target{StreamName: i.Stream, StreamARN: r.StreamARN})
	if err != nil {
		return nil, err
	}
	d, ok := found.shard(i.Shard)
	if !ok || found.created.UnixMilli() != i.Created {
		return nil, notFound("Shard %s in stream %s under account %s does not exist", i.Shard, found.name, s.config.Account)
	}
	now := s.config.Now()
	if issued := time.UnixMilli(i.Issued); now.UnixMilli()-i.Issued > iteratorLife.Milliseconds() {
		return nil, wire.Errorf("ExpiredIteratorException",
			"Iterator expired. It was created at %s and it is %s now; get a new one after the last record read",
			issued.UTC(), now.UTC())
	}
	if s.config.Throttle && !d.read.admit(now, 1, 0, readCalls, bytesRead) {
		return nil, exceeded("Rate exceeded for shard %s in stream %s under account %s.", d.id, found.name,
			s.config.Account)
	}
	return s.read(found, d, i, limit, now), nil
}

func (s *Server) read(m *stream, d *shard, i iterator, limit int, now time.Time) map[string]any {
	if i.Empty {
		return map[string]any{"Records": []recordShape{}, "MillisBehindLatest": m.retention.Milliseconds(),
			"NextShardIterator": i.at(i.Next, now)}
	}
	left := d.after(max(i.Next, d.trimmed))
	records, bytes := []recordShape{}, 0
	for _, r := range left[:min(limit, len(left))] {
		if bytes += len(r.data) + len(r.key); bytes > maxReadBytes && len(records) > 0 {
			break
		}
		records = append(records, recordShape{r.number, r.key, r.data, epoch(r.arrived)})
	}
	d.read.spend(now, bytes, bytesRead)
	out := map[string]any{"Records": records, "MillisBehindLatest": int64(0)}
	rest := left[len(records):]
	switch {
	case len(rest) > 0:
		out["MillisBehindLatest"] = max(1, now.Sub(rest[0].arrived).Milliseconds())
		out["NextShardIterator"] = i.at(rest[0].index, now)
	case d.open() || len(records) > 0: // the end of a closed shard shows in a read that finds nothing
		out["NextShardIterator"] = i.at(d.next, now)
	default:
		out["ChildShards"] = m.children(d)
	}
	return out
}

func (i iterator) at(next uint64, now time.Time) string {
	i.Next, i.Issued = next, now.UnixMilli()
	return i.text()
}

func (m *stream) children(d *shard) []childShape {
	out := []childShape{}
	for _, c := range m.shards {
		if slices.Contains(c.parents, d.id) {
			out = append(out, childShape{c.id, c.parents, hashKeyRange{c.from.String(), c.to.String()}})
		}
	}
	return out
}
