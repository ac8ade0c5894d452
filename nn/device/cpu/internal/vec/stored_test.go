package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/internal/guard"
	"onlinerna/internal/simd"
)

// half rounds x, whose numbers are not small, to bfloat16.
func half(x float32) uint16 {
	u := math.Float32bits(x)
	if u&0x7f800000 == 0 {
		return uint16(u >> 16 & 0x8000)
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// storedSlices are n numbers as bfloat16 at the end of memory, and as float32.
func storedSlices(t *testing.T, r *rand.Rand, n int) ([]uint16, []float32) {
	x, wide := guard.Slice[uint16](t, n), make([]float32, n)
	for i := range x {
		x[i] = half(float32(r.NormFloat64()))
		wide[i] = math.Float32frombits(uint32(x[i]) << 16)
	}
	return x, wide
}

// Kernels of stored slices have the bits of plain kernels between conversions, and touch nothing outside their slices.
func TestStored(t *testing.T) {
	k := StoredFor(simd.AVX512BF16)
	if !simd.HasBFloat16() {
		t.Skip("this processor has no AVX512_BF16")
	}
	r := rand.New(rand.NewPCG(1, 2))
	rounded := func(x []float32) []uint16 {
		y := make([]uint16, len(x))
		for i, v := range x {
			y[i] = half(v)
		}
		return y
	}
	for n := 1; n < 150; n++ {
		a, wideA := storedSlices(t, r, n)
		b, wideB := storedSlices(t, r, n)
		width := 1 + r.IntN(n)
		rows := make([][]float32, 4)
		for i := range rows {
			rows[i] = guard.Slice[float32](t, width)
			for j := range rows[i] {
				rows[i][j] = float32(r.NormFloat64())
			}
		}
		for name, kernel := range map[string]struct {
			stored func(dst []uint16)
			plain  func(dst []float32)
		}{
			"ReLU":     {func(d []uint16) { k.ReLU(d, a) }, func(d []float32) { relu(d, wideA) }},
			"ReLUGrad": {func(d []uint16) { k.ReLUGrad(d, a, b) }, func(d []float32) { reluGrad(d, wideA, wideB) }},
			"Add":      {func(d []uint16) { k.Add(d, a, b) }, func(d []float32) { add(d, wideA, wideB) }},
			"Normalize": {func(d []uint16) { k.Normalize(d, a, rows[0], rows[1], rows[2]) },
				func(d []float32) { normalize(d, wideA, rows[0], rows[1], rows[2]) }},
			"NormalizeReLU": {func(d []uint16) { k.NormalizeReLU(d, a, rows[0], rows[1], rows[2]) },
				func(d []float32) { normalizeReLU(d, wideA, rows[0], rows[1], rows[2]) }},
			"NormalizeAdd": {func(d []uint16) { k.NormalizeAdd(d, a, b, rows[0], rows[1], rows[2]) },
				func(d []float32) { normalizeAdd(d, wideA, wideB, rows[0], rows[1], rows[2]) }},
			"NormalizeAddReLU": {func(d []uint16) { k.NormalizeAddReLU(d, a, b, rows[0], rows[1], rows[2]) },
				func(d []float32) { normalizeAddReLU(d, wideA, wideB, rows[0], rows[1], rows[2]) }},
			"NormalizeSiLU": {func(d []uint16) { k.NormalizeAct[SiLU](d, a, rows[0], rows[1], rows[2]) },
				func(d []float32) { plain.NormalizeAct[SiLU](d, wideA, rows[0], rows[1], rows[2]) }},
			"NormalizeSiLUGrad": {func(d []uint16) { k.NormalizeActGrad[SiLU](d, a, b, rows[0], rows[1], rows[2]) },
				func(d []float32) { plain.NormalizeActGrad[SiLU](d, wideA, wideB, rows[0], rows[1], rows[2]) }},
			"NormalizeHardswish": {func(d []uint16) { k.NormalizeAct[Hardswish](d, a, rows[0], rows[1], rows[2]) },
				func(d []float32) { plain.NormalizeAct[Hardswish](d, wideA, rows[0], rows[1], rows[2]) }},
			"NormalizeHardswishGrad": {func(d []uint16) { k.NormalizeActGrad[Hardswish](d, a, b, rows[0], rows[1], rows[2]) },
				func(d []float32) { plain.NormalizeActGrad[Hardswish](d, wideA, wideB, rows[0], rows[1], rows[2]) }},
			"NormalizeReLU6": {func(d []uint16) { k.NormalizeAct[ReLU6](d, a, rows[0], rows[1], rows[2]) },
				func(d []float32) { plain.NormalizeAct[ReLU6](d, wideA, rows[0], rows[1], rows[2]) }},
			"NormalizeReLU6Grad": {func(d []uint16) { k.NormalizeActGrad[ReLU6](d, a, b, rows[0], rows[1], rows[2]) },
				func(d []float32) { plain.NormalizeActGrad[ReLU6](d, wideA, wideB, rows[0], rows[1], rows[2]) }},
			"NormalizeGrad": {func(d []uint16) { k.NormalizeGrad(d, a, b, rows[0], rows[1], rows[2], rows[3]) },
				func(d []float32) { normalizeGrad(d, wideA, wideB, rows[0], rows[1], rows[2], rows[3]) }},
		} {
			got, want := guard.Slice[uint16](t, n), make([]float32, n)
			kernel.stored(got)
			kernel.plain(want)
			if !slices.Equal(got, rounded(want)) {
				t.Fatalf("%s of %d, rows of %d: %v, want %v", name, n, width, got, rounded(want))
			}
		}
	}
}

// Sums of stored matrices are those of plain kernels, and so are the gradients that they write.
func TestStoredSums(t *testing.T) {
	k := StoredFor(simd.AVX512BF16)
	if !simd.HasBFloat16() {
		t.Skip("this processor has no AVX512_BF16")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, width := range []int{1, 15, 16, 17, 32, 33, 63, 64, 65, 96, 200} {
		for _, rows := range []int{1, 2, 7} {
			stride, step := width+r.IntN(9), width+r.IntN(9)
			size := (rows-1)*stride + width
			x, wideX := storedSlices(t, r, size)
			y, wideY := storedSlices(t, r, size)
			from, wideFrom := storedSlices(t, r, size)
			more, wideMore := storedSlices(t, r, size)
			mean := make([]float32, width)
			for i := range mean {
				mean[i] = float32(r.NormFloat64())
			}
			bias := append([]float32(nil), mean...) // a row of biases
			slices.Reverse(bias)
			made := guard.Slice[float32](t, (rows-1)*step+width)
			for i := range made {
				made[i] = float32(r.NormFloat64())
			}
			wideMade := make([]float32, size) // made with the stride of the others
			for i := range rows {
				copy(wideMade[i*stride:][:width], made[i*step:])
			}
			for name, kernel := range map[string]struct {
				stored func(first, second []float64, dy []uint16)
				plain  func(first, second []float64, dy []float32)
				writes bool
			}{
				"Sums": {func(s, _ []float64, _ []uint16) { k.Sums(s, x, width, stride, 0, rows) },
					func(s, _ []float64, _ []float32) { sums(s, wideX, width, stride, rows) }, false},
				"Moments": {func(s, q []float64, _ []uint16) { k.Moments(s, q, x, width, stride, 0, rows) },
					func(s, q []float64, _ []float32) { moments(s, q, wideX, width, stride, rows) }, false},
				"MomentsMade": {func(s, q []float64, dy []uint16) { k.MomentsMade(s, q, dy, made, width, stride, step, rows) },
					func(s, q []float64, dy []float32) {
						moments(s, q, wideMade, width, stride, rows)
						copy(dy, wideMade)
					}, true},
				"AffineReLUMade": {func(s, q []float64, dy []uint16) {
					k.AffineReLUMade(dy, made, mean, bias, width, stride, step, rows)
				}, func(s, q []float64, dy []float32) {
					affine(dy, wideMade, nil, mean, bias, width, stride, rows, true)
				}, true},
				"AffineMade": {func(s, q []float64, dy []uint16) {
					k.AffineMade(dy, made, mean, bias, width, stride, step, rows)
				}, func(s, q []float64, dy []float32) {
					affine(dy, wideMade, nil, mean, bias, width, stride, rows, false)
				}, true},
				"AffineAddMade": {func(s, q []float64, dy []uint16) {
					k.AffineAddMade(dy, more, made, mean, bias, width, stride, step, rows)
				}, func(s, q []float64, dy []float32) {
					affine(dy, wideMade, wideMore, mean, bias, width, stride, rows, false)
				}, true},
				"AffineAddReLUMade": {func(s, q []float64, dy []uint16) {
					k.AffineAddReLUMade(dy, more, made, mean, bias, width, stride, step, rows)
				}, func(s, q []float64, dy []float32) {
					affine(dy, wideMade, wideMore, mean, bias, width, stride, rows, true)
				}, true},
				"GradSums": {func(s, b []float64, _ []uint16) { k.GradSums(s, b, x, from, mean, width, stride, 0, rows) },
					func(s, b []float64, _ []float32) { gradSums(s, b, wideX, wideFrom, mean, width, stride, rows) }, false},
				"ReLUGradSums": {
					func(s, b []float64, dy []uint16) { k.ReLUGradSums(s, b, x, dy, y, from, mean, width, stride, 0, rows) },
					func(s, b []float64, dy []float32) {
						reluGradSums(s, b, wideX, dy, wideY, wideFrom, mean, width, stride, rows)
					}, true},
				"AddReLUGradSums": {
					func(s, b []float64, dy []uint16) {
						k.AddReLUGradSums(s, b, x, dy, y, from, more, mean, width, stride, 0, rows)
					},
					func(s, b []float64, dy []float32) {
						addReLUGradSums(s, b, wideX, dy, wideY, wideFrom, wideMore, mean, width, stride, rows)
					}, true},
				"ReLUGradSumsMade": {
					func(s, b []float64, dy []uint16) {
						k.ReLUGradSumsMade(s, b, x, dy, y, made, mean, width, stride, step, rows)
					},
					func(s, b []float64, dy []float32) {
						reluGradSums(s, b, wideX, dy, wideY, wideMade, mean, width, stride, rows)
					}, true},
				"AddReLUGradSumsMade": {
					func(s, b []float64, dy []uint16) {
						k.AddReLUGradSumsMade(s, b, x, dy, y, more, made, mean, width, stride, step, rows)
					},
					func(s, b []float64, dy []float32) {
						addReLUGradSums(s, b, wideX, dy, wideY, wideMade, wideMore, mean, width, stride, rows)
					}, true},
			} {
				t.Run(fmt.Sprintf("%s/%d×%d", name, rows, width), func(t *testing.T) {
					first, second := guard.Slice[float64](t, Padded(width)), guard.Slice[float64](t, Padded(width))
					want1, want2 := make([]float64, Padded(width)), make([]float64, Padded(width))
					for i := range width {
						first[i], second[i] = r.NormFloat64(), r.NormFloat64()
						want1[i], want2[i] = first[i], second[i]
					}
					const mark = 0x1234
					dy, wideDY := guard.Slice[uint16](t, size), make([]float32, size)
					for i := range dy {
						dy[i] = mark
					}
					kernel.stored(first, second, dy)
					kernel.plain(want1, want2, wideDY)
					if !slices.Equal(first[:width], want1[:width]) || !slices.Equal(second[:width], want2[:width]) {
						t.Fatalf("sums are %v, %v; want %v, %v", first[:width], second[:width], want1[:width], want2[:width])
					}
					for i, got := range dy {
						want := uint16(mark)
						if kernel.writes && i%stride < width {
							want = half(wideDY[i])
						}
						if got != want {
							t.Fatalf("element %d is %#04x, want %#04x", i, got, want)
						}
					}
				})
			}
		}
	}
}

// affine is the definition of the kernels of that name.
func affine(dst, x, other, gain, bias []float32, width, stride, rows int, relu bool) {
	zeros := make([]float32, width)
	for r := range rows {
		at := r * stride
		to, from := dst[at:][:width], x[at:][:width]
		switch {
		case other != nil && relu:
			normalizeAddReLU(to, from, other[at:][:width], zeros, gain, bias)
		case other != nil:
			normalizeAdd(to, from, other[at:][:width], zeros, gain, bias)
		case relu:
			normalizeReLU(to, from, zeros, gain, bias)
		default:
			normalize(to, from, zeros, gain, bias)
		}
	}
}
