package wal

import "fmt"

// Recovery says what Open found.
type Recovery struct {
	Clean   bool     // the log had been closed in order
	Dropped int64    // bytes of a torn append that were cut off its end
	Damage  []Damage // stretches found by Open; older segments are read, and their damage found, by Scan
	Foreign []string // files in the directory that are not the log's; they are left alone
}

// Open takes the directory, recovers what it holds and returns a log ready for use. It reads the headers of all
// segments and the newest segment whole. Where another owner has the directory the error is a *LockedError; where
// another version of this package wrote it, the error wraps ErrVersion and nothing has been changed.
func Open(o Options) (*Log, Recovery, error) {
	if err := o.applyDefaults(); err != nil {
		return nil, Recovery{}, fmt.Errorf("open log: %w", err)
	}
	fs := o.FS
	if fs == nil {
		dir, err := Dir(o.Dir)
		if err != nil {
			return nil, Recovery{}, err
		}
		fs = dir
	}
	unlock, err := fs.Lock()
	if err != nil {
		return nil, Recovery{}, fmt.Errorf("open log: %w", err)
	}
	l := &Log{fs: fs, opts: o, unlock: unlock, damaged: map[uint64][]stretch{}}
	l.queue.group, l.queue.room = new(group), make(chan struct{})
	l.state.MaxBytes = o.MaxBytes
	report, err := l.recover()
	if err != nil {
		l.closeFiles()
		return nil, report, fmt.Errorf("open log: %w", err)
	}
	l.queue.used = l.state.Bytes
	return l, report, nil
}

// Close writes a mark by which the next Open knows that nothing is missing, syncs, and gives the directory up. Appends
// that are under way are finished first. A second Close waits for the first and returns the same.
func (l *Log) Close() error {
	l.closing.Do(func() { l.closeErr = l.shut() })
	return l.closeErr
}

func (l *Log) shut() error {
	q := &l.queue
	q.mu.Lock()
	q.closed = true
	g := q.group
	m := &member{kind: kindClosed, start: len(g.buf), wake: make(chan verdict, 1)}
	g.buf = append(g.buf, make([]byte, frameHeader)...)
	m.end = len(g.buf)
	g.members = append(g.members, m)
	g.sync = true
	q.used += frameHeader
	first := !q.leading
	q.leading = true
	q.mu.Unlock()
	if first {
		l.leadOne()
	}
	err := m.await(l)
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.closeFiles()
	if err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}

func (l *Log) closeFiles() {
	for _, s := range l.chain {
		if s.file != nil {
			s.file.Close()
		}
	}
	l.unlock()
}
