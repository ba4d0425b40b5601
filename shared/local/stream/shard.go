package stream

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// hashKey is a place among the 2^128 of the hash space, big-endian.
type hashKey [16]byte

func (k hashKey) compare(other hashKey) int { return bytes.Compare(k[:], other[:]) }

func (k hashKey) plus(n int64) hashKey {
	sum := new(big.Int).Add(new(big.Int).SetBytes(k[:]), big.NewInt(n))
	var out hashKey
	sum.FillBytes(out[:])
	return out
}

func (k hashKey) String() string { return new(big.Int).SetBytes(k[:]).String() }

// parseHashKey reads a decimal hash key within [0, 2^128-1].
func parseHashKey(text string) (hashKey, bool) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 128 || n.String() != text {
		return hashKey{}, false
	}
	var k hashKey
	n.FillBytes(k[:])
	return k, true
}

type record struct {
	index   uint64
	number  string
	key     string
	data    []byte
	arrived time.Time
}

type shard struct {
	id       string
	ix       uint32
	parents  []string // none, one after a split, two after a merge
	from, to hashKey
	created  int64 // Unix seconds, as its numbers carry it
	next     uint64
	records  []record // what retention has left, oldest first
	trimmed  uint64   // index below which everything is gone
	closed   time.Time
	ending   string // its last number; empty while it is open
	written  meter
	read     meter
	seeks    meter
}

func newShard(ix int, from, to hashKey, created int64, parents ...string) *shard {
	return &shard{id: fmt.Sprintf("shardId-%012d", ix), ix: uint32(ix), parents: parents, from: from, to: to,
		created: created, next: 1, trimmed: 1}
}

func (d *shard) open() bool { return d.ending == "" }

func (d *shard) number(index uint64, at int64) string {
	return sequence{created: d.created, index: index, at: max(at, d.created), shard: d.ix}.String()
}

// append adds a record and returns its sequence number. Arrival times have milliseconds.
func (d *shard) append(key string, data []byte, now time.Time) string {
	number := d.number(d.next, now.Unix())
	arrived := now.Truncate(time.Millisecond)
	d.records = append(d.records, record{index: d.next, number: number, key: key, data: data, arrived: arrived})
	d.next++
	return number
}

func (d *shard) close(now time.Time) {
	d.closed = now
	d.ending = d.number(lastIndex, now.Unix())
}

// after returns the records from index on.
func (d *shard) after(index uint64) []record {
	at, _ := slices.BinarySearchFunc(d.records, index, func(r record, i uint64) int { return cmp.Compare(r.index, i) })
	return d.records[at:]
}

type stream struct {
	name      string
	created   time.Time
	retention time.Duration
	maxRecord int // bytes of data and partition key
	shards    []*shard
	serial    int // number of the next shard
}

// trim forgets records that came longer than the retention period ago, and closed shards without any left. What is gone
// stays gone when the period is raised
// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_IncreaseStreamRetentionPeriod.html).
func (m *stream) trim(now time.Time) {
	horizon := now.Add(-m.retention)
	for _, d := range m.shards {
		gone := 0
		for gone < len(d.records) && d.records[gone].arrived.Before(horizon) {
			gone++
		}
		if gone > 0 {
			d.trimmed = d.records[gone-1].index + 1
			d.records = slices.Delete(d.records, 0, gone)
		}
	}
	m.shards = slices.DeleteFunc(m.shards, func(d *shard) bool { return !d.open() && d.closed.Before(horizon) })
}

func (m *stream) shard(id string) (*shard, bool) {
	at := slices.IndexFunc(m.shards, func(d *shard) bool { return d.id == id })
	if at < 0 {
		return nil, false
	}
	return m.shards[at], true
}

// route returns the open shard whose range holds k.
func (m *stream) route(k hashKey) *shard {
	at := slices.IndexFunc(m.shards, func(d *shard) bool {
		return d.open() && d.from.compare(k) <= 0 && k.compare(d.to) <= 0
	})
	return m.shards[at]
}
