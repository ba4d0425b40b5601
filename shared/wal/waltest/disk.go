// Package waltest has a disk in memory that forgets like a real one: bytes and names that were not synced survive the
// end of the host by chance, sector by sector. It can also refuse writes, run full and fail to sync.
package waltest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"

	"abacus/shared/wal"
)

// ErrInjected is what an injected failure wraps.
var ErrInjected = errors.New("injected")

// Sector is the unit in which unsynced bytes survive, or do not.
const Sector = 512

// Op names an operation that can be made to fail.
type Op string

// The operations.
const (
	Create  Op = "create"
	Open    Op = "open"
	Write   Op = "write"
	Cut     Op = "truncate"
	Sync    Op = "sync"
	Rename  Op = "rename"
	Remove  Op = "remove"
	SyncDir Op = "syncdir"
	Read    Op = "read"
)

// Disk is a wal.FS. All methods may be called by many goroutines.
type Disk struct {
	mu      sync.Mutex
	names   map[string]*inode
	durable map[string]*inode // names as of the last SyncDir
	history []naming          // since then
	locked  bool
	room    int64 // bytes that may still be written; negative: no limit
	fail    func(op Op, name string) error
}

// naming takes a name away, gives one to a file, or both.
type naming struct {
	gone, set string
	inode     *inode
}

func (c naming) apply(names map[string]*inode) {
	if c.gone != "" && (c.inode == nil || names[c.gone] == c.inode) {
		delete(names, c.gone)
	}
	if c.set != "" {
		names[c.set] = c.inode
	}
}

type inode struct {
	data   []byte
	synced []byte
	// pending are the writes and cuts since the last sync, each a sector or less. A failed sync leaves them doomed: the
	// system has dropped its dirty pages, so no later sync puts them on disk; whether they had reached it is chance.
	pending []change
}

// change is a write of part at off; without part, a file of off bytes.
type change struct {
	off     int64
	part    []byte
	doomed  bool
	settled bool // synced, but behind a doomed one
}

func (c *change) apply(data []byte) []byte {
	size := int(c.off)
	if c.part == nil && len(data) >= size {
		return data[:size]
	}
	if need := size + len(c.part); len(data) < need {
		old := len(data)
		data = slices.Grow(data, need-old)[:need]
		clear(data[old:])
	}
	copy(data[size:], c.part)
	return data
}

// New returns an empty disk.
func New() *Disk { return &Disk{names: map[string]*inode{}, durable: map[string]*inode{}, room: -1} }

// Fail makes every operation ask f first; an error refuses it before it has any effect, except that a refused Write
// leaves half of its bytes behind. nil heals the disk.
func (d *Disk) Fail(f func(op Op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = f
}

// Limit lets n more bytes be written; the write that crosses the limit stops there with ENOSPC. Negative: no limit.
func (d *Disk) Limit(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// Kill returns the disk as the next process finds it: nothing written is lost, nor is more of it synced than was, and
// the lock is free. The old owner's files no longer reach it. That a sync had failed is forgotten with the owner who saw
// it: the new one's syncs are taken at their word.
func (d *Disk) Kill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := New()
	copies := map[*inode]*inode{nil: nil}
	copied := func(n *inode) *inode {
		if _, known := copies[n]; !known {
			c := &inode{slices.Clone(n.data), slices.Clone(n.synced), slices.Clone(n.pending)}
			for i := range c.pending {
				c.pending[i].doomed, c.pending[i].settled = false, false
			}
			copies[n] = c
		}
		return copies[n]
	}
	for name, n := range d.names {
		c.names[name] = copied(n)
	}
	for name, n := range d.durable {
		c.durable[name] = copied(n)
	}
	for _, change := range d.history {
		change.inode = copied(change.inode)
		c.history = append(c.history, change)
	}
	return c
}

// Crash returns the disk as the host finds it after losing power: what was synced is there; of the rest, every sector
// and every name survives by chance.
func (d *Disk) Crash(rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := maps.Clone(d.durable)
	chance := []float64{0, 0.5, 0.95, 1}[rng.IntN(4)]
	for _, change := range d.history {
		if rng.Float64() < chance {
			change.apply(names)
		}
	}
	c := New()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		data := slices.Clone(n.synced)
		for _, write := range n.pending {
			if write.settled || rng.Float64() < chance {
				data = write.apply(data)
			}
		}
		c.names[name] = &inode{data: data, synced: slices.Clone(data)}
	}
	c.durable = maps.Clone(c.names)
	return c
}

// Bytes returns a copy of a file; nil if there is none.
func (d *Disk) Bytes(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.names[name]; n != nil {
		return slices.Clone(n.data)
	}
	return nil
}

// Put makes a durable file of the given bytes, replacing one of that name.
func (d *Disk) Put(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := &inode{data: slices.Clone(data), synced: slices.Clone(data)}
	d.names[name], d.durable[name] = n, n
}

func (d *Disk) refused(op Op, name string) error {
	if d.fail == nil {
		return nil
	}
	if err := d.fail(op, name); err != nil {
		return fmt.Errorf("%s %s: %w", op, name, errors.Join(ErrInjected, err))
	}
	return nil
}

func (d *Disk) rename(change naming) {
	change.apply(d.names)
	d.history = append(d.history, change)
}

// Create implements wal.FS.
func (d *Disk) Create(name string) (wal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refused(Create, name); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: os.ErrExist}
	}
	n := &inode{}
	d.rename(naming{set: name, inode: n})
	return &file{disk: d, inode: n, name: name}, nil
}

// Open implements wal.FS.
func (d *Disk) Open(name string) (wal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refused(Open, name); err != nil {
		return nil, err
	}
	n := d.names[name]
	if n == nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return &file{disk: d, inode: n, name: name}, nil
}

// List implements wal.FS.
func (d *Disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Rename implements wal.FS.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refused(Rename, from); err != nil {
		return err
	}
	n := d.names[from]
	if n == nil {
		return &os.PathError{Op: "rename", Path: from, Err: os.ErrNotExist}
	}
	d.rename(naming{gone: from, set: to, inode: n})
	return nil
}

// Remove implements wal.FS.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refused(Remove, name); err != nil {
		return err
	}
	if d.names[name] == nil {
		return &os.PathError{Op: "remove", Path: name, Err: os.ErrNotExist}
	}
	d.rename(naming{gone: name})
	return nil
}

// SyncDir implements wal.FS.
func (d *Disk) SyncDir() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refused(SyncDir, "."); err != nil {
		return err
	}
	d.durable, d.history = maps.Clone(d.names), nil
	return nil
}

// Lock implements wal.FS.
func (d *Disk) Lock() (func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, &wal.LockedError{Dir: "disk", Owner: "another log of this test"}
	}
	d.locked = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.locked = false
	}, nil
}

type file struct {
	disk  *Disk
	inode *inode
	name  string
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.refused(Read, f.name); err != nil {
		return 0, err
	}
	if off >= int64(len(f.inode.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refused(Write, f.name); err != nil {
		f.write(p[:len(p)/2], off)
		return len(p) / 2, err
	}
	if d.room >= 0 && int64(len(p)) > d.room {
		n := int(d.room)
		d.room = 0
		f.write(p[:n], off)
		return n, &os.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	if d.room >= 0 {
		d.room -= int64(len(p))
	}
	f.write(p, off)
	return len(p), nil
}

// write applies p sector by sector, each of which a crash may lose by itself.
func (f *file) write(p []byte, off int64) {
	p = slices.Clone(p)
	for len(p) > 0 {
		n := min(int(Sector-off%Sector), len(p))
		f.change(change{off: off, part: p[:n]})
		p, off = p[n:], off+int64(n)
	}
}

func (f *file) change(c change) {
	f.inode.data = c.apply(f.inode.data)
	f.inode.pending = append(f.inode.pending, c)
}

func (f *file) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.refused(Cut, f.name); err != nil {
		return err
	}
	f.change(change{off: size})
	return nil
}

// Sync keeps what was written since the last Sync. One that fails keeps it by chance, and for good: no later Sync does
// better.
func (f *file) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := f.inode
	err := f.disk.refused(Sync, f.name)
	doomed := false
	for i := range n.pending {
		c := &n.pending[i]
		c.doomed = c.doomed || err != nil && !c.settled
		c.settled = c.settled || err == nil && !c.doomed
		doomed = doomed || c.doomed
	}
	if !doomed {
		for i := range n.pending {
			n.synced = n.pending[i].apply(n.synced)
		}
		n.pending = n.pending[:0]
	}
	return err
}

func (f *file) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.inode.data)), nil
}

func (f *file) Close() error { return nil }
