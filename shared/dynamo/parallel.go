package dynamo

import "sync"

// parallel calls f(0) to f(n-1), at most limit of them at once, and returns when all are done.
func parallel(limit, n int, f func(i int)) {
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(limit, n) {
		workers.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}
