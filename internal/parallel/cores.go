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

// cores is Cores for a process with the given numbers of usable and of fast cores; 0 fast ones if unknown.
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
