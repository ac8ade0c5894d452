package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
)

// eachNarrow runs f for the sets of bfloat16 that the processor has.
func eachNarrow(t *testing.T, f func(t *testing.T, s *Set)) {
	for _, l := range simd.All() {
		if s := ForBFloat16(l); s != nil {
			t.Run(l.String(), func(t *testing.T) { f(t, s) })
		}
	}
	for step := 1; step <= 2; step++ {
		t.Run(fmt.Sprintf("definition/%d", step), func(t *testing.T) { f(t, PlainNarrow(step)) })
	}
	t.Run("avx512bf16", func(t *testing.T) {
		if !simd.HasBFloat16() {
			t.Skip("this processor has no AVX512_BF16")
		}
		f(t, ForBFloat16(simd.AVX512BF16))
	})
}

func TestRound(t *testing.T) {
	for _, c := range []struct{ x, want uint32 }{
		{0x3f800000, 0x3f800000}, {0x3f808000, 0x3f800000}, {0x3f808001, 0x3f810000}, {0x3f818000, 0x3f820000},
		{0x3f817fff, 0x3f810000},
		{0x80000000, 0x80000000}, {0x007fffff, 0}, {0x807fffff, 0x80000000}, {0x00800000, 0x00800000}, {1, 0},
		{0x7f7fffff, 0x7f800000}, {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000}, {0x7f7f7fff, 0x7f7f0000},
		{0x7f800001, 0x7fc00000}, {0xffd12345, 0xffd10000}, {0x7fffffff, 0x7fff0000},
	} {
		if got := math.Float32bits(Round(math.Float32frombits(c.x))); got != c.want {
			t.Errorf("%#08x is rounded to %#08x, want %#08x", c.x, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(3, 1))
	for range 100000 {
		x := float64(math.Float32frombits(r.Uint32()))
		if math.IsNaN(x) || math.Abs(x) < 0x1p-126 || math.Abs(x) >= 0x1.fep127 {
			continue
		}
		_, e := math.Frexp(x)
		unit := math.Ldexp(1, e-8)
		if got, want := float64(Round(float32(x))), math.RoundToEven(x/unit)*unit; got != want {
			t.Fatalf("%v is rounded to %v, want %v", x, got, want)
		}
	}
}

// patterns returns n numbers of all kinds at the end of readable memory.
func patterns(t *testing.T, r *rand.Rand, n int) []float32 {
	x := ending(t)(r, n)
	special := []uint32{0, 1 << 31, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xffd12345, 0x7f7fffff, 0x3f808000,
		0x3f818000}
	for i := range x {
		u := r.Uint32()
		if i%3 == 0 {
			u = special[r.IntN(len(special))]
		}
		x[i] = math.Float32frombits(u)
	}
	return x
}

// word packs factors into a word, as they are stored.
func word(factors ...float32) uint32 {
	u := math.Float32bits(Round(factors[0]))
	if len(factors) > 1 {
		u |= math.Float32bits(Round(factors[1])) >> 16
	}
	return u
}

func TestNarrowCopy(t *testing.T) {
	eachNarrow(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(3, 2))
		for width := 1; width < 6*s.Lanes; width++ {
			for _, rows := range []int{1, 3} {
				whole := s.Vectors(s.Narrow.Words(width)) * s.Lanes
				src, dst := patterns(t, r, rows*(width+1)-1), guarded(r, (rows-1)*(whole+2)+whole)
				before := append([]float32(nil), dst...)
				s.Narrow.Copy(&dst[0], &src[0], rows, width, 4*(whole+2), 4*(width+1))
				for i, x := range dst {
					want := math.Float32bits(before[i])
					if p, q := i/(whole+2), i%(whole+2); q < whole {
						want = 0
						row := src[p*(width+1):][:width]
						if k := q * s.Narrow.Step; k < width {
							want = word(row[k:min(k+s.Narrow.Step, width)]...)
						}
					}
					if got := math.Float32bits(x); got != want {
						t.Fatalf("%d × %d: word %d is %#08x, want %#08x", rows, width, i, got, want)
					}
				}
				if err := guards(dst); err != nil {
					t.Fatalf("%d × %d: %v", rows, width, err)
				}
			}
		}
	})
}

func TestPairRows(t *testing.T) {
	eachNarrow(t, func(t *testing.T, s *Set) {
		if s.Narrow.PairRows == nil {
			return
		}
		r := rand.New(rand.NewPCG(3, 3))
		for _, width := range []int{s.Lanes, 2 * s.Lanes, 5 * s.Lanes} {
			for _, rows := range []int{1, 2, 7} {
				src := patterns(t, r, 2*rows*width)
				want := make([]uint32, rows*width)
				for i := range want {
					at := i/width*2*width + i%width
					want[i] = word(src[at], src[at+width])
				}
				s.Narrow.PairRows(&src[0], &src[0], &src[width], rows, width, 4*width, 8*width)
				for i, w := range want {
					if got := math.Float32bits(src[i]); got != w {
						t.Fatalf("%d × %d: word %d is %#08x, want %#08x", rows, width, i, got, w)
					}
				}
			}
		}
	})
}

// Kernels of bfloat16 make the sums of the definition, step by step: bit for bit.
func TestNarrowKernels(t *testing.T) {
	eachNarrow(t, func(t *testing.T, s *Set) {
		for vectors := 1; vectors <= 2; vectors++ {
			for rows := 1; rows <= s.Rows; rows++ {
				for _, depth := range []int{1, 3, 4, 9} {
					for _, sums := range []bool{false, true} {
						for _, small := range []bool{false, true} {
							if small && s.Narrow.Step == 1 {
								continue
							}
							if err := narrowKernel(s, vectors, rows, depth, sums, small); err != nil {
								t.Fatalf("%d rows, %d vectors, depth %d, sums %v, small %v: %v", rows, vectors, depth, sums, small, err)
							}
						}
					}
				}
			}
		}
	})
}

// narrowKernel runs a kernel on depth words along the depth; small makes numbers whose sums are denormal.
func narrowKernel(s *Set, vectors, rows, depth int, sums, small bool) error {
	r := rand.New(rand.NewPCG(4, uint64(100*rows+depth)))
	columns := vectors * s.Lanes
	step := s.Narrow.Step
	number := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64() * math.Exp(2*r.NormFloat64()))
			if small {
				x[i] *= 0x1p-63
			}
			x[i] = Round(x[i])
		}
		return x
	}
	const taps = 2
	a, b := number(taps*depth*step*rows), number(taps*depth*step*columns) // by k, then row or column
	init, dst := guarded(r, columns), guarded(r, rows*columns)
	if small {
		for i := range init {
			init[i] *= 0x1p-125
		}
	}
	words := func(x []float32, n int) []float32 { // n factors of each step
		w := make([]float32, taps*depth*n)
		for i := range w {
			k, j := i/n, i%n
			f := []float32{x[k*step*n+j]}
			if step == 2 {
				f = append(f, x[(k*step+1)*n+j])
			}
			w[i] = math.Float32frombits(word(f...))
		}
		return w
	}
	wa, wb := words(a, rows), words(b, columns)
	args := &Args{
		B: &wb[0], C: &dst[0], Init: &init[0], Mask: Mask(columns), Taps: taps, Depth: depth,
		StepC: 4 * columns, JumpC: 4 * Half * columns,
	}
	kernel := s.Products[vectors][rows]
	offs := []int{0, 4 * depth * rows}
	args.StepA = 4 * rows
	if sums {
		kernel = s.Sums[vectors][rows]
	} else {
		t := make([]float32, len(wa)) // by tap and row, then k
		for i, v := range wa {
			tap, k, m := i/(depth*rows), i/rows%depth, i%rows
			t[(tap*rows+m)*depth+k] = v
		}
		wa = t
		args.StepA, args.JumpA = 4*depth, 4*Half*depth
	}
	args.A, args.Offs = &wa[0], &offs[0]
	kernel(args)
	for m := range rows {
		for j := range columns {
			want := init[j]
			for k := range taps * depth * step {
				if x, y := a[k*rows+m], b[k*columns+j]; step == 1 {
					want = Fused(x, y, want)
				} else {
					want = dotStep(want, x, y)
				}
			}
			if got := dst[m*columns+j]; math.Float32bits(got) != math.Float32bits(want) {
				return fmt.Errorf("element %d, %d is %v, want %v", m, j, got, want)
			}
		}
	}
	return guards(dst)
}

func BenchmarkNarrowCopy(b *testing.B) {
	const rows, width = 100, 64
	x, y := make([]float32, rows*width), make([]float32, rows*width)
	for _, l := range simd.All() {
		if s := ForBFloat16(l); s != nil {
			b.Run(l.String(), func(b *testing.B) {
				b.SetBytes(4 * rows * width)
				for b.Loop() {
					s.Narrow.Copy(&y[0], &x[0], rows, width, 4*width, 4*width)
				}
			})
		}
	}
}
