package main

import (
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
	tidwall "github.com/tidwall/wal"
	etcd "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// peers are the other logs. None of them groups the syncs of concurrent callers; the three that leave numbering or
// locking to their user are locked here.
var peers = []subject{
	{name: "tidwall/wal", unsynced: true, open: openTidwall},
	{name: "hashicorp/raft-wal", open: openRaft},
	{name: "etcd wal", unsynced: true, open: openEtcd},
	{name: "prometheus wlog", unsynced: true, open: openPrometheus},
}

type tidwallLog struct {
	*tidwall.Log
	batch tidwall.Batch
	next  uint64
}

func openTidwall(dir string, sync bool) (log, error) {
	l, err := tidwall.Open(dir, &tidwall.Options{NoSync: !sync, NoCopy: true})
	if err != nil {
		return nil, err
	}
	last, err := l.LastIndex()
	return &tidwallLog{Log: l, next: last + 1}, err
}

func (l *tidwallLog) append(batch [][]byte) error {
	l.batch.Clear()
	for _, b := range batch {
		l.batch.Write(l.next, b)
		l.next++
	}
	return l.WriteBatch(&l.batch)
}

func (l *tidwallLog) read(visit func([]byte)) error {
	for i := uint64(1); i < l.next; i++ {
		data, err := l.Read(i)
		if err != nil {
			return err
		}
		visit(data)
	}
	return nil
}

func (l *tidwallLog) close() error { return l.Close() }

type raftLog struct {
	*raftwal.WAL
	logs []*raft.Log
	next uint64
}

func openRaft(dir string, _ bool) (log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l, err := raftwal.Open(dir, raftwal.WithLogger(hclog.NewNullLogger()))
	if err != nil {
		return nil, err
	}
	last, err := l.LastIndex()
	return &raftLog{WAL: l, next: last + 1}, err
}

func (l *raftLog) append(batch [][]byte) error {
	l.logs = l.logs[:0]
	for _, b := range batch {
		l.logs = append(l.logs, &raft.Log{Index: l.next, Data: b})
		l.next++
	}
	return l.StoreLogs(l.logs)
}

func (l *raftLog) read(visit func([]byte)) error {
	var entry raft.Log
	for i := uint64(1); i < l.next; i++ {
		if err := l.GetLog(i, &entry); err != nil {
			return err
		}
		visit(entry.Data)
	}
	return nil
}

func (l *raftLog) close() error { return l.Close() }

type etcdLog struct {
	*etcd.WAL
	dir  string
	next uint64
}

func openEtcd(dir string, sync bool) (log, error) {
	if _, err := os.Stat(filepath.Join(dir, "etcd")); err == nil {
		return &etcdLog{dir: dir}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	w, err := etcd.Create(zap.NewNop(), filepath.Join(dir, "etcd"), nil)
	if err == nil && !sync {
		w.SetUnsafeNoFsync()
	}
	return &etcdLog{WAL: w, dir: dir, next: 1}, err
}

func (l *etcdLog) append(batch [][]byte) error {
	entries := make([]*raftpb.Entry, len(batch))
	term := uint64(1)
	for i, b := range batch {
		index := l.next
		entries[i] = &raftpb.Entry{Term: &term, Index: &index, Data: b}
		l.next++
	}
	commit := l.next
	return l.Save(&raftpb.HardState{Term: &term, Commit: &commit}, entries)
}

func (l *etcdLog) read(visit func([]byte)) error {
	w, err := etcd.OpenForRead(zap.NewNop(), filepath.Join(l.dir, "etcd"), &walpb.Snapshot{})
	if err != nil {
		return err
	}
	defer w.Close()
	_, _, entries, err := w.ReadAll()
	for _, e := range entries {
		visit(e.Data)
	}
	return err
}

func (l *etcdLog) close() error {
	if l.WAL == nil {
		return nil
	}
	return l.Close()
}

type prometheusLog struct {
	*wlog.WL
	dir  string
	sync bool
}

func openPrometheus(dir string, sync bool) (log, error) {
	if names, _ := filepath.Glob(filepath.Join(dir, "0*")); len(names) > 0 {
		return &prometheusLog{dir: dir}, nil
	}
	w, err := wlog.New(promslog.NewNopLogger(), nil, dir, compression.None)
	return &prometheusLog{WL: w, dir: dir, sync: sync}, err
}

func (l *prometheusLog) append(batch [][]byte) error {
	if err := l.Log(batch...); err != nil || !l.sync {
		return err
	}
	return l.Sync()
}

func (l *prometheusLog) read(visit func([]byte)) error {
	segments, err := wlog.NewSegmentsReader(l.dir)
	if err != nil {
		return err
	}
	defer segments.Close()
	r := wlog.NewReader(segments)
	for r.Next() {
		visit(r.Record())
	}
	return r.Err()
}

func (l *prometheusLog) close() error {
	if l.WL == nil {
		return nil
	}
	return l.Close()
}
