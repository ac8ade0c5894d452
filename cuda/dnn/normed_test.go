//go:build gpu && cgo

package dnn

import (
	"errors"
	"math"
	"slices"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// A convolution of relu(a x + b), and its weights' gradient: statistics are stored, not added to the old content.
func TestNormed(t *testing.T) {
	needDNN(t)
	c := open(t)
	d := newDNN(t, c)
	s := Shape{N: 1, C: 8, H: 2, W: 1, O: 8, KH: 1, KW: 1, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	xd, wd, yd := s.Dims()
	normed := func(e Element, name string) (*Graph, Tensor) {
		g := &Graph{Name: name}
		x, a, b := g.Tensor(e, xd), g.Tensor(e, Channels(8)), g.Tensor(e, Channels(8))
		scaled, sum, read := g.Between(Float32, xd), g.Between(Float32, xd), g.Between(Float32, xd)
		g.Multiply(x, a, scaled)
		g.Add(scaled, b, sum)
		g.ReLU(sum, read)
		return g, read
	}
	forward := func(e Element) *Graph {
		g, read := normed(e, "normed")
		w, y := g.Tensor(e, wd), g.Tensor(e, yd)
		g.Convolve(Forward, s, read, w, y)
		g.Stats(y, g.Tensor(Float32, Channels(8)), g.Tensor(Float32, Channels(8)))
		return g
	}
	gradient, read := normed(Float16, "normed gradient")
	dy, dw := gradient.Tensor(Float16, yd), gradient.Tensor(Float16, wd)
	gradient.Convolve(GradWeight, s, read, dw, dy)

	if p, err := d.NewPlans(forward(BFloat16), Options{Precision: number.BFloat16, Workspace: 1 << 20}); sim.Active() &&
		!errors.Is(err, ErrNoPlan) {
		t.Errorf("bfloat16: %v, want that there is no plan", err)
	} else if err == nil {
		check(t, p.Close())
	}
	if _, err := d.NewPlans(forward(Float16), Options{Precision: number.Float16, Deterministic: true}); !errors.Is(err,
		ErrNoPlan) {
		t.Errorf("statistics with equal bits in each run: %v", err)
	}
	half := func(x ...float32) driver.Span { return floats16(t, c, number.Float16, x).All() }
	var identity, pixels []float32
	for i := range 64 {
		identity = append(identity, 0)
		if i%9 == 0 {
			identity[i] = 1
		}
	}
	for i := range 16 {
		pixels = append(pixels, float32(i))
	}
	x, a, b := half(pixels...), half(slices.Repeat([]float32{.5}, 8)...), half(slices.Repeat([]float32{-2}, 8)...)
	run := func(g *Graph, at ...driver.Span) {
		t.Helper()
		p, err := d.NewPlans(g, Options{Precision: number.Float16, Workspace: 1 << 20})
		if errors.Is(err, ErrNoPlan) && !sim.Active() {
			t.Skip(err)
		}
		check(t, err)
		work := alloc(t, c, max(p.Workspace(), 1)).All()
		check(t, p.Run(at, work))
		check(t, p.Run(at, work))
		check(t, p.Close())
	}
	y, sums, squares := alloc(t, c, 32).All(), gputest.Upload(t, c, slices.Repeat([]float32{7}, 8)).All(),
		gputest.Upload(t, c, slices.Repeat([]float32{7}, 8)).All()
	run(forward(Float16), x, a, b, half(identity...), y, sums, squares)
	made := alloc(t, c, 128).All()
	run(gradient, x, a, b, half(slices.Repeat([]float32{1}, 16)...), made)
	gotSums, gotSquares := gputest.Download[float32](t, sums), gputest.Download[float32](t, squares)
	weights := number.Widen(number.Float16, gputest.Download[uint16](t, made))
	for i := range 8 {
		one, two := max(float32(i)/2-2, 0), float32(i+8)/2-2
		if math.Abs(float64(gotSums[i]-(one+two))) > 1e-4 || math.Abs(float64(gotSquares[i]-(one*one+two*two))) > 1e-3 {
			t.Errorf("channel %d: %v and %v, want %v and %v", i, gotSums[i], gotSquares[i], one+two, one*one+two*two)
		}
		for o := range 8 {
			if got := weights[8*o+i]; got != one+two {
				t.Errorf("gradient of weight %d,%d: %v, want %v", o, i, got, one+two)
			}
		}
	}
}
