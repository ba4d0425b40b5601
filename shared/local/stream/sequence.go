package stream

import (
	"fmt"
	"math/big"
)

// sequence is what a Kinesis sequence number holds, as the numbers of real streams show it: 186 bits, written as 56
// decimal digits, most significant first:
//
//	2 | created:36 | shard:4 | index:64 | 0:8 | at:36 | shard:32 | version 2:4
//
// Numbers of one shard grow with index; numbers of a child are above its parent's, since its shard was created later.
type sequence struct {
	created int64  // Unix seconds at which the shard was created
	index   uint64 // place in the shard; 0 is the shard's own starting number
	at      int64  // Unix seconds at which the record came
	shard   uint32 // number of the shard in its stream
}

// lastIndex marks the number that closes a shard.
const lastIndex = 1<<63 - 1

func (q sequence) String() string {
	n := big.NewInt(2)
	put := func(bits uint, value uint64) {
		n.Lsh(n, bits).Or(n, new(big.Int).SetUint64(value))
	}
	put(36, uint64(q.created))
	put(4, uint64(q.shard&15))
	put(64, q.index)
	put(8, 0)
	put(36, uint64(q.at))
	put(32, uint64(q.shard))
	put(4, 2)
	return n.String()
}

// parseSequence reads a sequence number; one in another layout is an error.
func parseSequence(text string) (sequence, error) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.BitLen() != 186 || n.Sign() < 0 || n.String() != text {
		return sequence{}, fmt.Errorf("not a sequence number")
	}
	take := func(bits uint) uint64 {
		mask := new(big.Int).Lsh(big.NewInt(1), bits)
		low := new(big.Int).And(n, mask.Sub(mask, big.NewInt(1)))
		n.Rsh(n, bits)
		return low.Uint64()
	}
	version, shard, at, zero := take(4), take(32), take(36), take(8)
	q := sequence{index: take(64), at: int64(at), shard: uint32(shard)}
	nibble := take(4)
	q.created = int64(take(36))
	if version != 2 || zero != 0 || nibble != shard&15 || n.Uint64() != 2 {
		return sequence{}, fmt.Errorf("not a sequence number")
	}
	return q, nil
}
