package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"onlinerna/internal/guard"
	"onlinerna/internal/simd"
)

// memory hands out slices between guard bands: of NaN, or of large numbers, since an in-place change may leave a NaN
// the same. The same seed gives the same content.
type memory struct {
	*rand.Rand
	guard  uint32
	odd    bool // with infinities, NaN, denormals and negative zeros among the numbers
	single [][]float32
	double [][]float64

	tb testing.TB // if set, slices have no bands: they end at the end of readable memory
}

const band = 40

func newMemory(seed uint64, odd bool) *memory {
	guards := [2]uint32{0x7fc0abcd, 0x4b123456}
	return &memory{Rand: rand.New(rand.NewPCG(seed, 1)), guard: guards[seed/2%2], odd: odd}
}

func (m *memory) number() float32 {
	if m.odd && m.IntN(8) == 0 {
		odd := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0, float32(math.Copysign(0, -1)),
			1e-42, -1e-42}
		return odd[m.IntN(len(odd))]
	}
	if m.IntN(4) == 0 {
		return float32(m.IntN(5)) - 2 // makes equal numbers likely
	}
	return float32(m.NormFloat64())
}

func (m *memory) floats(n int) []float32 {
	if m.tb != nil {
		x := guard.Slice[float32](m.tb, n)
		for i := range x {
			x[i] = m.number()
		}
		return x
	}
	x := make([]float32, n+2*band)
	for i := range x {
		x[i] = math.Float32frombits(m.guard + uint32(len(m.single))) // each slice has a band of its own
	}
	m.single = append(m.single, x)
	x = x[band : band+n : band+n]
	for i := range x {
		x[i] = m.number()
	}
	return x
}

func (m *memory) doubles(n int) []float64 {
	if m.tb != nil {
		return guard.Slice[float64](m.tb, n)
	}
	x := make([]float64, n+2*band)
	for i := range x {
		x[i] = float64(math.Float32frombits(m.guard))
	}
	m.double = append(m.double, x)
	x = x[band : band+n : band+n]
	for i := range x {
		x[i] = m.NormFloat64()
	}
	return x
}

// compare reports the first difference between m and want, or damage to the guard bands.
func (m *memory) compare(want *memory) error {
	for k, x := range m.single {
		for i, v := range x {
			w := want.single[k][i]
			outside := i < band || i >= len(x)-band
			if outside && math.Float32bits(v) != m.guard+uint32(k) {
				return fmt.Errorf("slice %d: written at %d of %d", k, i-band, len(x)-2*band)
			}
			if math.Float32bits(v) != math.Float32bits(w) && !(v != v && w != w) {
				return fmt.Errorf("slice %d: element %d of %d is %v, not %v", k, i-band, len(x)-2*band, v, w)
			}
		}
	}
	for k, x := range m.double {
		for i, v := range x {
			w := want.double[k][i]
			if math.Float64bits(v) != math.Float64bits(w) && !(v != v && w != w) {
				return fmt.Errorf("sums %d: element %d of %d is %v, not %v", k, i-band, len(x)-2*band, v, w)
			}
		}
	}
	return nil
}

// sumsOf returns the sums of columns, with the padding that kernels may use.
func (m *memory) sumsOf(width int) []float64 {
	x := m.doubles(Padded(width))
	clear(x[width:])
	return x
}

// kernels runs each kernel on slices of n elements, with rows of width.
var kernels = map[string]func(s *Set, m *memory, n, width int){
	"relu":      func(s *Set, m *memory, n, _ int) { s.ReLU(m.floats(n), m.floats(n)) },
	"relu grad": func(s *Set, m *memory, n, _ int) { s.ReLUGrad(m.floats(n), m.floats(n), m.floats(n)) },
	"relu grad in place": func(s *Set, m *memory, n, _ int) {
		y := m.floats(n)
		s.ReLUGrad(y, y, m.floats(n))
	},
	"add": func(s *Set, m *memory, n, _ int) { s.Add(m.floats(n), m.floats(n), m.floats(n)) },
	"normalize": func(s *Set, m *memory, n, width int) {
		s.Normalize(m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize relu": func(s *Set, m *memory, n, width int) {
		s.NormalizeReLU(m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize add": func(s *Set, m *memory, n, width int) {
		s.NormalizeAdd(m.floats(n), m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize add relu": func(s *Set, m *memory, n, width int) {
		x := m.floats(n)
		s.NormalizeAddReLU(x, x, m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize silu": func(s *Set, m *memory, n, width int) {
		s.NormalizeAct[SiLU](m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize hardswish": func(s *Set, m *memory, n, width int) {
		s.NormalizeAct[Hardswish](m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize relu6 in place": func(s *Set, m *memory, n, width int) {
		x := m.floats(n)
		s.NormalizeAct[ReLU6](x, x, m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize silu grad": func(s *Set, m *memory, n, width int) {
		s.NormalizeActGrad[SiLU](m.floats(n), m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize hardswish grad": func(s *Set, m *memory, n, width int) {
		s.NormalizeActGrad[Hardswish](m.floats(n), m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize relu6 grad in place": func(s *Set, m *memory, n, width int) {
		dy := m.floats(n)
		s.NormalizeActGrad[ReLU6](dy, m.floats(n), dy, m.floats(width), m.floats(width), m.floats(width))
	},
	"normalize grad": func(s *Set, m *memory, n, width int) {
		s.NormalizeGrad(m.floats(n), m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width),
			m.floats(width))
	},
	"scale":      func(s *Set, m *memory, n, width int) { s.Scale(m.floats(n), m.floats(n), m.floats(width)) },
	"fill":       func(s *Set, m *memory, n, _ int) { s.Fill(m.floats(n), 1.5) },
	"add scaled": func(s *Set, m *memory, n, _ int) { s.AddScaled(m.floats(n), m.floats(n), 1./3) },
	"lerp":       func(s *Set, m *memory, n, _ int) { s.Lerp(m.floats(n), m.floats(n), 1./3) },
	"lerp with itself": func(s *Set, m *memory, n, _ int) {
		x := m.floats(n)
		s.Lerp(x, x, 1./3)
	},
	"strange": func(s *Set, m *memory, n, _ int) {
		to := m.floats(1)
		to[0] = 0
		if s.Strange(m.floats(n)) != 0 {
			to[0] = 1
		}
	},
	"squares": func(s *Set, m *memory, n, _ int) { s.Squares(m.floats(n), (*[8]float64)(m.doubles(8))) },
}

// columnKernels runs each kernel on matrices of n elements.
var columnKernels = map[string]func(s *Set, m *memory, n, width, stride, rows int){
	"sums": func(s *Set, m *memory, n, width, stride, rows int) {
		s.Sums(m.sumsOf(width), m.floats(n), width, stride, rows)
	},
	"moments": func(s *Set, m *memory, n, width, stride, rows int) {
		s.Moments(m.sumsOf(width), m.sumsOf(width), m.floats(n), width, stride, rows)
	},
	"grad sums": func(s *Set, m *memory, n, width, stride, rows int) {
		s.GradSums(m.sumsOf(width), m.sumsOf(width), m.floats(n), m.floats(n), m.floats(width), width, stride, rows)
	},
	"relu grad sums": func(s *Set, m *memory, n, width, stride, rows int) {
		s.ReLUGradSums(m.sumsOf(width), m.sumsOf(width), m.floats(n), m.floats(n), m.floats(n), m.floats(n), m.floats(width),
			width, stride, rows)
	},
	"add relu grad sums": func(s *Set, m *memory, n, width, stride, rows int) {
		dy := m.floats(n)
		s.AddReLUGradSums(m.sumsOf(width), m.sumsOf(width), m.floats(n), dy, m.floats(n), dy, m.floats(n), m.floats(width),
			width, stride, rows)
	},
}

// padded returns rows with padding.
func (m *memory) padded(width, rows int) []float32 { return m.floats(rows * Padded(width)) }

// clearPadding clears the padding, which kernels may overwrite.
func clearPadding(x []float32, width int) {
	for at := 0; at < len(x); at += Padded(width) {
		clear(x[at+width : at+Padded(width)])
	}
}

// rowKernels runs each kernel on matrices of rows × width elements.
var rowKernels = map[string]func(s *Set, m *memory, width, rows int){
	"softmax": func(s *Set, m *memory, width, rows int) {
		s.Softmax(m.floats(rows*width), m.floats(rows*width), nil, -.7, width, rows)
	},
	"softmax with a bias in place": func(s *Set, m *memory, width, rows int) {
		x := m.floats(rows * width)
		s.Softmax(x, x, m.floats(rows*width), -1.3, width, rows)
	},
	"softmax grad": func(s *Set, m *memory, width, rows int) {
		s.SoftmaxGrad(m.floats(rows*width), m.floats(rows*width), m.floats(rows*width), nil, .7, width, rows)
	},
	"softmax grad with a sum in place": func(s *Set, m *memory, width, rows int) {
		dy := m.floats(rows * width)
		s.SoftmaxGrad(dy, m.floats(rows*width), dy, m.floats(rows*width), .7, width, rows)
	},
	"padded softmax": func(s *Set, m *memory, width, rows int) {
		x := m.padded(width, rows)
		s.SoftmaxPadded(x, nil, .7, width, rows)
		clearPadding(x, width)
	},
	"padded softmax with a bias": func(s *Set, m *memory, width, rows int) {
		x := m.padded(width, rows)
		s.SoftmaxPadded(x, m.floats(rows*width), -1.3, width, rows)
		clearPadding(x, width)
	},
	"padded softmax grad": func(s *Set, m *memory, width, rows int) {
		dy := m.padded(width, rows)
		s.SoftmaxGradPadded(m.padded(width, rows), dy, nil, .7, width, rows)
		clearPadding(dy, width)
	},
	"padded softmax grad with a sum": func(s *Set, m *memory, width, rows int) {
		dy := m.padded(width, rows)
		s.SoftmaxGradPadded(m.padded(width, rows), dy, m.floats(rows*width), .7, width, rows)
		clearPadding(dy, width)
	},
	"layer norm": func(s *Set, m *memory, width, rows int) {
		s.LayerNorm(m.floats(rows*width), m.floats(rows*width), m.floats(width), m.floats(width), 1e-3, width, rows)
	},
	"layer norm grad": func(s *Set, m *memory, width, rows int) {
		dy := m.floats(rows * width)
		s.LayerNormGrad(dy, m.floats(rows*width), dy, m.floats(width), m.sumsOf(width), 1e-3, width, rows)
	},
	"layer norm grad of x": func(s *Set, m *memory, width, rows int) {
		s.LayerNormGrad(m.floats(rows*width), m.floats(rows*width), m.floats(rows*width), m.floats(width), nil, 1e-3, width,
			rows)
	},
	"layer norm grad of scale": func(s *Set, m *memory, width, rows int) {
		x, dy := m.floats(rows*width), m.floats(rows*width)
		s.LayerNormGrad(nil, x, dy, m.floats(width), m.sumsOf(width), 1e-3, width, rows)
	},
}

// levels calls f for each level besides plain Go.
func levels(t *testing.T, f func(t *testing.T, s *Set)) {
	for _, l := range simd.All()[1:] {
		t.Run(l.String(), func(t *testing.T) { f(t, For(l)) })
	}
}

func TestLevelsAgree(t *testing.T) {
	levels(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(3, 4))
		for name, kernel := range kernels {
			for trial := range 150 {
				n, width := trial, 1+r.IntN(100)
				if trial >= 100 {
					n = r.IntN(2000)
				}
				var got, want = newMemory(uint64(trial), trial%3 == 0), newMemory(uint64(trial), trial%3 == 0)
				kernel(s, got, n, width)
				kernel(&plain, want, n, width)
				if err := got.compare(want); err != nil {
					t.Errorf("%s of %d elements, %d columns: %v", name, n, width, err)
					break
				}
			}
		}
		for name, kernel := range columnKernels {
			for trial := range 150 {
				width, rows := 1+trial, 1+r.IntN(20)
				stride := width + r.IntN(3)*r.IntN(20)
				n := (rows-1)*stride + width
				var got, want = newMemory(uint64(trial), trial%3 == 0), newMemory(uint64(trial), trial%3 == 0)
				kernel(s, got, n, width, stride, rows)
				kernel(&plain, want, n, width, stride, rows)
				// The padding of sums is undefined.
				for _, m := range []*memory{got, want} {
					for _, x := range m.double {
						clear(x[band+width : len(x)-band])
					}
				}
				if err := got.compare(want); err != nil {
					t.Errorf("%s of %d×%d elements, stride %d: %v", name, rows, width, stride, err)
					break
				}
			}
		}
		for name, kernel := range rowKernels {
			for trial := range 150 {
				width, rows := 1+trial, 1+r.IntN(6)
				var got, want = newMemory(uint64(trial), trial%3 == 0), newMemory(uint64(trial), trial%3 == 0)
				kernel(s, got, width, rows)
				kernel(&plain, want, width, rows)
				for _, m := range []*memory{got, want} {
					for _, x := range m.double {
						clear(x[band+width : len(x)-band])
					}
				}
				if err := got.compare(want); err != nil {
					t.Errorf("%s of %d×%d elements: %v", name, rows, width, err)
					break
				}
			}
		}
	})
}

// A function of a normalised x has the bits of both kernels one after the other.
func TestNormalizedFunctions(t *testing.T) {
	const n, width = 1000, 48
	for _, l := range simd.All() {
		s, m := For(l), newMemory(1, true)
		x, dy, mean, gain, bias := m.floats(n), m.floats(n), m.floats(width), m.floats(width), m.floats(width)
		normal, got, want := make([]float32, n), make([]float32, n), make([]float32, n)
		s.Normalize(normal, x, mean, gain, bias)
		for name, f := range map[string][2]func(){
			"silu": {func() { s.NormalizeAct[SiLU](got, x, mean, gain, bias) },
				func() { s.SiLU(want, normal) }},
			"hardswish": {func() { s.NormalizeAct[Hardswish](got, x, mean, gain, bias) },
				func() { s.Hardswish(want, normal) }},
			"relu6": {func() { s.NormalizeAct[ReLU6](got, x, mean, gain, bias) },
				func() { s.ReLU6(want, normal) }},
			"silu grad": {func() { s.NormalizeActGrad[SiLU](got, x, dy, mean, gain, bias) },
				func() { s.SiLUGrad(want, normal, dy) }},
			"hardswish grad": {func() { s.NormalizeActGrad[Hardswish](got, x, dy, mean, gain, bias) },
				func() { s.HardswishGrad(want, normal, dy) }},
			"relu6 grad": {func() { s.NormalizeActGrad[ReLU6](got, x, dy, mean, gain, bias) },
				func() { s.ReLU6Grad(want, normal, dy) }},
		} {
			f[0]()
			f[1]()
			for i, w := range want {
				if math.Float32bits(got[i]) != math.Float32bits(w) && !(got[i] != got[i] && w != w) {
					t.Errorf("level %v: %s: %v, want %v", l, name, got[i], w)
					break
				}
			}
		}
	}
}

// TestEnds has slices of all lengths at the end of readable memory.
func TestEnds(t *testing.T) {
	levels(t, func(t *testing.T, s *Set) {
		lent := func(t *testing.T, n int) *memory {
			m := newMemory(uint64(n), false)
			m.tb = t
			return m
		}
		for name, kernel := range kernels {
			t.Run(name, func(t *testing.T) {
				for n := 1; n < 70; n++ {
					kernel(s, lent(t, n), n, 1+n%23)
				}
			})
		}
		for name, kernel := range columnKernels {
			t.Run(name, func(t *testing.T) {
				for width := 1; width < 70; width++ {
					stride := width + width%3
					kernel(s, lent(t, width), 2*stride+width, width, stride, 3)
				}
			})
		}
		for name, kernel := range rowKernels {
			t.Run(name, func(t *testing.T) {
				for width := 1; width < 70; width++ {
					kernel(s, lent(t, width), width, 3)
				}
			})
		}
		t.Run("windows", func(t *testing.T) {
			for channels := 1; channels < 70; channels++ {
				m, pixel, count := lent(t, channels), channels+channels%3, 1+channels%4
				columns := 2*(count-1) + 2
				w := Windows{
					Count: count, Channels: channels, Pitch: pixel, Rows: 3, Columns: 2, Line: columns * pixel, Pixel: pixel,
					Step: 2 * pixel,
				}
				x := func() []float32 { return m.floats((3*columns-1)*pixel + channels) }
				y := func() []float32 { return m.floats((count-1)*pixel + channels) }
				s.MaxWindows(y(), x(), w)
				s.MaxWindowsGrad(y(), x(), x(), w)
				s.MaxWindowsSet(y(), x(), x(), w)
			}
		})
	})
}

// aligned is floats with an alignment of Alignment.
func (m *memory) aligned(n int) []float32 {
	x := m.floats(n + Alignment/4)
	for uintptr(unsafe.Pointer(&x[0]))%Alignment != 0 {
		x = x[1:]
	}
	return x[:n]
}

func TestLargeAgree(t *testing.T) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) {
			for n := range 300 {
				m := newMemory(uint64(n), n%3 == 0)
				width := 16 * (1 + n%5)
				x, other := m.floats(n), m.floats(n)
				mean, gain, bias := m.floats(width), m.floats(width), m.floats(width)
				dst := m.aligned(n + 8)
				dst, behind := dst[:n], dst[n:]
				before := slices.Clone(behind)
				want := make([]float32, n)
				for i, f := range []func(s *Set, dst []float32){
					func(s *Set, dst []float32) { s.ReLU(dst, x) },
					func(s *Set, dst []float32) { s.Add(dst, x, other) },
					func(s *Set, dst []float32) { s.Normalize(dst, x, mean, gain, bias) },
					func(s *Set, dst []float32) { s.NormalizeReLU(dst, x, mean, gain, bias) },
					func(s *Set, dst []float32) { s.NormalizeAdd(dst, x, other, mean, gain, bias) },
					func(s *Set, dst []float32) { s.NormalizeAddReLU(dst, x, other, mean, gain, bias) },
					func(s *Set, dst []float32) { s.NormalizeAct[SiLU](dst, x, mean, gain, bias) },
					func(s *Set, dst []float32) { s.NormalizeAct[Hardswish](dst, x, mean, gain, bias) },
					func(s *Set, dst []float32) { s.NormalizeAct[ReLU6](dst, x, mean, gain, bias) },
				} {
					f(ForLarge(l), dst)
					f(&plain, want)
					if !equal(dst, want) || !equal(behind, before) {
						t.Fatalf("kernel %d, %d elements: %v, not %v; behind it %v, before %v", i, n, dst, want, behind, before)
					}
				}
			}
		})
	}
}

func TestWindowsAgree(t *testing.T) {
	levels(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(5, 6))
		for trial := range 300 {
			channels := 1 + r.IntN(40)
			all := channels + r.IntN(2)*r.IntN(30)
			kernel, stride, count := [2]int{1 + r.IntN(3), 1 + r.IntN(3)}, 1+r.IntN(3), 1+r.IntN(9)
			columns := (count-1)*stride + kernel[1]
			w := Windows{
				Count: count, Channels: channels, Pitch: all,
				Rows: kernel[0], Columns: kernel[1], Line: columns * all, Pixel: all, Step: stride * all,
				BehindReLU: trial%2 == 0,
			}
			size := kernel[0] * columns * all
			odd := trial%3 == 0
			got, want := newMemory(uint64(trial), odd), newMemory(uint64(trial), odd)
			for _, side := range []struct {
				*Set
				*memory
			}{{s, got}, {&plain, want}} {
				m := side.memory
				x := m.floats(size)
				side.MaxWindows(m.floats(count*all), x, w)
				dx := m.floats(size)
				clear(dx)
				side.MaxWindowsGrad(m.floats(count*all), x, dx, w)
				if stride >= kernel[1] {
					side.MaxWindowsSet(m.floats(count*all), x, m.floats(size), w)
				}
			}
			if err := got.compare(want); err != nil {
				t.Fatalf("%+v: %v", w, err)
			}
		}
	})
}

func TestSpecialNumbers(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, l := range simd.All() {
		s := For(l)
		x := []float32{-1, 2, inf, -inf, nan, -1e-42, 1e-42}
		y := make([]float32, len(x))
		s.ReLU(y, x)
		if want := []float32{0, 2, inf, 0, nan, 0, 1e-42}; !equal(y, want) {
			t.Errorf("%v: relu of %v is %v", l, x, y)
		}
		s.ReLUGrad(y, x, []float32{1, 2, 3, 4, 5, 6, nan})
		if want := []float32{0, 2, 3, 0, 5, 0, nan}; !equal(y, want) {
			t.Errorf("%v: relu grad of %v is %v", l, x, y)
		}
		for i := range 40 {
			z := make([]float32, 40)
			if s.Strange(z) != 0 {
				t.Errorf("%v: zeros are strange", l)
			}
			for _, v := range []float32{inf, -inf, nan} {
				if z[i] = v; s.Strange(z) == 0 {
					t.Errorf("%v: %v at %d is not found", l, v, i)
				}
			}
		}
		one := make([]float32, 1)
		w := Windows{Count: 1, Channels: 1, Rows: 1, Columns: 3, Pixel: 1}
		for _, c := range []struct {
			x    [3]float32
			max  float32
			here int
		}{
			{[3]float32{1, 3, 3}, 3, 1},
			{[3]float32{1, nan, 3}, nan, 1},
			{[3]float32{nan, nan, 3}, nan, 0},
			{[3]float32{-inf, -inf, -inf}, -inf, 0},
			{[3]float32{-inf, -1e-42, -inf}, -1e-42, 1},
			{[3]float32{float32(math.Copysign(0, -1)), 0, 0}, 0, 0},
			{[3]float32{1, 2, inf}, inf, 2},
		} {
			s.MaxWindows(one, c.x[:], w)
			dx := make([]float32, 3)
			s.MaxWindowsGrad([]float32{7}, c.x[:], dx, w)
			want := make([]float32, 3)
			want[c.here] = 7
			set := []float32{1, 1, 1}
			s.MaxWindowsSet([]float32{7}, c.x[:], set, w)
			if !equal(one, []float32{c.max}) || !equal(dx, want) || !equal(set, want) {
				t.Errorf("%v: maximum of %v is %v, its gradient %v", l, c.x, one, dx)
			}
		}
	}
}

// equal compares numbers, with NaN equal to itself.
func equal(x, y []float32) bool {
	for i, v := range x {
		if v != y[i] && !(v != v && y[i] != y[i]) {
			return false
		}
	}
	return len(x) == len(y)
}
