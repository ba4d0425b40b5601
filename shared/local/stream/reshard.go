package stream

import "time"

func (s *Server) openShard(m *stream, id string) (*shard, error) {
	d, ok := m.shard(id)
	if !ok {
		return nil, notFound("Could not find shard %s in stream %s under account %s.", id, m.name, s.config.Account)
	}
	if !d.open() {
		return nil, refused("Shard %s in stream %s under account %s is closed; name an open one",
			id, m.name, s.config.Account)
	}
	return d, nil
}

// born returns the creation second of a child: later than that of each parent, so that its numbers are above theirs.
func born(now time.Time, parents ...*shard) int64 {
	at := now.Unix()
	for _, p := range parents {
		at = max(at, p.created+1)
	}
	return at
}

func (s *Server) splitShard(r struct {
	target
	ShardToSplit       string
	NewStartingHashKey string
}) (any, error) {
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	parent, err := s.openShard(found, r.ShardToSplit)
	if err != nil {
		return nil, err
	}
	middle, ok := parseHashKey(r.NewStartingHashKey)
	if !ok {
		return nil, invalid("NewStartingHashKey must be a whole number in [0, 2^128-1]")
	}
	if middle.compare(parent.from.plus(1)) <= 0 || middle.compare(parent.to) >= 0 {
		return nil, refused("NewStartingHashKey %s is not both greater than one plus shard %s's StartingHashKey %s "+
			"and less than its EndingHashKey %s.", middle, parent.id, parent.from, parent.to)
	}
	now := s.config.Now()
	parent.close(now)
	at := born(now, parent)
	found.add(newShard(found.serial, parent.from, middle.plus(-1), at, parent.id))
	found.add(newShard(found.serial, middle, parent.to, at, parent.id))
	return struct{}{}, nil
}

func (s *Server) mergeShards(r struct {
	target
	ShardToMerge         string
	AdjacentShardToMerge string
}) (any, error) {
	found, err := s.find(r.target)
	if err != nil {
		return nil, err
	}
	one, err := s.openShard(found, r.ShardToMerge)
	if err != nil {
		return nil, err
	}
	other, err := s.openShard(found, r.AdjacentShardToMerge)
	if err != nil {
		return nil, err
	}
	if one.to == highest || one.to.plus(1) != other.from {
		return nil, refused("Shards %s and %s in stream %s under account %s are not an adjacent pair of shards "+
			"eligible for merging", one.id, other.id, found.name, s.config.Account)
	}
	now := s.config.Now()
	one.close(now)
	other.close(now)
	found.add(newShard(found.serial, one.from, other.to, born(now, one, other), one.id, other.id))
	return struct{}{}, nil
}
