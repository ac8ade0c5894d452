package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/internal/simd/convert"
)

var formats = map[string]convert.Format{
	"float32": convert.Float32, "float64": convert.Float64, "float16": convert.Float16, "bfloat16": convert.BFloat16,
}

// vectors makes n vectors of d random elements, followed by NaN, off bytes into their memory, and returns their values,
// too.
func vectors(n, d int, f convert.Format, off int, seed uint64) (stored [][]byte, values [][]float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		src := make([]float64, d+40)
		for i := range src {
			src[i] = r.NormFloat64() * math.Ldexp(1, r.IntN(9)-4)
			if i >= d {
				src[i] = math.NaN()
			}
		}
		b := make([]byte, off+len(src)*f.Size())[off:]
		convert.Round(b, src, f, false)
		wide := make([]float64, d)
		convert.Widen(wide, b, f)
		stored, values = append(stored, b), append(values, wide)
	}
	return stored, values
}

// eachLevel runs f at all levels.
func eachLevel(t *testing.T, f func(t *testing.T, l simd.Level)) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) {
			before := active
			active = l
			defer func() { active = before }()
			f(t, l)
		})
	}
}

// product is the definition of an inner product over up to a block.
func product(a, b []float64) float64 {
	var lanes [Lanes]float64
	for i := range a {
		lanes[i%Lanes] = math.FMA(b[i], a[i], lanes[i%Lanes])
	}
	return total(&lanes)
}

func residual(q Pair, values [][]float64) []float64 {
	r := make([]float64, len(values[q.X]))
	for i := range r {
		if r[i] = values[q.X][i]; q.Y >= 0 {
			r[i] -= values[q.Y][i]
		}
		r[i] = math.Ldexp(r[i], -q.Exp)
	}
	return r
}

// Products have the bits of their definition at every level: rows and whole matrices, of chains, pairs, vectors
// and scaled residuals, at lengths round those of groups, in memory that is aligned and not.
func TestProducts(t *testing.T) {
	chain := []Pair{}
	for i := range 12 {
		chain = append(chain, Pair{i + 1, i, 0})
	}
	mixed := []Pair{{1, 0, 0}, {2, 1, 0}, {3, 2, 0}, {4, 3, 0}, {5, 4, 0}, {6, -1, 0},
		{8, 7, 0}, {9, 10, 3}, {11, -1, -2}, {12, 9, 0}, {12, 11, 0}}
	eachLevel(t, func(t *testing.T, l simd.Level) {
		for name, f := range formats {
			for _, d := range []int{1, 15, 16, 17, 255, 256, 257, Run - 1, Run + 16, 2*Run + 33, Block} {
				for i, pairs := range [][]Pair{chain[:1], chain[:3], chain[:4], chain[:10], chain, mixed, mixed[:6]} {
					if d > 2*Run && i != 4 && i != 5 {
						continue
					}
					off := d % 4 // aligned or not
					stored, values := vectors(13, d+3, f, off, uint64(d))
					for i := range values {
						values[i] = values[i][3:]
					}
					for _, full := range []bool{false, true} {
						p := NewProducts(f, 13, pairs, full)
						got := make([]float64, p.Len())
						p.Block(got, stored, 3, d)
						k := 0
						for i, a := range pairs {
							for j, b := range pairs[:i+1] {
								if !full && i < len(pairs)-1 {
									continue
								}
								want := product(residual(a, values), residual(b, values))
								if got[k] != want {
									t.Fatalf("%s, %d elements, %d pairs, full %v: product %d, %d is %v, want %v",
										name, d, len(pairs), full, i, j, got[k], want)
								}
								k++
							}
						}
					}
				}
			}
		}
	})
}

// Combinations have the bits of a loop of multiply-adds, -0 included, and stay within their row.
func TestCombination(t *testing.T) {
	eachLevel(t, func(t *testing.T, l simd.Level) {
		for name, f := range formats {
			for _, d := range []int{0, 1, 16, 31, Run - 3, Run} {
				for _, n := range []int{0, 1, 2, 4, 5, 7, 11} {
					stored, values := vectors(n, d+2, f, d%4, 7)
					coef := make([]float64, n)
					for k := range coef {
						coef[k] = 1/float64(k+3) - .2
					}
					row := make([]float64, d+1)
					row[d] = math.NaN()
					NewCombination(f, coef).Sum(row[:d], stored, 2)
					for i, got := range row[:d] {
						want := 0.
						for k, c := range coef {
							if x := values[k][i+2]; k == 0 {
								want = c * x
							} else {
								want = math.FMA(c, x, want)
							}
						}
						if math.Float64bits(got) != math.Float64bits(want) {
							t.Fatalf("%s, %d terms: element %d of %d is %v, want %v", name, n, i, d, got, want)
						}
					}
					if row[d] == row[d] {
						t.Fatalf("%s, %d terms: a sum behind the end", name, n)
					}
				}
			}
		}
		b := make([]byte, 64*4)
		convert.Round(b, slicesOf(64, math.Copysign(0, -1)), convert.Float32, false)
		row := make([]float64, 64)
		NewCombination(convert.Float32, []float64{1}).Sum(row, [][]byte{b}, 0)
		for i, v := range row {
			if !math.Signbit(v) {
				t.Fatalf("1·(−0) is %v at %d", v, i)
			}
		}
	})
}

func slicesOf(n int, v float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = v
	}
	return s
}
