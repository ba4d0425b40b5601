package wal

import "golang.org/x/sys/unix"

// Sync is fdatasync: the bytes and the length, not the times.
func (f osFile) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
