package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// The tests of other convolutions hold for Winograd's algorithm too.
func TestWinogradAsOthers(t *testing.T) {
	everywhere = true
	defer func() { everywhere = false }()
	t.Run("groups", TestGroupsEqualSingleSteps)
	t.Run("gradients in groups", TestGradInputGroups)
	t.Run("evaluation in groups", TestEvaluationGroups)
	t.Run("workers", TestWorkersGiveEqualBits)
	t.Run("expressions", TestExpressionGroups)
	t.Run("steady state", TestSteadyStateAllocatesNothing)
	t.Run("NaN", TestNaNIsNotHidden)
}

// TestWinogradIsExact compares convolutions of many shapes and their gradients with the definitions, in float64; in
// short mode it has four shapes.
func TestWinogradIsExact(t *testing.T) {
	type shape struct{ n, c, h, w, o, pad int }
	shapes := []shape{
		{1, 1, 3, 3, 1, 0}, {1, 1, 1, 1, 1, 1}, {2, 3, 4, 5, 2, 2}, {1, 2, 2, 9, 3, 5}, // pads wider than the kernel's reach
		{3, 16, 33, 31, 16, 1}, {40, 33, 4, 4, 17, 1}, // many blocks of lines, and of images
		{3, 130, 9, 10, 200, 1}, {70, 20, 3, 3, 20, 1}, // columns divided, tiles beyond the image
	}
	r := rand.New(rand.NewPCG(8, 8))
	for range 12 {
		shapes = append(shapes, shape{1 + r.IntN(4), 1 + r.IntN(40), 2 + r.IntN(17), 2 + r.IntN(17), 1 + r.IntN(70),
			r.IntN(3)})
	}
	if testing.Short() {
		shapes = shapes[2:6]
	}
	eachLevel(t, func(t *testing.T) {
		if at.Vectors() == simd.Go {
			return // plain Go has no Winograd
		}
		for _, s := range shapes {
			o := op.Conv2D{Pad: [2]int{s.pad, s.pad}}
			if s.h+2*s.pad < 3 || s.w+2*s.pad < 3 {
				continue
			}
			d := open(t, 2)
			AlwaysWinograd(d)
			b := &builder{tb: t}
			x, w := b.data(s.n, s.c, s.h, s.w), b.weight(s.o, s.c, 3, 3)
			y := b.apply(o, x, w, b.weight(s.o))
			dy := b.data(b.Values[y].Type.Shape...)
			b.apply(op.Conv2DGradInput{Conv2D: o, Input: b.Values[x].Type.Shape}, w, dy)
			b.apply(op.Conv2DGradWeight{Conv2D: o, Weight: b.Values[w].Type.Shape}, x, dy)
			k := bind(t, d, &b.Program, b.weights, b.alone())
			k.run(t)
			for kind, e := range b.errors(d, k) {
				if !(e <= 1e-5) {
					t.Errorf("%+v: %s: error %.3g of the largest element", s, kind, e)
				}
			}
			k.free()
		}
	})
}

// TestWinogradErrors checks the errors of convolutions as deep as those of ResNets, on the ReLU of normal numbers,
// against the limits in Options; in short mode it has one convolution.
func TestWinogradErrors(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if at.Vectors() == simd.Go {
			return // plain Go has no Winograd
		}
		shapes := []struct{ n, c, h, o int }{
			{8, 16, 8, 256}, {2, 64, 28, 16}, {2, 256, 14, 16}, {4, 512, 7, 16},
			{64, 16, 32, 16}, // 4,096 tiles in the sums of gradients of weights
		}
		if testing.Short() {
			shapes = shapes[:1]
		}
		for _, s := range shapes {
			d := open(t, 2)
			AlwaysWinograd(d)
			b := &builder{tb: t}
			o := op.Conv2D{Pad: [2]int{1, 1}}
			x, w := b.data(s.n, s.c, s.h, s.h), b.weight(s.o, s.c, 3, 3)
			y := b.apply(o, x, w, b.weight(s.o))
			dy := b.data(b.Values[y].Type.Shape...)
			b.apply(op.Conv2DGradInput{Conv2D: o, Input: b.Values[x].Type.Shape}, w, dy)
			b.apply(op.Conv2DGradWeight{Conv2D: o, Weight: b.Values[w].Type.Shape}, x, dy)
			k := bind(t, d, &b.Program, b.weights, b.alone())
			r := rand.New(rand.NewPCG(1, 2))
			for _, v := range []int{x, w, dy} {
				z := op.New(op.Type{DType: op.Float32, Shape: b.Values[v].Type.Shape})
				list := z.Data.([]float32)
				for i := range list {
					if list[i] = float32(r.NormFloat64()); v == x {
						list[i] = max(0, list[i])
					}
				}
				if err := d.Upload(k.regions[v], b.Values[v].Layout, z); err != nil {
					t.Fatal(err)
				}
			}
			k.run(t)
			for kind, e := range b.errors(d, k) {
				if !(e <= 1.5e-6) {
					t.Errorf("%+v: %s: error %.3g of the largest element", s, kind, e)
				}
			}
			k.free()
		}
	})
}

// errors compares the results of a program with the definitions of its ops, in float64. For each kind of op it returns
// the largest error, relative to the largest element.
func (b *builder) errors(d *Device, k *bound) map[string]float64 { return b.errorsOf(d, k, nil) }

// errorsOf is errors with the first two operands of products rounded by round, unless it is nil. A result stored as
// bfloat16 has no error if it is the rounding of a number within 2e-6 of the largest element from the exact one.
func (b *builder) errorsOf(d *Device, k *bound, round func(float32) float32) map[string]float64 {
	b.tb.Helper()
	read := func(v int) op.Tensor {
		x := op.New(op.Type{DType: op.Float64, Shape: b.Values[v].Type.Shape})
		if err := d.Download(x, k.regions[v], b.Values[v].Layout); err != nil {
			b.tb.Fatal(err)
		}
		return x
	}
	list := map[string]float64{}
	for _, s := range b.Steps {
		var in []op.Tensor
		for _, v := range s.In {
			in = append(in, read(v))
		}
		_, sum := s.Op.(op.Add)
		for _, x := range in[:2] {
			if list := x.Data.([]float64); round != nil && !sum {
				for i, v := range list {
					list[i] = float64(round(float32(v)))
				}
			}
		}
		exact := op.New(op.Type{DType: op.Float64, Shape: b.Values[s.Out].Type.Shape})
		if err := s.Op.Run(exact, in...); err != nil {
			b.tb.Fatal(err)
		}
		got, want := read(s.Out).Data.([]float64), exact.Data.([]float64)
		largest, worst := 0., 0.
		for i := range want {
			largest = max(largest, math.Abs(want[i]))
		}
		for i := range want {
			if b.Values[s.Out].Layout == work.Stored {
				near := 2e-6 * largest
				if low, high := round(float32(want[i]-near)), round(float32(want[i]+near)); float64(low) <= got[i] &&
					got[i] <= float64(high) {
					continue
				}
			}
			worst = max(worst, math.Abs(got[i]-want[i]))
		}
		list[s.Op.Kind()] = worst / largest
	}
	return list
}
