package vec

import (
	"math"
	"testing"
)

func TestOrder(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	sorted := []float32{-inf, -3e38, -1, -1e-40, 0, 1e-40, 1, 3e38, inf, nan}
	for i, a := range sorted {
		for j, b := range sorted {
			if (order(a) < order(b)) != (i < j) {
				t.Errorf("order of %v and %v is %d and %d", a, b, order(a), order(b))
			}
		}
	}
	if order(float32(math.Copysign(0, -1))) != order(0) {
		t.Error("zeros differ")
	}
	if order(float32(math.Copysign(math.NaN(), -1))) != order(nan) {
		t.Error("NaN differ")
	}
}
