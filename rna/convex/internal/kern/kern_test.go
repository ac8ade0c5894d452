package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
)

// band is the number of guard elements around results, which kernels must not touch.
const band = 8

var shapes = []struct{ d, stride, rows int }{
	{1, 1, 1}, {3, 5, 2}, {4, 4, 4}, {7, 7, 5}, {8, 8, 8}, {9, 16, 7}, {12, 12, 3}, {17, 17, 16}, {61, 61, 9},
	{501, 501, 6}, {512, 512, 4},
}

func random(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = rng.NormFloat64()
	}
	return out
}

// guarded is x with NaN around.
func guarded(x []float64) (all, inner []float64) {
	all = make([]float64, len(x)+2*band)
	for i := range all {
		all[i] = math.NaN()
	}
	inner = all[band : band+len(x)]
	copy(inner, x)
	return all, inner
}

func intact(t *testing.T, what string, all []float64) {
	t.Helper()
	for i := range band {
		if !math.IsNaN(all[i]) || !math.IsNaN(all[len(all)-1-i]) {
			t.Errorf("%s: wrote outside", what)
			return
		}
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func each(t *testing.T, f func(t *testing.T, s *Set)) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) { f(t, For(l)) })
	}
}

func TestRows(t *testing.T) {
	each(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, c := range shapes {
			for n := 1; n <= Most; n++ {
				what := fmt.Sprintf("%v, %d vectors", c, n)
				width, pitch := Padded(c.d), c.rows+3
				_, x := guarded(random(rng, (c.rows-1)*c.stride+c.d))
				w := make([]float64, n*width)
				for k := range n {
					copy(w[k*width:k*width+c.d], random(rng, c.d))
				}
				all, out := guarded(make([]float64, (n-1)*pitch+c.rows))
				s.Dots[n-1](&out[0], &x[0], &w[0], c.d, c.stride, c.rows, width, pitch)
				intact(t, what, all)
				a := random(rng, len(out))
				all, dst := guarded(w)
				s.AddRows[n-1](&dst[0], &x[0], &a[0], c.d, c.stride, c.rows, width, pitch, c.rows*c.stride)
				intact(t, what, all)
				for k := range n {
					for i := range c.rows {
						want := 0.0
						for j := range c.d {
							want += x[i*c.stride+j] * w[k*width+j]
						}
						near(t, what+", product", out[k*pitch+i], want, 1e-13*float64(c.d))
					}
					for j := range width {
						want := w[k*width+j]
						for i := range c.rows {
							if j < c.d {
								want += a[k*pitch+i] * x[i*c.stride+j]
							}
						}
						near(t, what+", sum", dst[k*width+j], want, 1e-13)
					}
				}
			}
		}
	})
}

func TestCoded(t *testing.T) {
	each(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(9, 1))
		for _, c := range []struct{ d, stride, rows int }{{32, 32, 1}, {32, 64, 4}, {96, 96, 7}, {64, 64, 9},
			{512, 544, 6}} {
			for n := 1; n <= Most; n++ {
				what, pitch := fmt.Sprintf("%v, %d vectors", c, n), c.rows+3
				x := make([]uint16, (c.rows-1)*c.stride+c.d)
				for i := range c.rows {
					for j := range c.d {
						Encode(x[i*c.stride:], j, int16(rng.Uint32()))
					}
				}
				w := random(rng, n*c.d)
				all, out := guarded(make([]float64, (n-1)*pitch+c.rows))
				s.CodedDots[n-1](&out[0], &x[0], &w[0], c.d, c.stride, c.rows, c.d, pitch)
				intact(t, what, all)
				a := random(rng, len(out))
				all, dst := guarded(w)
				s.CodedAddRows[n-1](&dst[0], &x[0], &a[0], c.d, c.stride, c.rows, c.d, pitch)
				intact(t, what, all)
				for k := range n {
					want := append([]float64(nil), w[k*c.d:(k+1)*c.d]...)
					for i := range c.rows {
						product := 0.0
						for j := range c.d {
							v := Decode(x[i*c.stride:], j)
							product += v * w[k*c.d+j]
							want[j] += a[k*pitch+i] * v
						}
						near(t, what+", product", out[k*pitch+i], product, 1e-8)
					}
					for j := range want {
						near(t, what+", sum", dst[k*c.d+j], want[j], 1e-8)
					}
				}
			}
		}
	})
}

func TestSparse(t *testing.T) {
	each(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(3, 4))
		const d, rows, pitch = 30, 9, 11
		start, index, values := []int{0, 0}, []int32(nil), []float64(nil) // the first row is empty
		for i := 1; i < rows; i++ {
			for j := range d {
				if rng.IntN(8) < i {
					index, values = append(index, int32(j)), append(values, rng.NormFloat64())
				}
			}
			start = append(start, len(values))
		}
		w, a := random(rng, Quad*d), random(rng, 3*pitch+rows)
		all, out := guarded(make([]float64, 3*pitch+rows))
		const skip = 2 // rows
		s.SparseDots(&out[0], &values[0], &index[0], &start[0], &w[0], rows, pitch)
		intact(t, "products", all)
		all, dst := guarded(w)
		s.SparseAddRows(&dst[0], &values[0], &index[0], &start[skip], &a[0], rows-skip, pitch)
		intact(t, "sums", all)
		for k := range Quad {
			want := make([]float64, d)
			for j := range want {
				want[j] = w[Quad*j+k]
			}
			for i := range rows {
				product := 0.0
				for p := start[i]; p < start[i+1]; p++ {
					product += values[p] * w[Quad*int(index[p])+k]
					if i >= skip {
						want[index[p]] += a[k*pitch+i-skip] * values[p]
					}
				}
				near(t, "product", out[k*pitch+i], product, 1e-13)
			}
			for j := range want {
				near(t, "sum", dst[Quad*j+k], want[j], 1e-13)
			}
		}
	})
}

// Losses are right to some units of the last place for all margins, and NaN where a margin is.
func TestLosses(t *testing.T) {
	each(t, func(t *testing.T, s *Set) {
		margins := []float64{0, 1e-300, 1e-9, 0.1, 0.3465, 0.35, 0.8813, 0.8815, 1, 2, 5, 36, 37, 40, 100, 700, 708,
			1e4, 1e300}
		for v := 0.01; v < 60; v *= 1.01 {
			margins = append(margins, v)
		}
		worst := 0.0
		for _, m := range margins {
			for _, sign := range []float64{1, -1} {
				for _, y := range []float64{1, -1} {
					z, slope := sign*m*y, math.NaN()
					value := s.LogisticSlopes(&slope, &z, &z, &y, 1, 0, 1)
					if alone := s.Logistic(&z, &z, &y, 1, 0, 1); alone != value {
						t.Errorf("margin %v: %v with slopes, %v without", sign*m, value, alone)
					}
					wantValue, wantSlope := logistic(z, y)
					for _, p := range [][2]float64{{value, wantValue}, {slope, wantSlope}} {
						if p[0] == p[1] || math.Abs(p[0]-p[1]) < 1e-300 {
							continue
						}
						worst = math.Max(worst, math.Abs(p[0]/p[1]-1))
					}
				}
			}
		}
		if worst > 1e-15 {
			t.Errorf("relative error of %.2g", worst)
		}
		rng := rand.New(rand.NewPCG(5, 6))
		for rows := 1; rows < 20; rows++ {
			z, old, y := random(rng, rows), random(rng, rows), random(rng, rows)
			_, z = guarded(z)
			_, old = guarded(old)
			for i := range y {
				y[i] = math.Copysign(1, y[i])
			}
			all, slopes := guarded(make([]float64, rows))
			for name, c := range map[string]struct {
				got  float64
				loss func(z, y float64) (float64, float64)
			}{
				"logistic": {s.LogisticSlopes(&slopes[0], &z[0], &old[0], &y[0], 1.5, -0.5, rows), logistic},
				"squares":  {s.Squares(&z[0], &old[0], &y[0], 1.5, -0.5, rows), squares},
			} {
				want := 0.0
				for i := range rows {
					v, slope := c.loss(1.5*z[i]-0.5*old[i], y[i])
					want += v
					if name == "logistic" {
						near(t, "slope", slopes[i], slope, 1e-15)
					}
				}
				near(t, name, c.got, want, 1e-14*float64(rows))
			}
			intact(t, "slopes", all)
			s.SquaresSlopes(&slopes[0], &z[0], &old[0], &y[0], 1, 0, rows)
			intact(t, "slopes", all)
			near(t, "slope", slopes[rows-1], z[rows-1]-y[rows-1], 0)
			z[rows-1] = math.NaN()
			if v := s.LogisticSlopes(&slopes[0], &z[0], &old[0], &y[0], 1, 0, rows); !math.IsNaN(v) ||
				!math.IsNaN(slopes[rows-1]) {
				t.Errorf("NaN gives %v with slope %v", v, slopes[rows-1])
			}
		}
	})
}

func TestStreams(t *testing.T) {
	each(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, d := range []int{1, 3, 4, 7, 8, 9, 15, 16, 31, 61, 64, 101} {
			p, q, r := random(rng, d), random(rng, d), random(rng, d)
			near(t, "dot", s.Dot(&p[0], &q[0], d), dot(p, q), 1e-14*float64(d))
			// Both sets of operands begin alike.
			var all [2][5][]float64
			var inner [2][5][]float64
			for k := range 5 {
				x := random(rng, d)
				for i := range 2 {
					all[i][k], inner[i][k] = guarded(x)
				}
			}
			for i, set := range []*Set{s, &plain} {
				a := func(k int) *float64 { return &inner[i][k][0] }
				set.Combine2(a(0), &p[0], 0.9, -0.1, d)
				set.Combine3(a(0), &p[0], &q[0], 0.9, -0.1, 0.3, d)
				set.SAGAStep(a(1), a(2), &r[0], 0.9, 0.2, 0.7, -0.3, d)
				set.Mix(a(3), a(0), a(1), a(2), 0.3, 0.5, 0.2, d)
				set.KatyushaStep(a(0), a(1), a(2), a(3), a(4), 0.3, 0.9, 0.2, 0.8, 0.01, d)
			}
			for k := range 5 {
				intact(t, "stream", all[0][k])
				for j := range d {
					near(t, fmt.Sprintf("d = %d, operand %d", d, k), inner[0][k][j], inner[1][k][j], 1e-14)
				}
			}
		}
	})
}
