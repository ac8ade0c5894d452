package parallel

import (
	"runtime"
	"slices"
)

// Most is more than any machine has cores: a larger number of goroutines is a mistake.
const Most = 4096

// Cores is the number of goroutines that compute at once if all take the same time: GOMAXPROCS, but on an arm64
// processor with two kinds of cores at most the number of fast ones, since these would wait for the others.
func Cores() int { return cores(runtime.GOMAXPROCS(0), fastCores()) }

// cores is Cores for a process with the given numbers of usable and of fast cores; 0 fast ones if unknown.
func cores(procs, fast int) int {
	if fast > 0 {
		return min(procs, fast)
	}
	return procs
}

// fast counts the cores with at least half of the best core's capacity.
func fast(capacities []int) (n int) {
	for _, c := range capacities {
		if 2*c >= slices.Max(capacities) {
			n++
		}
	}
	return n
}
