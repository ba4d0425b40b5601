package wal

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Inspection is what lies in a log's directory.
type Inspection struct {
	Dir       string        `json:"dir"`
	Owner     string        `json:"owner"`   // what an owner that has not closed the log wrote of itself; else empty
	Running   bool          `json:"running"` // a process of its number is alive: an append under way may show as a torn end
	Truncated Position      `json:"truncated"`
	Records   uint64        `json:"records"` // that can be read and are not truncated
	Segments  []SegmentInfo `json:"segments"`
	Damage    []Damage      `json:"damage"`
	Aside     []string      `json:"aside"`   // damaged bytes and files that an Open or Scan has kept
	Foreign   []string      `json:"foreign"` // files that are not the log's

	frames []Range // of the records that were read
}

// SegmentInfo is what one segment file holds.
type SegmentInfo struct {
	Name    string   `json:"name"`
	Bytes   int64    `json:"bytes"`   // size of the file
	End     int64    `json:"end"`     // where its frames end; behind that lie zeroes, a torn append or void bytes
	Torn    int64    `json:"torn"`    // bytes of a torn append; in the newest segment alone
	First   Position `json:"first"`   // of the records it holds; 0: none
	Last    Position `json:"last"`    // of them
	Records uint64   `json:"records"` // that can be read
	Frames  int      `json:"frames"`
	Closed  bool     `json:"closed"` // its last frame is the mark of an orderly close
	Void    bool     `json:"void"`   // newer segments pass over it; the next Open deletes it
}

// Inspect reads a log in a directory of the operating system, all of it, and changes nothing: the log is neither taken
// over nor repaired. It may run beside the owner.
func Inspect(dir string) (*Inspection, error) {
	in, err := inspect(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect log: %w", err)
	}
	return in, nil
}

func inspect(dir string) (*Inspection, error) {
	d := looking{directory{dir}}
	found, err := survey(d)
	if err != nil {
		return nil, err
	}
	in := &Inspection{Dir: dir, Segments: []SegmentInfo{}, Damage: []Damage{}, Foreign: append([]string{}, found.foreign...)}
	in.Owner, in.Running = d.owner()
	names := slices.Sorted(maps.Keys(found.names))
	in.Aside = append([]string{}, slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, asideSuffix) })...)
	l := &Log{}
	chain, loose, void := link(found.segments)
	l.chain = chain
	if len(chain) > 0 {
		newest := chain[len(chain)-1]
		l.state.Truncated, l.gone = newest.truncated, newest.gone
	}
	for _, s := range slices.Backward(chain) { // the newest first: it tells what is truncated
		name := s.name()
		if actual := found.misnamed[s.serial]; actual != "" {
			name = actual
		}
		if err := l.look(d, name, s, slices.Contains(loose, s), in); err != nil {
			return nil, err
		}
		if found.scratched[s.serial] {
			in.Damage = append(in.Damage, Damage{Segment: name, Bytes: segmentHeader, After: s.first - 1})
		}
	}
	for _, s := range void {
		in.Segments = append(in.Segments, SegmentInfo{Name: s.name(), Bytes: s.end, Void: true})
	}
	slices.SortFunc(in.Segments, func(a, b SegmentInfo) int { return strings.Compare(a.Name, b.Name) })
	in.Truncated = l.state.Truncated
	for _, f := range in.frames {
		in.Records += uint64(max(f.Last, in.Truncated) - max(f.First-1, in.Truncated))
	}
	in.lost(l.missing(), found)
	return in, nil
}

// lost adds the damage of whole files.
func (in *Inspection) lost(missing map[uint64]Damage, found *inventory) {
	for _, f := range found.headless {
		d := missing[f.serial]
		delete(missing, f.serial)
		d.Segment, d.Bytes = f.name, f.size
		d.Unknown = !slices.ContainsFunc(found.segments, func(s *segment) bool { return s.serial > f.serial })
		in.Damage = append(in.Damage, d)
	}
	for _, f := range found.copies {
		in.Damage = append(in.Damage, Damage{Segment: f.name, Bytes: f.size})
	}
	in.Damage = slices.AppendSeq(in.Damage, maps.Values(missing))
	slices.SortFunc(in.Damage, func(a, b Damage) int {
		return strings.Compare(fmt.Sprintf("%s %20d", a.Segment, a.Offset), fmt.Sprintf("%s %20d", b.Segment, b.Offset))
	})
}

// look reads one segment.
func (l *Log) look(d looking, name string, s *segment, loose bool, in *Inspection) error {
	f, err := d.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // its owner has deleted it meanwhile
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info := SegmentInfo{Name: name}
	if info.Bytes, err = f.Size(); err != nil {
		return err
	}
	end, high := s.end, s.last+1
	if loose {
		end, high = info.Bytes, s.limit()
	}
	newest := s == l.active()
	r := &reader{file: f, salt: s.salt, off: segmentHeader, end: end}
	expect, whole, err := r.walk(name, s.first, high, func(d Damage) { in.Damage = append(in.Damage, d) },
		func(f frame, _ int64) bool {
			if through, gone := f.truncated(); newest && through > l.state.Truncated {
				l.state.Truncated, l.gone = through, gone
			}
			if f.count > 0 && info.First == 0 {
				info.First = f.first
			}
			if f.count > 0 {
				info.Last = f.next() - 1
				info.Records += uint64(f.count)
				in.frames = append(in.frames, Range{f.first, f.next() - 1})
			}
			info.Frames++
			info.Closed = f.kind == kindClosed
			return true
		})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	info.End = whole
	switch {
	case loose:
		s.end, s.last = whole, expect-1
		if newest {
			info.Torn, err = tornBytes(f, whole, max(whole, info.Bytes))
		}
	case whole < end:
		in.Damage = append(in.Damage, Damage{
			Segment: name, Offset: whole, Bytes: end - whole, Lost: uint64(high - expect), After: expect - 1,
		})
	}
	in.Segments = append(in.Segments, info)
	return err
}

// looking is a directory that is only read.
type looking struct{ directory }

func (d looking) Open(name string) (File, error) {
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// owner reads who took the directory last. It takes no lock itself, which could turn away an owner that just starts.
func (d looking) owner() (who string, running bool) {
	f, err := os.Open(filepath.Join(d.path, lockName))
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 128))
	who = strings.TrimSpace(string(text))
	var pid int
	if _, err := fmt.Sscanf(who, "pid %d", &pid); err != nil || pid <= 0 {
		return who, false
	}
	err = unix.Kill(pid, 0)
	return who, err == nil || errors.Is(err, unix.EPERM)
}
