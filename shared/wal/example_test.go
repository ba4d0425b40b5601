package wal_test

import (
	"context"
	"fmt"
	"os"

	"abacus/shared/wal"
)

// A log is opened, written, read and truncated. What was not truncated is there when it is opened again.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "abacus-wal-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	log, _, err := wal.Open(wal.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	flights := []wal.Entry{{ID: "f1", Data: []byte("SEA-ANC")}, {ID: "f2", Data: []byte("ANC-SEA")}}
	got, err := log.Append(ctx, flights, wal.Synced) // both or none, and safe from here on
	if err != nil {
		panic(err)
	}
	fmt.Println("appended", got.First, "to", got.Last)
	if err := log.Truncate(ctx, got.First, wal.Synced); err != nil {
		panic(err)
	}
	if err := log.Close(); err != nil {
		panic(err)
	}

	log, found, err := wal.Open(wal.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer log.Close()
	fmt.Println("closed in order:", found.Clean)
	for record, err := range log.Scan(1, log.State().Written) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d %s %s\n", record.Position, record.ID, record.Data)
	}
	// Output:
	// appended 1 to 2
	// closed in order: true
	// 2 f2 ANC-SEA
}
