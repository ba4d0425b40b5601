package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// FS is the disk below a Log: one flat directory. The operating system's is the default; tests pass one that crashes.
type FS interface {
	// Create makes an empty file that must not exist yet, open for reading and writing.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing. Absent: an error that wraps os.ErrNotExist.
	Open(name string) (File, error)
	// List returns the names in the directory, in any order; what is no regular file with a slash behind its name.
	List() ([]string, error)
	// Rename gives a file another name, replacing one that has it.
	Rename(from, to string) error
	// Remove deletes a file. Absent: an error that wraps os.ErrNotExist.
	Remove(name string) error
	// SyncDir makes every creation, renaming and removal so far survive a crash of the host.
	SyncDir() error
	// Lock takes the directory for this process until the returned function is called. Where another owner has it, the
	// error is a *LockedError.
	Lock() (unlock func(), err error)
}

// File is one open file of an FS. Its methods follow the os.File ones of the same name.
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	// Sync makes the file's bytes and length survive a crash of the host.
	Sync() error
	Size() (int64, error)
	Close() error
}

// LockedError reports that the directory belongs to another owner.
type LockedError struct {
	Dir   string
	Owner string // what the owner wrote of itself, such as "pid 17"
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("log %s is in use by %s; a log has one owner: stop that one, or use another directory",
		e.Dir, e.Owner)
}

const lockName = "LOCK"

// Dir returns the FS of an existing or new directory of the operating system.
func Dir(path string) (FS, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the log's directory: %w", err)
	}
	return directory{path}, nil
}

type directory struct{ path string }

type osFile struct{ *os.File }

func (d directory) open(name string, flag int) (File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), flag|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d directory) Create(name string) (File, error) { return d.open(name, os.O_CREATE|os.O_EXCL) }
func (d directory) Open(name string) (File, error)   { return d.open(name, 0) }
func (d directory) Remove(name string) error         { return os.Remove(filepath.Join(d.path, name)) }

func (d directory) Rename(from, to string) error {
	return os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to))
}

func (d directory) List() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if !e.Type().IsRegular() {
			name += "/"
		}
		names = append(names, name)
	}
	return names, err
}

func (d directory) SyncDir() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Lock holds a flock, which the kernel drops when its process ends however it ends.
func (d directory) Lock() (func(), error) {
	f, err := os.OpenFile(filepath.Join(d.path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := io.ReadAll(io.LimitReader(f, 128))
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			who := strings.TrimSpace(string(owner))
			if who == "" {
				who = "a process that has just begun"
			}
			return nil, &LockedError{Dir: d.path, Owner: who}
		}
		return nil, err
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "pid %d\n", os.Getpid())
	}
	return func() {
		_ = f.Truncate(0)
		f.Close()
	}, nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
