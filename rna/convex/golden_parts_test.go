package convex

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"onlinerna/internal/golden"
	"onlinerna/rna"
)

// Codes, strips, momenta and blocks of rows.
func TestGoldenParts(t *testing.T) {
	s := &golden.Script{}
	nan := math.NaN()
	for _, v := range []float64{0, 1, -3, .5, 1. / 3, -2. / 7, 32767, 32768, 1. / 32767, 1. / 32768, 1. / 40000,
		255. / 256, math.Pi,
		1e-9, nan, math.Inf(1), 12345. / 678} {
		s.Line("denominator", v, denominator(v))
	}
	for _, c := range [][2]float64{{1, 1}, {4, 6}, {7, 0}, {32767, 1}, {32767, 2}, {181, 181}, {200, 201}, {128, 256},
		{16384, 3}} {
		s.Line("multiple", c[:], multiple(c[0], c[1]))
	}
	for _, c := range []struct {
		name string
		at   func(i, j int) float64
	}{
		{"integers", func(i, j int) float64 { return float64(i*j%9 - 4) }},
		{"fractions", func(i, j int) float64 { return float64(i%(j+2)) / float64(j+1) }},
		{"steps that grow", func(i, j int) float64 { return 1 / float64(i%4+1) }},
		{"too fine", func(i, j int) float64 { return 1 / float64(i+1) }},
		{"too large", func(i, j int) float64 { return float64(i * 40000) }},
		{"large, then fine", func(i, j int) float64 {
			if i == 5 {
				return 1. / 1024
			}
			return 32767
		}},
		{"irrational", func(i, j int) float64 { return math.Sqrt(float64(i)) }},
	} {
		values := make([]float64, 7*3)
		for i := range 7 {
			for j := range 3 {
				values[i*3+j] = c.at(i, j)
			}
		}
		m, err := NewDense(7, 3, values)
		if err != nil {
			t.Fatal(err)
		}
		codes := m.encode()
		s.Line(c.name, codes != nil)
		if codes != nil {
			s.Line("  ", codes.stride, codes.steps, fmt.Sprint(codes.values))
		}
	}
	for _, c := range [][2]int{{1024, 32}, {1023, 32}, {1100, 31}, {1000, 33}, {151, 217}, {600, 64}, {512, 64},
		{511, 64}, {2000, 16}, {1100, 30}, {1093, 30}, {40000, 1}} {
		m := integers(t, c[0], c[1]).X
		s.Line("coded", c[:], m.coded() != nil)
	}
	for _, c := range []struct {
		n, d    int
		density float64
	}{{300, 700, .2}, {300, 100, 1}, {400, 1100, .1}, {40, 600, .2}, {3000, 90, .125}, {3300, 64, .26}, {64, 16385, .05},
		{70, 16384, .05}} {
		_, sparse := twins(t, c.n, c.d, c.density)
		m := sparse.X
		team := newTeam(m)
		s.Line("rows", c.n, c.d, m.NonZeros(), "blocks", fmt.Sprint(team.bounds), "serial", team.serial)
		strip := m.stripped(team)
		if strip == nil {
			continue
		}
		counts, columns := 0, 0
		for _, v := range strip.counts {
			counts += int(v)
		}
		for k, v := range strip.columns {
			columns += int(v) * (k%5 + 1)
		}
		s.Line("  strips", strip.width, strip.number, strip.tile, "size", strip.size(), "steps", strip.steps != nil,
			len(strip.values), len(strip.columns), columns, len(strip.counts), counts, strip.starts[:strip.number])
	}
	for _, n := range []int{2048, 2049} { // rows of as many values as strips want, at the least
		start, index := make([]int, n+1), make([]int32, 16*2048)
		for i := range index {
			index[i] = int32(i % 16 * 4)
		}
		for i := range n + 1 {
			start[i] = min(16*i, len(index))
		}
		m, err := NewSparse(n, 64, start, index, make([]float64, len(index)))
		if err != nil {
			t.Fatal(err)
		}
		s.Line("stripped", n, m.stripped(newTeam(m)) != nil)
	}
	for _, c := range []struct{ alpha, q float64 }{{1, 0}, {.5, .25}, {.1, .01}, {1, .5}, {.2, .5}} {
		next := momentumFrom(c.alpha, c.q)
		s.Line("momenta", c.alpha, c.q, []float64{next(), next(), next(), next(), next()})
	}
	for _, c := range [][3]float64{{4, 4, 0}, {.1, 4, .1}, {1, 4, .1}, {.01, 1, .5}} {
		s.Line("estimate", c[:], estimateStep(c[0], c[1], c[2]))
	}
	for _, c := range []struct{ diagonal, off []float64 }{{[]float64{3}, nil}, {[]float64{1, 2}, []float64{.5}},
		{[]float64{1, 2, -1}, []float64{2, 3}}} {
		s.Line("largest", c.diagonal, c.off, largest(c.diagonal, c.off))
	}
	for n := 1; n < 12; n++ {
		m, _ := NewDense(n, 3, make([]float64, 3*n))
		for i := range n {
			m.values[3*i+i%3] = float64(i + 1)
		}
		s.Line("norm", n, m.Norm2())
	}
	for _, n := range []int{1, 31, 64, 100, 600} {
		for _, d := range []int{1, 4, 30, 600} {
			m, _ := NewDense(n, d, make([]float64, n*d))
			team := newTeam(m)
			s.Line("team", n, d, fmt.Sprint(team.bounds), team.serial)
		}
	}
	golden.Numbers(t, "parts.txt", s.String())
}

// A trial gives the same from one pass over linear rows as from separate evaluations: values, retries and next points.
func TestGoldenTrials(t *testing.T) {
	s := &golden.Script{}
	inOrder(smallRisks(t), func(name string, r *Risk) {
		p := problem(t, r)
		d := p.Dim
		for _, beta := range []float64{0, .25} {
			for _, online := range []bool{false, true} {
				for _, e := range []evaluator{newTogether(p.linear), &separate{p: p}} {
					y, g, old := make([]float64, d), make([]float64, d), make([]float64, d)
					for j := range y {
						y[j] = float64(j%3-1) / 8
					}
					copy(old, y)
					s.Line(fmt.Sprintf("%s %T", name, e), beta, online, "start", e.start(y, g), g)
					for round := range 5 {
						step, extrapolated := make([]float64, d), make([]float64, d)
						for j := range y {
							step[j] = y[j] - g[j]/4
							extrapolated[j] = y[j] - g[j] + float64(j%2)/16
						}
						tr := &trial{beta: beta, online: online, step: step, shares: []float64{.5, .125}[:round%3]}
						if round > 0 {
							tr.extrapolated = extrapolated
						}
						if round > 1 && beta > 0 {
							tr.searched = combined(1/(1+beta), extrapolated, beta/(1+beta), old)
						}
						e.try(tr)
						s.Line("  ", round, tr.fstep, tr.fextrapolated, tr.fsearched)
						shared := func(a float64) []float64 { return combined(a, step, 1-a, y) }
						for k, share := range tr.shares {
							s.Line("   retry", e.retry(tookShare+choice(k), shared(share), share))
						}
						s.Line("   other", e.retry(tookOther, shared(.375), .375))
						c := []choice{tookStep, tookShare, tookExtrapolated, tookOther, tookStep}[round]
						z := [][]float64{step, shared(.5), tr.extrapolated, shared(.375), step}[round]
						if c == tookExtrapolated && tr.searched != nil {
							z = tr.searched
						}
						y = combined(1+beta, z, -beta, old)
						copy(old, z)
						s.Line("   next", e.next(c, y, g), g)
					}
				}
			}
		}
	})
	golden.Numbers(t, "trials.txt", s.String())
}

// A vector of float32 values, and one that fails.
type narrow struct {
	v      []float32
	failed error
}

func (n *narrow) Len() int { return len(n.v) }

func (n *narrow) ReadAt(dst []float32, off int) error {
	copy(dst, n.v[off:])
	return n.failed
}

func (n *narrow) WriteAt(src []float32, off int) error {
	copy(n.v[off:], src)
	return n.failed
}

// The space of short vectors, with vectors of all kinds and its errors.
func TestGoldenSpace(t *testing.T) {
	s := &golden.Script{}
	failed := errors.New("lost")
	for _, d := range []int{1, 2, 5} {
		space := newSpace(d)
		s.Line("space", space.Dim(), space.Bits())
		var vs []rna.Vector
		for k, src := range []rna.Source{rna.Slice64{1, -2, 3, 4, -5.5}[:d], &narrow{v: []float32{.5, 7, -8, 0, 1}[:d]},
			rna.Slice32{2, 1, 0, -1, 9}[:d]} {
			v, err := space.New()
			if err != nil {
				t.Fatal(err)
			}
			most, err := space.Store(v, src)
			s.Line("stored", k, most, err)
			most, err = space.Store(nil, src)
			s.Line("  checked", most, err)
			vs = append(vs, v)
		}
		for _, bad := range []rna.Source{rna.Slice64{math.NaN(), math.Inf(1), 0, 0, 0}[:d],
			rna.Slice64{1, 2, 3, 4, math.Inf(-1)}[5-d:],
			&narrow{make([]float32, d), failed}, make(rna.Slice64, d+1)} {
			most, err := space.Store(vs[0], bad)
			s.Line("refused", most, err)
		}
		other, _ := newSpace(d + 1).New()
		foreign, _ := rna.NewHost64(d, 1)
		alien, _ := foreign.New()
		row := make([]float64, 2)
		for _, r := range []rna.Residual{{X: vs[0]}, {X: vs[0], Y: vs[1]}, {X: vs[0], Y: vs[2], Exp: 2}, {X: vs[1], Exp: -3},
			{X: other}, {X: alien},
			{X: vs[0], Y: other}} {
			most, err := space.MaxAbs(r)
			s.Line("largest", most, err)
			err = space.GramRow(row, r, []rna.Residual{{X: vs[2], Y: vs[1]}, r})
			s.Line("  products", row, err)
			s.Line("  of it", space.GramRow(row[:1], rna.Residual{X: vs[0]}, []rna.Residual{r}), row[:1])
		}
		s.Line("too few", space.GramRow(row, rna.Residual{X: vs[0]}, nil))
		terms := []rna.Term{{Coef: 2, Vector: vs[0]}, {Coef: -.5, Vector: vs[1]}, {Coef: 1, Vector: vs[2]}}
		to64, to32, far := make(rna.Slice64, d), make(rna.Slice32, d), &narrow{v: make([]float32, d)}
		s.Line("combined", space.Combine(to64, terms), []float64(to64), space.Combine(to32, terms), fmt.Sprint(to32),
			space.Combine(far, terms), fmt.Sprint(far.v))
		s.Line("  again", space.Combine(to64, terms[:1]), []float64(to64), space.Combine(to32, nil), fmt.Sprint(to32))
		s.Line("  errors", space.Combine(make(rna.Slice64, d+1), terms), space.Combine(&narrow{far.v, failed}, terms),
			space.Combine(to64, []rna.Term{{Coef: 1, Vector: other}}), space.Combine(to64, []rna.Term{{Coef: 1,
				Vector: alien}}))
		for _, x := range [][]float64{nil, {-3}, {1, -4}, {-7, 2, 3}, {0, 0, math.NaN()}, {math.Inf(-1), 1}, {math.NaN(), 9},
			{2, 1, -5}} {
			s.Line("  maximum", x, maxAbs(x))
		}
		s.Line(vs[0].Close(), vs[0].Len())
	}
	for _, d := range []int{1, shortVectors, shortVectors + 1} {
		w, err := newWindow(d, 2)
		s.Line("window", d, fmt.Sprintf("%T", w.Space()), w.Cap(), err)
	}
	golden.Numbers(t, "space.txt", s.String())
}
