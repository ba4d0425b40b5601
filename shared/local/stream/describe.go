package stream

import (
	"encoding/base64"
	"slices"
	"strings"
)

type hashKeyRange struct{ StartingHashKey, EndingHashKey string }

type numberRange struct {
	StartingSequenceNumber string
	EndingSequenceNumber   string `json:",omitempty"`
}

type shardShape struct {
	ShardId               string
	ParentShardId         string `json:",omitempty"`
	AdjacentParentShardId string `json:",omitempty"`
	HashKeyRange          hashKeyRange
	SequenceNumberRange   numberRange
}

func (d *shard) shape() shardShape {
	out := shardShape{ShardId: d.id, HashKeyRange: hashKeyRange{d.from.String(), d.to.String()},
		SequenceNumberRange: numberRange{d.number(0, d.created), d.ending}}
	if len(d.parents) > 0 {
		out.ParentShardId = d.parents[0]
	}
	if len(d.parents) > 1 {
		out.AdjacentParentShardId = d.parents[1]
	}
	return out
}

// page returns the shards whose id is above after, at most limit of them, and whether there are more.
func (m *stream) page(after string, limit int) ([]shardShape, bool) {
	out := []shardShape{}
	for _, d := range m.shards {
		if d.id <= after {
			continue
		}
		if len(out) == limit {
			return out, true
		}
		out = append(out, d.shape())
	}
	return out, false
}

func (s *Server) describeStream(r struct {
	target
	ExclusiveStartShardId string
	Limit                 int
}) (any, error) {
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	if r.Limit < 0 || r.Limit > 10_000 {
		return nil, invalid("Limit must be between 1 and 10000")
	}
	limit := 100
	if r.Limit > 0 {
		limit = min(r.Limit, 100)
	}
	shards, more := found.page(r.ExclusiveStartShardId, limit)
	about := s.about(found)
	about["Shards"], about["HasMoreShards"] = shards, more
	return map[string]any{"StreamDescription": about}, nil
}

func (s *Server) describeSummary(r target) (any, error) {
	found, err := s.find(r)
	if err != nil {
		return nil, err
	}
	about := s.about(found)
	open := slices.DeleteFunc(slices.Clone(found.shards), func(d *shard) bool { return !d.open() })
	about["OpenShardCount"], about["ConsumerCount"], about["MaxRecordSizeInKiB"] = len(open), 0, found.maxRecord>>10
	return map[string]any{"StreamDescriptionSummary": about}, nil
}

func (s *Server) about(m *stream) map[string]any {
	return map[string]any{
		"StreamName": m.name, "StreamARN": s.ARN(m.name), "StreamStatus": "ACTIVE", "EncryptionType": "NONE",
		"StreamModeDetails":       map[string]any{"StreamMode": "PROVISIONED"},
		"StreamCreationTimestamp": epoch(m.created), "RetentionPeriodHours": int(m.retention.Hours()),
		"EnhancedMonitoring": []any{map[string]any{"ShardLevelMetrics": []string{}}},
	}
}

func (s *Server) listShards(r struct {
	target
	ExclusiveStartShardId string
	MaxResults            int
	NextToken             string
}) (any, error) {
	after := r.ExclusiveStartShardId
	if r.NextToken != "" {
		text, err := base64.URLEncoding.DecodeString(r.NextToken)
		name, last, whole := strings.Cut(string(text), "/")
		if err != nil || !whole || r.target != (target{}) || after != "" {
			return nil, refused("NextToken must be one that ListShards gave, and name the stream alone")
		}
		r.target, after = target{StreamName: name}, last
	}
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	if r.MaxResults < 0 || r.MaxResults > 10_000 {
		return nil, invalid("MaxResults must be between 1 and 10000")
	}
	limit := 1000
	if r.MaxResults > 0 {
		limit = r.MaxResults
	}
	shards, more := found.page(after, limit)
	out := map[string]any{"Shards": shards}
	if more {
		out["NextToken"] = base64.URLEncoding.EncodeToString([]byte(found.name + "/" + shards[len(shards)-1].ShardId))
	}
	return out, nil
}
