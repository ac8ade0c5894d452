package parallel

import (
	"runtime"
	"slices"
)

// Most is more than any machine has cores: a larger number of goroutines is a mistake.
const Most = 4096

// Cores is how many goroutines compute at once where all take the same time: GOMAXPROCS, but where an arm64 processor
// has cores of two kinds no more than the fast ones, since the others would let those wait.
func Cores() int { return cores(runtime.GOMAXPROCS(0), fastCores()) }

// cores is Cores of a process that may use so many, of which so many are fast: 0 if that is unknown.
func cores(procs, fast int) int {
	if fast > 0 {
		return min(procs, fast)
	}
	return procs
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
