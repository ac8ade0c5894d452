package expr_test

import (
	"math"
	"testing"

	"onlinerna/nn/op/expr"
)

// The known answers of Random123, kat_vectors: philox4x32 with 10 rounds.
func TestPhilox(t *testing.T) {
	const all = 0xffffffff
	for _, k := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := expr.Philox(k.counter, k.key); got != k.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", k.counter, k.key, got, k.want)
		}
	}
}

func TestUniform(t *testing.T) {
	// The places of the numbers: words of a block, then blocks, then samples, then steps, then keys.
	const key = 0x299f31d0_a4093822
	w := expr.Philox([4]uint32{5, 7, 9, 0}, [2]uint32{0xa4093822, 0x299f31d0})
	for i, v := range w {
		if got, want := expr.Uniform(key, 9, 7, uint32(20+i)), float32(float64(v>>8)/(1<<24)); got != want {
			t.Errorf("element %d is %v, want %v", 20+i, got, want)
		}
	}
	const n = 1 << 16
	sum, squares, neighbours, last := 0., 0., 0., 0.
	for i := range n {
		u := float64(expr.Uniform(1, 2, uint32(i>>12), uint32(i))) - .5
		sum, squares, neighbours = sum+u, squares+u*u, neighbours+u*last
		last = u
	}
	if mean, variance, covariance := sum/n, squares/n, neighbours/n; math.Abs(mean) > 4*math.Sqrt(1./12/n) ||
		math.Abs(variance-1./12) > 4*math.Sqrt(1./180/n) || math.Abs(covariance) > 4./12/math.Sqrt(n) {
		t.Errorf("mean %v, variance %v, covariance of neighbours %v", mean, variance, covariance)
	}
}

// Float32 decides as float64 does.
func TestChance(t *testing.T) {
	u := expr.Random(1, 0, false)
	for _, p := range []float64{.1, .2, .5, .7, .9, 1e-9, 1 - 1e-9, 0x1p-24, 3 * 0x1p-24} {
		nodes := expr.If(expr.Chance(u, p), expr.Arg(1), expr.Arg(2)).Nodes()
		if nodes[0].Kind == expr.KindArg { // certain: no comparison is left
			if p < 1-0x1p-24 {
				t.Errorf("chance %v is certain", p)
			}
			continue
		}
		limit := nodes[1].Value
		if float64(float32(limit)) != limit || limit < p || limit-p >= 0x1p-24 {
			t.Errorf("chance %v compares with %v", p, limit)
		}
	}
	for p, want := range map[float64]int{-1: 2, 0: 2, 1: 1, 2: 1} {
		if i, ok := expr.If(expr.Chance(u, p), expr.Arg(1), expr.Arg(2)).IsArg(); !ok || i != want {
			t.Errorf("chance %v: operand %d, %t", p, i, ok)
		}
	}
}
