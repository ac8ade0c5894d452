package vec

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"onlinerna/internal/simd"
)

// functionsOf lists functions of one number with their definition in float64.
var functionsOf = []struct {
	name  string
	f     func(s *Set) func(dst, x []float32)
	ulps  float64 // the largest error
	exact func(x float64) float64
}{
	{"exp", func(s *Set) func(dst, x []float32) { return s.Exp }, 1, math.Exp},
	{"log", func(s *Set) func(dst, x []float32) { return s.Log }, .54, math.Log},
	{"tanh", func(s *Set) func(dst, x []float32) { return s.Tanh }, 1.6, math.Tanh},
	{"erf", func(s *Set) func(dst, x []float32) { return s.Erf }, 5.3, math.Erf},
	{"sigmoid", func(s *Set) func(dst, x []float32) { return s.Sigmoid }, 2.5, func(x float64) float64 {
		if x < 0 {
			return math.Exp(x) / (1 + math.Exp(x))
		}
		return 1 / (1 + math.Exp(-x))
	}},
	{"silu", func(s *Set) func(dst, x []float32) { return s.SiLU }, 2.5, func(x float64) float64 {
		if x < -88 {
			x = -88
		}
		return x / (1 + math.Exp(-x))
	}},
	{"sqrt", func(s *Set) func(dst, x []float32) { return s.Sqrt }, .5, math.Sqrt},
	{"neg", func(s *Set) func(dst, x []float32) { return s.Neg }, 0, func(x float64) float64 { return -x }},
}

// ulps is how far got is from want, in units of the last place of want rounded to float32.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case want != want:
		if got != got {
			return 0
		}
		return math.Inf(1)
	case got == w:
		if math.Signbit(float64(got)) != math.Signbit(want) {
			return math.Inf(1)
		}
		if math.IsInf(float64(w), 0) {
			return 0
		}
	case math.IsInf(float64(got), 0) != math.IsInf(float64(w), 0) || got != got:
		return math.Inf(1)
	}
	_, e := math.Frexp(float64(w))
	unit := math.Ldexp(1, max(e-24, -149))
	return math.Abs(float64(got)-want) / unit
}

// TestFunctions compares with float64 at numbers of all exponents and signs, around the ends of the functions'
// branches, and at special values; in long mode at every 997th float32.
func TestFunctions(t *testing.T) { checkFunctions(t, numbers()) }

func numbers() (x []float32) {
	step := uint64(997)
	if testing.Short() {
		step = 100003
	}
	for b := uint64(0); b < 1<<32; b += step {
		x = append(x, math.Float32frombits(uint32(b)))
	}
	inf := float32(math.Inf(1))
	for _, v := range []float32{
		0, math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-127, 1, math.MaxFloat32, inf, float32(math.NaN()), 88.72283, 88.72284,
		89, 103.27893, 103.97208,
		104, 105, 87.33655, math.Sqrt2, math.Sqrt2 / 2, 1. / (1 << 13), .34657359, .17328680, 3.8325068, 3.9192059, 4,
		9.010913, 87, 88, 5.449998, 6.1999984, 4.937067, .11090683, // the last two have the largest errors of GELU and erf
	} {
		for _, w := range []float32{v, -v} {
			x = append(x, w, math.Nextafter32(w, inf), math.Nextafter32(w, -inf))
		}
	}
	return x
}

// TestGELU compares GELU and its gradient with float64: the errors relative to x and to dy. Where the normal
// distribution is 0 or 1 in float32 they are exact.
func TestGELU(t *testing.T) {
	x := numbers()
	dy, got, plain := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	for i := range dy {
		dy[i] = float32(i%3) - 1.5
	}
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	slope := func(x float64) float64 { return normal(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) }
	for _, f := range []struct {
		name       string
		run        func(s *Set, dst []float32)
		exact      func(x float64) float64 // relative to scale
		scale      []float32
		end, bound float64
	}{
		{"gelu", func(s *Set, dst []float32) { s.GELU(dst, x) }, normal, x, 5.45, 2.1e-7},
		{"its gradient", func(s *Set, dst []float32) { s.GELUGrad(dst, x, dy) }, slope, dy, 6.2, 2.4e-7},
	} {
		f.run(For(simd.Go), plain)
		for i, y := range plain {
			v, scale := float64(x[i]), float64(f.scale[i])
			want, bound := f.exact(v), f.bound*math.Abs(scale)+0x1p-149
			if math.Abs(v) >= f.end {
				want, bound = f.exact(math.Copysign(100, v)), 0
			}
			want *= scale
			if v != v || want != want { // 0·∞
				if y == y {
					t.Errorf("%s of %v is %v", f.name, v, y)
				}
			} else if float64(y) != want && !(math.Abs(float64(y)-want) <= bound) {
				t.Fatalf("%s of %v is %v, want %v", f.name, v, y, want)
			}
		}
		for _, l := range simd.All()[1:] {
			f.run(For(l), got)
			asPlainGo(t, f.name, l, x, got, plain)
		}
	}
}

func checkFunctions(t *testing.T, x []float32) {
	t.Helper()
	want, got := make([]float32, len(x)), make([]float32, len(x))
	for _, f := range functionsOf {
		f.f(For(simd.Go))(want, x)
		worst, at := 0., float32(0)
		for i, v := range x {
			if u := ulps(want[i], f.exact(float64(v))); u > worst {
				worst, at = u, v
			}
		}
		if !(worst <= f.ulps) {
			t.Errorf("%s(%v): %.3g ulp", f.name, at, worst)
		}
		for _, l := range simd.All()[1:] {
			f.f(For(l))(got, x)
			asPlainGo(t, f.name, l, x, got, want)
		}
	}
}

// asPlainGo compares the bits of results at a level with those of plain Go; every NaN is the same.
func asPlainGo(t *testing.T, name string, l simd.Level, x, got, want []float32) {
	t.Helper()
	for i, v := range got {
		if math.Float32bits(v) != math.Float32bits(want[i]) && !(v != v && want[i] != want[i]) {
			t.Errorf("%s(%v) is %v at level %v, %v in plain Go", name, x[i], v, l, want[i])
			return
		}
	}
}

func init() { // adds to the kernels of TestLevelsAgree
	for _, f := range functionsOf {
		kernels[f.name] = func(s *Set, m *memory, n, _ int) { f.f(s)(m.floats(n), m.floats(n)) }
	}
	kernels["gelu"] = func(s *Set, m *memory, n, _ int) { s.GELU(m.floats(n), m.floats(n)) }
	kernels["if"] = func(s *Set, m *memory, n, _ int) { s.If(m.floats(n), m.floats(n), m.floats(n), m.floats(n)) }
	for name, f := range map[string]func(s *Set) func(dst, a, b []float32){
		"sub":  func(s *Set) func(dst, a, b []float32) { return s.Sub },
		"mul":  func(s *Set) func(dst, a, b []float32) { return s.Mul },
		"div":  func(s *Set) func(dst, a, b []float32) { return s.Div },
		"less": func(s *Set) func(dst, a, b []float32) { return s.Less },
		"min":  func(s *Set) func(dst, a, b []float32) { return s.Min },
		"max":  func(s *Set) func(dst, a, b []float32) { return s.Max },

		"gelu's gradient": func(s *Set) func(dst, a, b []float32) { return s.GELUGrad },
	} {
		kernels[name] = func(s *Set, m *memory, n, _ int) {
			x := m.floats(n)
			f(s)(x, x, m.floats(n))
		}
	}
}

// TestArithmetic compares kernels of two numbers with their definitions, at all pairs of special values.
func TestArithmetic(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	zero := float32(math.Copysign(0, -1))
	special := []float32{0, zero, 1, -1, 3, 1e-45, -1e-45, math.MaxFloat32, -math.MaxFloat32, inf, -inf, nan}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		special = append(special, float32(r.NormFloat64()))
	}
	truth := func(t bool) float32 {
		if t {
			return math.Float32frombits(0xffffffff)
		}
		return 0
	}
	for _, f := range []struct {
		name  string
		f     func(s *Set) func(dst, a, b []float32)
		exact func(a, b float32) float32
	}{
		{"sub", func(s *Set) func(dst, a, b []float32) { return s.Sub }, func(a, b float32) float32 { return a - b }},
		{"mul", func(s *Set) func(dst, a, b []float32) { return s.Mul }, func(a, b float32) float32 { return a * b }},
		{"div", func(s *Set) func(dst, a, b []float32) { return s.Div }, func(a, b float32) float32 { return a / b }},
		{"min", func(s *Set) func(dst, a, b []float32) { return s.Min }, func(a, b float32) float32 { return min(a, b) }},
		{"max", func(s *Set) func(dst, a, b []float32) { return s.Max }, func(a, b float32) float32 { return max(a, b) }},
		{"less", func(s *Set) func(dst, a, b []float32) { return s.Less },
			func(a, b float32) float32 { return truth(a < b) }},
		{"less or equal", func(s *Set) func(dst, a, b []float32) { return s.LessEqual },
			func(a, b float32) float32 { return truth(a <= b) }},
		{"equal", func(s *Set) func(dst, a, b []float32) { return s.Equal },
			func(a, b float32) float32 { return truth(a == b) }},
	} {
		var a, b []float32
		for _, v := range special {
			for _, w := range special {
				a, b = append(a, v), append(b, w)
			}
		}
		for _, l := range simd.All() {
			got := make([]float32, len(a))
			f.f(For(l))(got, a, b)
			for i, v := range got {
				w := f.exact(a[i], b[i])
				same := math.Float32bits(v) == math.Float32bits(w)
				if compares := f.name == "less" || f.name == "less or equal" || f.name == "equal"; !same &&
					(compares || v == v || w == w) {
					t.Errorf("%s(%v, %v) is %v at level %v, want %v", f.name, a[i], b[i], v, l, w)
				}
			}
		}
	}
}

// BenchmarkFunctions measures the fastest call of a function on a block in the first level cache.
func BenchmarkFunctions(b *testing.B) {
	x, y := make([]float32, 1024), make([]float32, 1024)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, l := range simd.All() {
		for _, f := range functionsOf {
			b.Run(l.String()+"/"+f.name, func(b *testing.B) {
				run := f.f(For(l))
				best := time.Duration(math.MaxInt64)
				for b.Loop() {
					start := time.Now()
					run(y, x)
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best.Nanoseconds())/float64(len(x)), "ns/element")
			})
		}
	}
}
