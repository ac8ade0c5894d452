package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Workers is the number of goroutines for a wish: itself, or GOMAXPROCS when it is 0 or less.
func Workers(wish int) int {
	if wish <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return wish
}

// For calls piece(worker, i) once for each i in [0, n), on up to workers
// goroutines, the caller among them. Calls with one worker number, in [0, workers), do not overlap. Which worker
// gets which i is not fixed: a result must depend on i alone.
func For(n, workers int, piece func(worker, i int)) {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			piece(0, i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	work := func(worker int) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			piece(worker, i)
		}
	}
	for worker := 1; worker < workers; worker++ {
		wg.Go(func() { work(worker) })
	}
	work(0)
	wg.Wait()
}
