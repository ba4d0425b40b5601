package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"abacus/shared/dynamo"
	"abacus/shared/local/table"
	"abacus/shared/merge"
	"abacus/shared/tally"
)

// holdFor is how long a transaction keeps its items, so that those that overlap conflict as they do at AWS.
const holdFor = 5 * time.Millisecond

// measureHot lets 16 workers move one counter, each batch a transaction, for every width of the counter.
func measureHot(ctx context.Context, o Options) ([]figure, error) {
	var figures []figure
	base := 0.0
	for _, width := range []int{1, 2, 4, 8, 16} {
		rate, err := median(o.Rounds, func() (float64, error) { return commitsPerSecond(ctx, width) })
		if err != nil {
			return nil, err
		}
		if width == 1 {
			base = rate
		}
		figures = append(figures, figure{
			name:      fmt.Sprintf("commits/s on one counter, 16 workers, %d slots", width),
			reference: format(base), ours: fmt.Sprintf("%s (%s times)", format(rate), format(rate/base)), met: shown,
		})
	}
	return figures, nil
}

func commitsPerSecond(ctx context.Context, width int) (float64, error) {
	const workers, batches = 16, 4
	hold := func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(holdFor):
		}
	}
	server := httptest.NewServer(http.Handler(table.New(table.Config{Hold: hold})))
	defer server.Close()
	client := clientOf(server.URL)
	if err := makeTables(ctx, client); err != nil {
		return 0, err
	}
	store, err := dynamo.NewStore(dynamo.Options{Client: client, Counters: countersTable, Dedup: dedupTable})
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	errs := make(chan error, workers*batches)
	began := time.Now()
	for w := range workers {
		merger, err := merge.New(merge.Config{Store: store, Slots: width}) // a sandbox of its own
		if err != nil {
			return 0, err
		}
		wg.Go(func() {
			for b := range batches {
				event := tally.Event{
					ID:   fmt.Sprint(w, "-", b),
					Adds: []tally.Add{{Cell: tally.Cell{Counter: "hot", Key: "all", Window: "all"}, Delta: 1}},
				}
				// An event that conflicts too often is delivered again, as its source would.
				for outcome := merger.MergeOne(ctx, event); !outcome.Done(); outcome = merger.MergeOne(ctx, event) {
					if ctx.Err() != nil {
						errs <- ctx.Err()
						return
					}
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return workers * batches / time.Since(began).Seconds(), nil
	}
}
