package parallel

import (
	"runtime"
	"testing"
)

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
	if n := Cores(); n < 1 || n > runtime.GOMAXPROCS(0) {
		t.Errorf("%d cores of %d", n, runtime.GOMAXPROCS(0))
	}
}
