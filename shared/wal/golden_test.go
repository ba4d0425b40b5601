package wal_test

import "hash/crc32"

func sum(b []byte) uint32 { return crc32.ChecksumIEEE(b) }
