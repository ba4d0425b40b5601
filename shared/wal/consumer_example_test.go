package wal_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"abacus/shared/wal"
)

// A consumer drains a log into a downstream that takes what it can and names what it never will.
func Example_consumer() {
	dir, err := os.MkdirTemp("", "abacus-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, _, err := wal.Open(wal.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	ctx := context.Background()
	entries := []wal.Entry{
		{ID: "order-1", Data: []byte("3 apples")},
		{ID: "order-2", Data: []byte("?")},
		{ID: "order-3", Data: []byte("1 pear")},
	}
	if _, err := l.Append(ctx, entries, wal.Synced); err != nil {
		log.Fatal(err)
	}

	send := func(_ context.Context, records []wal.Record) (wal.Result, error) {
		var result wal.Result
		for _, r := range records {
			if string(r.Data) == "?" {
				result.Rejected = &wal.Rejection{Position: r.Position, Reason: errors.New("no number")}
				break
			}
			fmt.Printf("took %s: %s\n", r.ID, r.Data)
			result.Through = r.Position
		}
		return result, nil
	}
	consumer, err := wal.NewConsumer(wal.ConsumerConfig{
		Source: l,
		Sender: wal.SenderFunc(send),
		Policy: wal.DeadLetterRejected,
		DeadLetter: func(_ context.Context, r wal.Record, reason error) error {
			fmt.Printf("put %s aside: %v\n", r.ID, reason)
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	n, err := consumer.Drain(ctx)
	fmt.Println("disposed of", n, "records, error:", err)
	stats := consumer.Stats()
	fmt.Println("delivered", stats.Delivered, "and dead-lettered", stats.DeadLettered)
	// Output:
	// took order-1: 3 apples
	// put order-2 aside: no number
	// took order-3: 1 pear
	// disposed of 3 records, error: <nil>
	// delivered 2 and dead-lettered 1
}
