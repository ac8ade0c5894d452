package cpu

import (
	"fmt"
	"slices"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/op"
)

// narrowWays opens devices that multiply bfloat16 in all ways: at the levels, by the definition and with the
// AVX512_BF16 instructions.
func narrowWays(t *testing.T, f func(name string, d *Device)) {
	way := func(name string, l simd.Level, step int) {
		defer use(l)()
		d, err := New(Options{Threads: 2, Level: at.String(), BFloat16: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		switch {
		case step > 0:
			ByDefinition(d, step)
		case step == -1:
			ByTiles(d)
		case step == -2:
			ByVectorTiles(d)
		}
		f(name, d)
	}
	for _, l := range simd.All() {
		way(l.String(), l, 0)
	}
	way("definition", simd.Best(), 2)
	way("step by step", simd.Best(), 1) // gives the bits of pairs of steps
	if simd.HasBFloat16() {
		way("avx512bf16", simd.AVX512BF16, 0)
	}
	way("tiles by definition", simd.Best(), -1)
	if simd.Best() == simd.AVX512 {
		way("tiles by vectors", simd.Best(), -2)
	}
	if simd.LacksAMX() == nil {
		way("amx", simd.AMX, 0)
	}
}

// products is a program of a convolution or a linear layer and its gradients, with the values that they compute.
// Activations are inputs, or results of another step, which stores them as bfloat16.
func products(tb testing.TB, o op.Conv2D, x, w op.Shape, stored bool) (b *builder, made []int) {
	b = &builder{tb: tb}
	data := b.data
	if stored {
		data = func(shape ...int) int { return b.apply(op.Add{}, b.data(shape...), b.data(shape...)) }
	}
	in, weights := data(x...), b.weight(w...)
	y, ops := 0, []op.Op{op.Conv2DGradInput{Conv2D: o, Input: x}, op.Conv2DGradWeight{Conv2D: o, Weight: w}}
	if len(x) == 2 {
		y, ops = b.apply(op.Linear{}, in, weights, b.weight(w[0])), []op.Op{op.LinearGradInput{}, op.LinearGradWeight{}}
	} else {
		y = b.apply(o, in, weights, b.weight(w[0]))
	}
	dy := data(b.Values[y].Type.Shape...)
	return b, []int{y, b.apply(ops[0], weights, dy), b.apply(ops[1], in, dy)}
}

// Products of bfloat16 are those of rounded factors, as exact as float32: at all levels, with equal bits where Options
// promises them.
func TestNarrowProducts(t *testing.T) {
	two := func(n int) [2]int { return [2]int{n, n} }
	for _, c := range []struct {
		o    op.Conv2D
		x, w op.Shape
	}{
		{op.Conv2D{}, op.Shape{3, 64, 7, 7}, op.Shape{80, 64, 1, 1}},
		{op.Conv2D{Pad: two(1)}, op.Shape{2, 48, 9, 7}, op.Shape{33, 48, 3, 3}}, // an odd number of pixels in a line
		{op.Conv2D{Pad: two(3), Stride: two(2)}, op.Shape{2, 3, 21, 20}, op.Shape{20, 3, 7, 7}},
		{op.Conv2D{Pad: two(1)}, op.Shape{2, 5, 6, 8}, op.Shape{4, 5, 3, 3}}, // pixels are folded
		{op.Conv2D{Pad: two(2), Dilation: two(2)}, op.Shape{1, 131, 6, 5}, op.Shape{40, 131, 3, 3}},
		{op.Conv2D{Pad: two(1), Stride: two(2)}, op.Shape{2, 80, 9, 8}, op.Shape{70, 80, 3, 3}},
		{op.Conv2D{Pad: two(1), Stride: two(2), Groups: 3}, op.Shape{2, 27, 8, 9}, op.Shape{30, 9, 3, 3}},
		{op.Conv2D{Pad: two(1), Groups: 12}, op.Shape{2, 12, 8, 7}, op.Shape{12, 1, 3, 3}},
		{op.Conv2D{Pad: two(2), Stride: two(2), Groups: 40}, op.Shape{3, 40, 14, 15}, op.Shape{40, 1, 5, 5}},
		{op.Conv2D{Pad: two(3), Groups: 24}, op.Shape{2, 24, 40, 9}, op.Shape{24, 1, 7, 7}},
		{op.Conv2D{Pad: two(1), Dilation: two(2), Stride: [2]int{3, 1}, Groups: 17}, op.Shape{5, 17, 25, 9}, op.Shape{17, 1, 2, 3}},
		{op.Conv2D{}, op.Shape{1, 1025, 3, 3}, op.Shape{17, 1025, 1, 1}},
		{op.Conv2D{Pad: two(1)}, op.Shape{2, 530, 3, 5}, op.Shape{36, 530, 3, 3}},            // chunks of channels
		{op.Conv2D{}, op.Shape{1, 30, 1, 1}, op.Shape{16, 30, 1, 1}},                         // one pixel
		{op.Conv2D{Pad: two(1), Groups: 2}, op.Shape{3, 48, 14, 17}, op.Shape{40, 24, 3, 3}}, // chunks of images
		{op.Conv2D{Stride: two(2)}, op.Shape{3, 40, 31, 30}, op.Shape{72, 40, 1, 1}},
		{op.Conv2D{}, op.Shape{1, 24, 111, 100}, op.Shape{20, 24, 1, 1}},                          // splits of several chunks
		{op.Conv2D{Pad: two(1), Stride: two(2)}, op.Shape{1, 16, 61, 60}, op.Shape{24, 16, 2, 3}}, // chunks of lines
		{op.Conv2D{Pad: two(2), Dilation: [2]int{3, 1}}, op.Shape{2, 20, 27, 25}, op.Shape{33, 20, 3, 3}},
		{op.Conv2D{}, op.Shape{9, 77}, op.Shape{45, 77}},
		{op.Conv2D{}, op.Shape{32, 600}, op.Shape{10, 600}},
	} {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, %v, stored: %v", c.x, c.w, stored), func(t *testing.T) {
				b, made := products(t, c.o, c.x, c.w, stored)
				results := map[string][][]float32{}
				narrowWays(t, func(name string, d *Device) {
					k := bind(t, d, &b.Program, b.weights, b.alone())
					k.run(t)
					for kind, e := range b.errorsOf(d, k, kern.Round) {
						if !(e <= 2e-6) {
							t.Errorf("%s: %s: error %.3g of the largest element", name, kind, e)
						}
					}
					for _, v := range made {
						results[name] = append(results[name], k.numbers(t, d, b.Values[v], v))
					}
				})
				for _, name := range []string{"neon", "avx2", "avx512", "avx512bf16", "step by step", "tiles by vectors", "amx"} {
					got, want := results[name], results["definition"]
					if name == "amx" || name == "tiles by vectors" {
						want = results["tiles by definition"]
					}
					if got == nil {
						continue
					}
					for i := range made {
						if (name == "neon" || name == "avx2") && i == 2 {
							continue // its sums are cut in other places
						}
						if !slices.Equal(got[i], want[i]) {
							t.Errorf("%s: result %d has other bits than the definition", name, i)
						}
					}
				}
			})
		}
	}
}
