package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"abacus/shared/wal"

	"golang.org/x/sys/unix"
)

var abacus = subject{name: "abacus wal", unsynced: true, concurrent: true, open: openAbacus}

type abacusLog struct {
	*wal.Log
	durability wal.Durability
}

func openAbacus(dir string, sync bool) (log, error) {
	l, _, err := wal.Open(wal.Options{Dir: dir, MaxBytes: 2 << 30})
	d := wal.Volatile
	if sync {
		d = wal.Synced
	}
	return &abacusLog{l, d}, err
}

// append gives each record an id, which the peers have not: its first bytes.
func (l *abacusLog) append(batch [][]byte) error {
	var few [64]wal.Entry
	entries := few[:0]
	for _, b := range batch {
		entries = append(entries, wal.Entry{ID: id, Data: b[len(id):]})
	}
	_, err := l.Append(context.Background(), entries, l.durability)
	return err
}

const id = "abcdefgh"

func (l *abacusLog) read(visit func([]byte)) error {
	for r, err := range l.Scan(1, ^wal.Position(0)) {
		if err != nil {
			return err
		}
		visit(r.Data)
	}
	return nil
}

func (l *abacusLog) close() error { return l.Close() }

// raw is a file without any format: the least that a synced append can cost.
var raw = []subject{
	{name: "raw append+fdatasync", open: func(dir string, _ bool) (log, error) { return openRaw(dir, 0) }},
	{name: "raw overwrite+fdatasync", open: func(dir string, _ bool) (log, error) { return openRaw(dir, 8<<20) }},
}

type rawFile struct {
	*os.File
	at, size int64
}

func openRaw(dir string, size int64) (log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, strconv.FormatInt(size, 10)))
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, size)); err != nil {
		return nil, err
	}
	return &rawFile{f, 0, size}, f.Sync()
}

func (f *rawFile) append(batch [][]byte) error {
	for _, b := range batch {
		if _, err := f.WriteAt(b, f.at); err != nil {
			return err
		}
		if f.at += int64(len(b)); f.size > 0 && f.at+int64(len(b)) > f.size {
			f.at = 0
		}
	}
	return unix.Fdatasync(int(f.Fd()))
}

func (f *rawFile) read(func([]byte)) error { return nil }
func (f *rawFile) close() error            { return f.Close() }
