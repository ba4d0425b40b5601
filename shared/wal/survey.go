package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// inventory is what lies in a log's directory.
type inventory struct {
	segments  []*segment // those with an intact header, oldest first
	misnamed  map[uint64]string
	scratched map[uint64]bool // one copy of the header is damaged
	headless  []remnant
	copies    []remnant // of a segment that is there under its own name as well
	temps     []string  // segments that a crash caught in the making; they held nothing that anybody was told
	foreign   []string
	names     map[string]bool
	serial    uint64 // the greatest that anything here was named by
	aside     int    // files kept aside
	kept      int64  // and their bytes
}

// remnant is a file that cannot be used as a segment.
type remnant struct {
	name   string
	serial uint64
	size   int64
}

// contents is the part of FS that changes nothing.
type contents interface {
	Open(name string) (File, error)
	List() ([]string, error)
}

// survey looks at every file of the directory and changes nothing. The headers of segments are read.
func survey(fs contents) (*inventory, error) {
	names, err := fs.List()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	v := &inventory{misnamed: map[uint64]string{}, scratched: map[uint64]bool{}, names: map[string]bool{}}
	for _, name := range names {
		v.names[name] = true
	}
	for _, name := range names {
		// A file may be gone meanwhile where another process owns the log (Inspect).
		if err := v.look(fs, name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	slices.SortFunc(v.segments, func(a, b *segment) int { return int(int64(a.serial) - int64(b.serial)) })
	return v, nil
}

func (v *inventory) look(fs contents, name string) error {
	base, isDir := strings.CutSuffix(name, "/")
	base, isTemp := strings.CutSuffix(base, tempSuffix)
	base, isAside := strings.CutSuffix(base, asideSuffix)
	if isAside {
		base, _, _ = strings.Cut(base, "@")
	}
	serial, isSegment := segmentSerial(base)
	if isSegment {
		v.serial = max(v.serial, serial)
	}
	switch {
	case name == lockName:
	case !isSegment || isDir || isTemp && isAside:
		v.foreign = append(v.foreign, name)
	case isTemp:
		v.temps = append(v.temps, name)
	case isAside:
		f, err := fs.Open(name)
		if err != nil {
			return err
		}
		size, err := f.Size()
		v.aside, v.kept = v.aside+1, v.kept+size
		return errors.Join(err, f.Close())
	default:
		return v.header(fs, name, serial)
	}
	return nil
}

// header reads the header of the file and says what is to be done with it.
func (v *inventory) header(fs contents, name string, serial uint64) error {
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	buf := make([]byte, max(0, min(size, segmentHeader)))
	if err == nil && size > 0 {
		_, err = f.ReadAt(buf, 0)
	}
	if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	h, damaged, ok := decodeHeader(buf)
	if !ok {
		if other, is := otherVersion(buf); is {
			return fmt.Errorf("%s is of version %d, this is %d: %w", name, other, version, ErrVersion)
		}
		v.headless = append(v.headless, remnant{name, serial, size})
		return nil
	}
	v.serial = max(v.serial, h.serial)
	if h.serial != serial {
		if v.names[segmentName(h.serial)] || v.misnamed[h.serial] != "" {
			v.copies = append(v.copies, remnant{name, serial, size})
			return nil
		}
		v.misnamed[h.serial] = name
	}
	v.scratched[h.serial] = damaged
	v.segments = append(v.segments, &segment{
		extent: extent{header: h, end: size, last: h.first - 1}, synced: size, zeroEnd: size,
	})
	return nil
}

// link makes a chain of segments, oldest first. Each names the one that it follows and says where that one ends: one
// that the newer ones pass over is void, its frames having been moved on; one that is named but missing is lost, and
// then nothing but the bytes of the one before it, which is loose, tells where it ends.
func link(segments []*segment) (chain, loose, void []*segment) {
	for i, s := range slices.Backward(segments) {
		if len(chain) == 0 {
			chain, loose = append(chain, s), append(loose, s)
			continue
		}
		newer := chain[len(chain)-1]
		missing := !slices.ContainsFunc(segments[:i+1], func(o *segment) bool { return o.serial == newer.prev })
		switch {
		case s.serial == newer.prev:
			s.end, s.last = newer.prevEnd, newer.prevLast
		case missing && newer.prev != 0 && s.first < newer.first:
			loose = append(loose, s)
		default:
			void = append(void, s)
			continue
		}
		chain = append(chain, s)
	}
	slices.Reverse(chain)
	return chain, loose, void
}
