package mapping

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
	"onlinerna/nn/optim"
)

// allBodies returns the bodies of all optimisers, with and without clipping of elements, and one that exchanges
// vectors.
func allBodies() map[string]update.Body {
	list := map[string]update.Body{"exchange": {W: update.State(0), State: update.States{update.W, expr.Const(2)}}}
	for _, d := range optim.All() {
		for _, nesterov := range []bool{false, true} {
			for i, p := range d.Make(optim.Hyper{Of: d.Takes, Decay: .1, Nesterov: nesterov}).Passes() {
				name := fmt.Sprint(d.Name, " ", i, nesterov)
				list[name], list[name+" clipped"] = p.Body, p.ClipTo(.5).Body
			}
		}
	}
	return list
}

func numbersOf(r *rand.Rand, n int) update.Piece[float32] {
	x := func() []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	p := update.Piece[float32]{W: x(), G: x(), State: [2][]float32{x(), x()}}
	for i, v := range p.State[1] { // averages of squares are not negative
		p.State[1][i] = max(v, -v)
	}
	return p
}

var someCoefficients = update.Values{.9, .1, .99, .3, 1e-3, .7, .2, .05, .5}

// All levels give the bits of the definitions.
func TestElements(t *testing.T) {
	for name, b := range allBodies() {
		for _, l := range simd.All() {
			e := NewElements(&b)
			scratch := make([]float32, e.Scratch())
			for _, n := range []int{1, 7, 64, Block, 2*Block + 13} {
				got, want := numbersOf(rand.New(rand.NewPCG(1, uint64(n))), n), numbersOf(rand.New(rand.NewPCG(1, uint64(n))), n)
				var c [update.MaxCoefficients + 1]float32
				for i, x := range someCoefficients {
					c[i] = float32(x)
				}
				var sums, wanted update.Sums
				e.Run(vec.For(l), scratch, &got, &c, &sums)
				update.Define[float32](b).Run(want, someCoefficients, &wanted)
				for i, x := range [][]float32{got.W, got.G, got.State[0], got.State[1]} {
					y := [][]float32{want.W, want.G, want.State[0], want.State[1]}[i]
					for j := range x {
						if math.Float32bits(x[j]) != math.Float32bits(y[j]) && (x[j] == x[j] || y[j] == y[j]) {
							t.Fatalf("%s, %v, %d elements: element %d of vector %d is %v, not %v", name, l, n, j, i, x[j], y[j])
						}
					}
				}
				if sums != wanted {
					t.Errorf("%s, %v, %d elements: sums %v, not %v", name, l, n, sums, wanted)
				}
			}
		}
	}
}

// BenchmarkUpdates reports, for bodies with a kernel of their own, the time of separate operations divided by the time
// of that kernel: both in one process, in turns, the median of many runs.
func BenchmarkUpdates(b *testing.B) {
	for name, body := range allBodies() {
		own := vec.Update(simd.Default(), body)
		if own == nil {
			continue
		}
		b.Run(name, func(b *testing.B) {
			const n = 32 << 10
			p := numbersOf(rand.New(rand.NewPCG(1, 2)), n)
			var c [update.MaxCoefficients + 1]float32
			for i, x := range someCoefficients {
				c[i] = float32(x)
			}
			c[0], c[5], c[7] = 0, 0, 0 // weights stay
			e, k := NewElements(&body), vec.For(simd.Default())
			scratch := make([]float32, e.Scratch())
			var sums update.Sums
			least := [2]time.Duration{math.MaxInt64, math.MaxInt64}
			for range b.N {
				for i, f := range []func(){
					func() { e.Run(k, scratch, &p, &c, &sums) },
					func() { own(&p, (*[8]float32)(c[:]), &sums) },
				} {
					start := time.Now()
					f()
					least[i] = min(least[i], time.Since(start))
				}
			}
			b.ReportMetric(float64(least[0])/float64(least[1]), "ratio")
		})
	}
}
