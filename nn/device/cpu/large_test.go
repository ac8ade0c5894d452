package cpu

import (
	"math"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/op"
)

// at is the level of the devices that tests open; use sets it until restore is called.
var at = simd.Default()

func use(l simd.Level) (restore func()) {
	before := at
	at = l
	return func() { at = before }
}

// eachLevel runs f at all levels of the processor, in parts at the best one.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	for _, l := range simd.All() {
		if inParts > 0 && l != simd.Best() {
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			t.Cleanup(use(l))
			f(t)
		})
	}
}

// TestManyBlocks compares work in many blocks with the definitions, in float64: sums over several ranges of pixels,
// weights in several panels, tiles of the result in every direction.
func TestManyBlocks(t *testing.T) {
	conv := func(n, c, h, o, kernel, stride, pad, groups int) func(b *builder) {
		return func(b *builder) {
			v := op.Conv2D{Stride: [2]int{stride, stride}, Pad: [2]int{pad, pad}, Groups: groups}
			x, w := b.data(n, c, h, h), b.weight(o, c/groups, kernel, kernel)
			y := b.apply(v, x, w, b.weight(o))
			dy := b.data(b.Values[y].Type.Shape...)
			b.apply(op.Conv2DGradInput{Conv2D: v, Input: b.Values[x].Type.Shape}, w, dy)
			b.apply(op.Conv2DGradWeight{Conv2D: v, Weight: b.Values[w].Type.Shape}, x, dy)
		}
	}
	for _, c := range []struct {
		name  string
		build func(b *builder)
	}{
		{"sliding bands", conv(5, 3, 60, 17, 3, 1, 1, 1)},
		{"bands without padding", conv(9, 2, 30, 5, 5, 1, 0, 1)},
		{"gathered pixels", conv(4, 5, 61, 7, 3, 2, 1, 1)},
		{"gathered tiles", conv(3, 130, 9, 140, 3, 2, 1, 1)},
		{"1×1", conv(6, 150, 14, 130, 1, 1, 0, 1)},
		{"1×1 to more", conv(6, 130, 14, 150, 1, 1, 0, 1)},
		{"1×1 to many more", conv(9, 20, 13, 203, 1, 1, 0, 1)},
		{"groups", conv(4, 12, 20, 18, 3, 1, 1, 3)},
		{"groups of four channels", conv(2, 24, 17, 24, 3, 1, 1, 6)},
		{"groups of four channels, stride 2", conv(2, 32, 17, 32, 3, 2, 1, 8)},
		{"groups of eight channels", conv(3, 104, 24, 104, 3, 1, 1, 13)},
		{"groups of two channels", conv(2, 32, 17, 32, 3, 1, 1, 16)},
		{"groups of two channels, in many", conv(2, 64, 17, 64, 3, 1, 1, 32)},
		{"groups of two channels to three", conv(2, 16, 13, 24, 3, 2, 1, 8)},
		{"groups of two channels to four", conv(2, 32, 12, 64, 3, 1, 1, 16)},
		{"groups of six channels to twelve", conv(2, 36, 12, 72, 3, 1, 1, 6)},
		{"groups of six channels", conv(2, 48, 17, 48, 3, 1, 1, 8)},
		{"groups of four channels to eight", conv(2, 24, 17, 48, 3, 1, 1, 6)},
		{"groups of four channels, odd", conv(2, 20, 17, 20, 3, 1, 1, 5)},
		{"groups of eight channels to four", conv(2, 64, 17, 32, 3, 1, 1, 8)},
		{"groups of twelve channels to eight", conv(2, 96, 17, 64, 3, 1, 1, 8)},
		{"groups of eight channels, stride 2", conv(3, 64, 33, 64, 3, 2, 1, 8)},
		{"groups of sixteen channels", conv(2, 96, 28, 96, 5, 1, 2, 6)},
		{"groups of twenty-four channels", conv(5, 72, 7, 72, 3, 1, 1, 3)},
		{"groups of one channel", conv(2, 8, 13, 24, 5, 2, 2, 8)},
		{"two groups", conv(3, 8, 24, 12, 3, 1, 1, 2)},
		{"seven groups", conv(2, 14, 9, 21, 3, 1, 1, 7)},
		{"depthwise", conv(4, 10, 40, 10, 3, 1, 1, 10)},
		{"stem", conv(2, 3, 61, 70, 7, 2, 3, 1)},
		{"lines of seven pixels", conv(5, 70, 7, 40, 3, 1, 1, 1)},
		{"folded pixels", conv(3, 3, 24, 5, 5, 1, 2, 1)},
		{"folded pixels, stride 2", conv(2, 2, 33, 4, 5, 2, 2, 1)},
		{"wide groups", conv(3, 140, 12, 84, 3, 2, 1, 2)},
		{"long lines", conv(1, 2, 260, 5, 3, 1, 1, 1)},
		{"linear", func(b *builder) {
			x, w, dy := b.data(700, 150), b.weight(140, 150), b.data(700, 140)
			b.apply(op.Linear{}, x, w, b.weight(140))
			b.apply(op.LinearGradInput{}, w, dy)
			b.apply(op.LinearGradWeight{}, x, dy)
		}},
		{"batch normalisation", func(b *builder) {
			x, dy := b.data(9, 70, 33, 31), b.data(9, 70, 33, 31)
			stats := b.apply(op.BatchNormStats{}, x)
			scale := b.weight(70)
			b.apply(op.BatchNorm{Eps: 1e-5}, x, stats, scale, b.weight(70))
			sums := b.apply(op.BatchNormGradSums{Eps: 1e-5}, x, stats, dy)
			b.apply(op.BatchNormGradInput{Eps: 1e-5}, x, stats, scale, sums, dy)
			b.apply(op.ChannelSum{}, dy)
		}},
		{"channels of other ranks", func(b *builder) {
			b.apply(op.ChannelSum{}, b.data(40, 7, 100))
			b.apply(op.ChannelSum{}, b.data(3, 5, 7, 3, 2))
			b.apply(op.ReLU{}, b.data(3, 5, 7))
			b.apply(op.Reshape{Shape: op.Shape{7, 15}}, b.data(3, 5, 7))
			b.apply(op.Flatten{}, b.data(3, 5, 7))
			b.apply(op.Reshape{Shape: op.Shape{3, 7, 1, 5}}, b.data(3, 5, 7))
			b.apply(op.Reshape{Shape: op.Shape{2, 7, 5, 3}}, b.data(5, 2, 7, 3))
		}},
		{"sums and maxima", func(b *builder) {
			b.apply(op.SumTo{Shape: op.Shape{2, 1, 1, 1}}, b.data(2, 31, 30, 36))
			b.apply(op.SumTo{Shape: op.Shape{1, 1100, 1, 1}}, b.data(1, 1100, 3, 11))
			for by := op.Sum; by <= op.Max; by++ {
				b.apply(op.Reduce{By: by, Axes: []int{0}}, b.data(5, 1100))
				b.apply(op.Reduce{By: by, Axes: []int{0, 2}}, b.data(3, 2, 4, 1100))
			}
		}},
		{"pools", func(b *builder) {
			max := op.MaxPool{Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}
			x := b.data(5, 70, 33, 31)
			y := b.apply(max, x)
			b.apply(op.MaxPoolGrad{MaxPool: max}, x, b.data(b.Values[y].Type.Shape...))
			b.apply(op.GlobalAvgPool{}, x)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T) {
				d := open(t, 2)
				b := &builder{tb: t}
				c.build(b)
				k := bind(t, d, &b.Program, b.weights, b.alone())
				k.run(t)
				exact := make([]op.Tensor, len(b.Values))
				read := func(v int) op.Tensor {
					x := op.New(op.Type{DType: op.Float64, Shape: b.Values[v].Type.Shape})
					if err := d.Download(x, k.regions[v], b.Values[v].Layout); err != nil {
						t.Fatal(err)
					}
					return x
				}
				for _, s := range b.Steps {
					var in []op.Tensor
					for _, v := range s.In {
						if exact[v].Data == nil {
							exact[v] = read(v)
						}
						in = append(in, exact[v])
					}
					exact[s.Out] = op.New(op.Type{DType: op.Float64, Shape: b.Values[s.Out].Type.Shape})
					if err := s.Op.Run(exact[s.Out], in...); err != nil {
						t.Fatal(err)
					}
					got, want := read(s.Out).Data.([]float64), exact[s.Out].Data.([]float64)
					largest, worst := 0., 0.
					for i := range want {
						largest = max(largest, math.Abs(want[i]))
						worst = max(worst, math.Abs(got[i]-want[i]))
					}
					if !(worst <= 1e-5*largest) {
						t.Errorf("%v: error %.3g of %.3g", s.Op, worst, largest)
					}
				}
			})
		})
	}
}

// A NaN anywhere in an activation reaches the loss.
func TestNaNIsNotHidden(t *testing.T) {
	d := open(t, 2)
	b := network(t)
	x := b.Steps[0].Out // the input of the first convolution
	for _, groups := range [][][]int{b.alone(), b.grouped(d)} {
		k := bind(t, d, &b.Program, b.weights, groups)
		k.run(t)
		for _, sign := range []uint32{0, 1 << 31} { // x86 makes NaN with the sign bit
			k.floats(t, x)[1234] = math.Float32frombits(0x7fc00000 | sign)
			for i, g := range groups {
				if out := b.Steps[g[0]].Out; out <= x {
					continue
				}
				if err := k.kernels[i](); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range b.Steps {
				switch s.Op.(type) {
				case op.BatchNormStats, op.SoftmaxCrossEntropy:
					if !hasNaN(k.floats(t, s.Out)) {
						t.Errorf("%v has no NaN", s.Op)
					}
				}
			}
		}
	}
}

func hasNaN(x []float32) bool {
	for _, v := range x {
		if v != v {
			return true
		}
	}
	return false
}
