package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"abacus/shared/dynamo"
	"abacus/shared/local"
	"abacus/shared/tally"

	"golang.org/x/sync/errgroup"
)

// readers is how many series are read at one time.
const readers = 8

// readBack returns the count of every cell of the truth, as the suite's own reader gives it.
func readBack(ctx context.Context, s *local.Suite, truth counts) (map[tally.Cell]tally.Sum, error) {
	options := dynamo.Options{Client: dynamo.NewClient(s.Config()), Counters: s.Name("CountersTable")}
	reader, err := dynamo.NewReader(options)
	if err != nil {
		return nil, err
	}
	reader.Consistent = true
	type series struct{ counter, key, window string }
	wanted := map[series]bool{}
	for cell := range truth {
		wanted[series{cell.Counter, cell.Key, cell.Window}] = true
	}
	var mu sync.Mutex
	counted := make(map[tally.Cell]tally.Sum, len(truth))
	queries, within := errgroup.WithContext(ctx)
	queries.SetLimit(readers)
	for one := range wanted {
		queries.Go(func() error {
			found, err := reader.Window(within, one.counter, one.key, one.window)
			mu.Lock()
			defer mu.Unlock()
			for _, count := range found {
				counted[count.Cell] = count.N
			}
			return err
		})
	}
	return counted, queries.Wait()
}

// scan returns the count of every cell that is in the table at all, read row by row without the suite's reader: what
// nobody would ask for shows only so.
func scan(ctx context.Context, s *local.Suite) (map[tally.Cell]tally.Sum, error) {
	type value struct{ S, N string }
	counted := map[tally.Cell]tally.Sum{}
	in := map[string]any{"TableName": s.Name("CountersTable"), "ConsistentRead": true}
	for {
		var page struct {
			Items            []struct{ PK, SK, N value }
			LastEvaluatedKey map[string]any
		}
		if err := s.Call(ctx, "DynamoDB_20120810.Scan", in, &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			cell, err := parseKeys(item.PK.S, item.SK.S)
			if err != nil {
				return nil, err
			}
			n, err := tally.ParseSum(item.N.N)
			if err != nil {
				return nil, fmt.Errorf("row %q %q: %w", item.PK.S, item.SK.S, err)
			}
			counted[cell] = counted[cell].Plus(n)
		}
		if len(page.LastEvaluatedKey) == 0 {
			return counted, nil
		}
		in["ExclusiveStartKey"] = page.LastEvaluatedKey
	}
}

// parseKeys reads <counter>|<key> and <window>|<bucket>|<slot>.
func parseKeys(pk, sk string) (tally.Cell, error) {
	counter, key, ok := strings.Cut(pk, "|")
	parts := strings.Split(sk, "|")
	if !ok || len(parts) != 3 {
		return tally.Cell{}, fmt.Errorf("row %q %q is no counter's", pk, sk)
	}
	cell := tally.Cell{Counter: counter, Key: key, Window: parts[0]}
	if parts[1] != "-" {
		start, err := time.Parse(time.RFC3339, parts[1])
		if err != nil {
			return cell, fmt.Errorf("row %q %q is no counter's: %w", pk, sk, err)
		}
		cell.Bucket = start.Unix()
	}
	return cell, nil
}
