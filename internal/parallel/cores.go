package parallel

import (
	"runtime"
	"slices"
)

// Cores is how many goroutines compute at once where all take the same time: GOMAXPROCS, but where an arm64 processor has
// cores of two kinds no more than the fast ones, since the others would let those wait.
func Cores() int {
	n := runtime.GOMAXPROCS(0)
	if fast := fastCores(); fast > 0 {
		n = min(n, fast)
	}
	return n
}

// fast is how many of some cores have at least half of the capacity of the best.
func fast(capacities []int) (n int) {
	for _, c := range capacities {
		if 2*c >= slices.Max(capacities) {
			n++
		}
	}
	return n
}
