package merge

import (
	"encoding/binary"
	"slices"
)

// limits of one chunk.
type limits struct{ cells, events int }

// pack divides work into chunks so that few adds are written in all. Each chunk costs two write units for its record
// and for each of its cells, so events that move the same cells belong together, and then those that add the fewest
// new ones. Finding the best division is NP-hard; this greedy one fills the chunk at hand with whatever is nearest.
func (p *plan) pack(work []int32, limits limits) {
	p.shared = make([]bool, len(p.cells))
	if len(work) == 0 {
		return
	}
	if len(work) <= limits.events && len(p.cells) <= limits.cells {
		all := make([]int32, len(p.cells))
		for i := range all {
			all[i] = int32(i)
		}
		p.chunks = []chunk{{events: work, cells: all}}
		return
	}
	k := newPacker(p, work, limits)
	for k.begin() {
		for {
			g, ok := k.nearest()
			if !ok {
				break
			}
			k.add(g)
		}
		slices.Sort(k.chunk.cells)
		p.chunks = append(p.chunks, k.chunk)
	}
	users := make([]int, len(p.cells))
	for _, c := range p.chunks {
		for _, cell := range c.cells {
			users[cell]++
			p.shared[cell] = users[cell] > 1
		}
	}
}

// group is the events that move the same cells.
type group struct {
	cells      []int32
	head, tail int32 // its events that are in no chunk yet, a list in packer.next; none if all are
	missing    int   // how many of its cells the chunk at hand lacks
	touched    int   // the last chunk for which missing was counted
}

type packer struct {
	limits limits
	groups []group
	next   []int32 // by event: the group's next
	users  []int32 // the groups that move each cell, cell after cell
	from   []int32 // cell c's groups are users[from[c]:from[c+1]]
	chunk  chunk
	number int       // of the chunk at hand, from 1
	within []int     // by cell: the last chunk that has it
	near   [][]int32 // by missing: groups that share a cell with the chunk; entries may be outdated
	seed   int       // groups before it are all in chunks
	far    int       // groups before it need not be looked at again for this chunk
}

func newPacker(p *plan, work []int32, limits limits) *packer {
	k := &packer{
		limits: limits, next: make([]int32, len(p.events)), from: make([]int32, len(p.cells)+1),
		within: make([]int, len(p.cells)), near: make([][]int32, MaxAdds+1),
	}
	k.group(p, work)
	for _, g := range k.groups {
		for _, cell := range g.cells {
			k.from[cell+1]++
		}
	}
	for cell := range p.cells {
		k.from[cell+1] += k.from[cell]
	}
	k.users = make([]int32, k.from[len(p.cells)])
	end := slices.Clone(k.from)
	for g, group := range k.groups {
		for _, cell := range group.cells {
			k.users[end[cell]] = int32(g)
			end[cell]++
		}
	}
	return k
}

// group puts events that move the same cells, in the same order, into one group.
func (k *packer) group(p *plan, work []int32) {
	known := make(map[string]int32)
	var key []byte
	for _, event := range work {
		key = key[:0]
		for _, cell := range p.refsOf(event) {
			key = binary.LittleEndian.AppendUint32(key, uint32(cell))
		}
		k.next[event] = none
		if g, ok := known[string(key)]; ok {
			k.next[k.groups[g].tail] = event
			k.groups[g].tail = event
			continue
		}
		known[string(key)] = int32(len(k.groups))
		k.groups = append(k.groups, group{cells: p.refsOf(event), head: event, tail: event})
	}
}

// begin starts a chunk with the first group that is left, and reports whether there was one.
func (k *packer) begin() bool {
	for k.seed < len(k.groups) && k.groups[k.seed].head == none {
		k.seed++
	}
	if k.seed == len(k.groups) {
		return false
	}
	k.number++
	k.chunk = chunk{cells: make([]int32, 0, k.limits.cells)}
	k.far = k.seed
	for i := range k.near {
		k.near[i] = k.near[i][:0]
	}
	k.add(int32(k.seed))
	return true
}

// nearest returns the group that adds the fewest cells to the chunk, as far as it fits.
func (k *packer) nearest() (int32, bool) {
	if len(k.chunk.events) >= k.limits.events {
		return 0, false
	}
	room := k.limits.cells - len(k.chunk.cells)
	for missing := range room + 1 {
		for list := k.near[missing]; len(list) > 0; list = k.near[missing] {
			g := list[len(list)-1]
			k.near[missing] = list[:len(list)-1]
			if k.groups[g].head != none && k.groups[g].missing == missing {
				return g, true
			}
		}
	}
	for ; k.far < len(k.groups); k.far++ {
		g := &k.groups[k.far]
		if g.head != none && g.touched != k.number && len(g.cells) <= room {
			return int32(k.far), true
		}
	}
	return 0, false
}

// add moves as many events of a group as fit into the chunk, and brings near what shares a cell with it.
func (k *packer) add(g int32) {
	group := &k.groups[g]
	for group.head != none && len(k.chunk.events) < k.limits.events {
		k.chunk.events = append(k.chunk.events, group.head)
		group.head = k.next[group.head]
	}
	for _, cell := range group.cells {
		if k.within[cell] == k.number {
			continue
		}
		k.within[cell] = k.number
		k.chunk.cells = append(k.chunk.cells, cell)
		for _, user := range k.users[k.from[cell]:k.from[cell+1]] {
			other := &k.groups[user]
			if other.touched != k.number {
				other.touched, other.missing = k.number, len(other.cells)
			}
			other.missing--
			if other.head != none {
				k.near[other.missing] = append(k.near[other.missing], user)
			}
		}
	}
}
