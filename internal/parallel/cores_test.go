package parallel

import "testing"

func TestFast(t *testing.T) {
	for _, c := range []struct {
		capacities []int
		want       int
	}{
		{nil, 0},
		{[]int{1024, 1024}, 2},
		{[]int{1024, 870, 870, 870, 318, 318, 318, 318}, 4}, // prime, medium and small cores
		{[]int{446, 446, 1024, 1024}, 2},
	} {
		if got := fast(c.capacities); got != c.want {
			t.Errorf("%v: %d fast cores, want %d", c.capacities, got, c.want)
		}
	}
}

func TestCores(t *testing.T) {
	for _, c := range []struct{ procs, fast, want int }{{8, 4, 4}, {2, 4, 2}, {8, 0, 8}} {
		if got := cores(c.procs, c.fast); got != c.want {
			t.Errorf("%d processors, %d fast: %d cores, want %d", c.procs, c.fast, got, c.want)
		}
	}
}
