package rna

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/internal/golden"
	"onlinerna/rna/kernel"
)

// State and Restore, every error of a state, and vectors that are not the state's.
func TestGoldenState(t *testing.T) {
	s := &transcript{}
	space, _ := NewHost64(5, 1)
	w := window(t, space, 5)
	push(t, w, path[0], path[1], path[2])
	if err := errors.Join(w.PushResidual(path[3], Slice64{0x1p-500, 0, 1, 0, 0}), w.PushResidual(path[4],
		Slice64{0x1p-500, 0, 0, 0, 0}), w.Push(path[5])); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(w.State())
	s.Line(string(text), err)
	vectors := save(t, w).vectors
	for i := -1; i <= len(vectors); i++ {
		s.Line("vector", i, w.Vector(i) == nil)
	}
	load := func(i int) (Source, error) { return vectors[i], nil }
	restore := func(name string, space Space, change func(st *State), load func(i int) (Source, error)) {
		var st State
		if err := json.Unmarshal(text, &st); err != nil {
			t.Fatal(err)
		}
		change(&st)
		w, err := Restore(space, st, load)
		s.Line(name, err)
		if w == nil {
			return
		}
		s.w = w
		s.state()
		s.Line("  push", w.Push(path[1]))
		s.state()
		s.result("  ", solve(t, w, Options{Lambda: Set(.5)}))
		s.Line("  close", w.Close())
	}
	same := func(*State) {}
	for _, c := range []struct {
		name   string
		change func(st *State)
	}{
		{"same", same},
		{"version", func(st *State) { st.Version = 2 }},
		{"elements", func(st *State) { st.Dim = 6 }},
		{"bits", func(st *State) { st.Bits = 32 }},
		{"n 0", func(st *State) { st.N = 0 }},
		{"n at most", func(st *State) { st.N = MaxColumns }},
		{"n large", func(st *State) { st.N = MaxColumns + 1 }},
		{"n 4", func(st *State) { st.N = 4 }},
		{"n 3", func(st *State) { st.N = 3 }},
		{"vectors -1", func(st *State) { st.Vectors = -1 }},
		{"a vector more", func(st *State) { st.Vectors++ }},
		{"many vectors", func(st *State) { st.Vectors = 10 }},
		{"gram", func(st *State) { st.Gram = st.Gram[1:] }},
		{"tail -2", func(st *State) { st.Tail = -2 }},
		{"tail -1", func(st *State) { st.Tail = -1 }},
		{"tail 0", func(st *State) { st.Tail = 0 }},
		{"tail large", func(st *State) { st.Tail = st.Vectors }},
		{"pushes", func(st *State) { st.Pushes = -1 }},
		{"refused", func(st *State) { st.Refused = -1 }},
		{"y -1", func(st *State) { st.Columns[1].Y = -1 }},
		{"y large", func(st *State) { st.Columns[1].Y = st.Vectors }},
		{"no second", func(st *State) { st.Columns[1].X = -1 }},
		{"second large", func(st *State) { st.Columns[1].X = st.Vectors }},
		{"r large", func(st *State) { st.Columns[2].R = st.Vectors }},
		{"x and r", func(st *State) { st.Columns[1].R = 2 }},
		{"x and r 0", func(st *State) { st.Columns[1].R = 0 }},
		{"x -2", func(st *State) { st.Columns[2].X = -2 }},
		{"x is y", func(st *State) { st.Columns[1].X = st.Columns[1].Y }},
		{"exponent 1101", func(st *State) { st.Columns[1].Exp = 1101 }},
		{"exponent -1101", func(st *State) { st.Columns[1].Exp = -1101 }},
		{"exponent 1100", func(st *State) { st.Columns[1].Exp = 1100 }},
		{"exponent -1100", func(st *State) { st.Columns[1].Exp = -1100 }},
		{"vector unused", func(st *State) { st.Columns[1].X = 0 }},
		{"NaN", func(st *State) { st.Gram[2] = math.NaN() }},
		{"Inf", func(st *State) { st.Gram[9] = math.Inf(-1) }},
		{"square", func(st *State) { st.Gram[2] *= 1 + 1e-8 }},
		{"product", func(st *State) { st.Gram[1] += 1e-7 }},
		{"nearly the square", func(st *State) { st.Gram[2] *= 1 + 1e-10 }},
		{"last product", func(st *State) { st.Gram[8]++ }},
		{"counts", func(st *State) { st.Pushes, st.Refused = 7, 2 }},
		{"another exponent", func(st *State) { st.Columns[3].Exp++ }},
		{"empty", func(st *State) { *st = State{Version: 1, N: 2, Dim: 5, Bits: 64, Tail: -1} }},
		{"one residual", func(st *State) { *st = State{Version: 1, N: 1, Dim: 5, Bits: 64, Tail: -1} }},
		{"only a tail", func(st *State) { *st = State{Version: 1, N: 2, Dim: 5, Bits: 64, Vectors: 1} }},
	} {
		restore(c.name, space, c.change, load)
		if c.name == "square" || c.name == "product" {
			restore(c.name+" in another's memory", struct{ Space }{space}, c.change, load)
		}
	}
	// Large residuals of two lengths, whose products are off by a shade.
	large := window(t, space, 2)
	for k, v := range []Slice64{{300, 0, 0, 0, 0}, {-200, 5000, 0, 0, 1}} {
		vectors[2*k], vectors[2*k+1] = make(Slice64, 5), v
		if err := large.PushResidual(vectors[2*k], v); err != nil {
			t.Fatal(err)
		}
	}
	for at := range 3 {
		for _, off := range []float64{1e-10, 8e-10, 2e-9} {
			st := large.State()
			st.Gram[at] *= 1 + off
			if at == 1 {
				st.Gram[1] = -60000 + off*300*5000
			}
			for _, space := range []Space{space, struct{ Space }{space}} {
				w, err := Restore(space, st, load)
				s.Line("large", at, off, w != nil, err)
			}
		}
	}
	vectors = save(t, w).vectors
	restore("no space", nil, same, load)
	restore("no vectors", space, same, nil)
	for k := range vectors {
		restore("a vector that fails", space, same, func(i int) (Source, error) {
			if i == k {
				return nil, errRemote
			}
			return vectors[i], nil
		})
	}
	restore("a short vector", space, same, func(i int) (Source, error) { return vectors[i][:5-i], nil })
	restore("NaN", space, same, func(i int) (Source, error) { return Slice64{1, 2, math.NaN(), 0, 0}, nil })
	restore("nil", space, same, func(i int) (Source, error) { return nil, nil })
	restore("other vectors", space, same, func(i int) (Source, error) { return path[i%len(path)], nil })
	for _, method := range []string{"New", "Store", "GramRow"} {
		for calls := range 3 {
			restore(fmt.Sprint(method, " fails after ", calls), &faulty{Space: space, method: method, calls: calls}, same, load)
		}
	}
	golden.Numbers(t, "state.txt", s.String())
}

// A twin is one of two processes of a divided space with the same parts, the elements from one on. It may fail.
type twin struct {
	*halves
	fail  string
	calls int // of Gather, before it fails
	sizes []int
}

func (h *twin) Part(v Vector) (Vector, error) {
	if h.fail == "part" {
		return nil, errFaulty
	}
	return h.halves.Part(v)
}

func (h *twin) Gather(own []float64, failed error) ([][]float64, error) {
	h.sizes = append(h.sizes, len(own))
	if h.calls--; h.fail == "gather" && h.calls < 0 {
		return nil, errors.Join(errFaulty, failed)
	}
	if h.fail == "short" {
		return [][]float64{slices.Clone(own), own[1:]}, failed
	}
	return [][]float64{slices.Clone(own), own}, failed
}

// A divided space of two processes that have the same part, or none, and failures.
func TestGoldenDivided(t *testing.T) {
	const d = 5
	s := &transcript{}
	for _, from := range []int{0, 1, 4, d} {
		for _, fail := range []string{"", "part", "gather", "short"} {
			whole, _ := NewHost64(d, 1)
			h := &twin{halves: &halves{Space: whole, from: from}, fail: fail}
			if from < d {
				h.own, _ = NewHost64(d-from, 1)
			}
			s.w = window(t, h, 4)
			push(t, s.w, path[0], path[1], path[2], path[3])
			if err := s.w.PushResidual(path[4], Slice64{1, 2, 0, 0, 3}); err != nil {
				t.Fatal(err)
			}
			s.Line("from element", from, fail)
			p, err := s.w.QR(2)
			s.Line("  QR", err)
			if err == nil {
				s.Line(" ", p.norms, p.Norm())
				for _, v := range p.noise {
					s.Line("  noise", golden.Rough(v, 1e-12))
				}
			}
			if fail == "short" {
				continue
			}
			var rs []Residual
			for _, c := range s.w.columns {
				rs = append(rs, c.residual())
			}
			g, err := Gram(h, rs)
			s.Line("  gram", err)
			if err == nil {
				s.Line(" ", g.RawSymmetric().Data)
			}
			g, err = Gram(h, nil)
			s.Line("  of none", g == nil, err)
			for _, lambda := range []float64{0, 1e-14} {
				h.calls = 1
				res, err := s.w.Solve(Options{Lambda: Set(lambda)})
				s.result("  lambda", res)
				s.Line(" ", err)
			}
			sums, err := s.w.exact(s.w.columns)
			s.Line("  exact", err)
			for _, v := range sums {
				s.Line("   ", v.Hi, v.Lo)
			}
			vectors := save(t, s.w).vectors
			_, err = Restore(h, s.w.State(), func(i int) (Source, error) { return vectors[i], nil })
			s.Line("  restore", err, "numbers gathered", h.sizes)
		}
	}
	golden.Numbers(t, "divided.txt", s.String())
}

// Vectors of several blocks and stages in all spaces, through sources and sinks of all kinds.
func TestGoldenLongVectors(t *testing.T) {
	spans := map[string]string{}
	for name, create := range constructors(t) {
		s := &golden.Script{}
		space, err := create(9, 1)
		if err != nil {
			t.Fatal(err)
		}
		s.Line(name)
		for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000} {
			switch s64 := space.(type) {
			case *storage[float32]:
				s.Line("span", n, s64.span(n))
			case *storage[float64]:
				s.Line("span", n, s64.span(n))
			}
		}
		spans[name], s = s.String(), &golden.Script{}
		for _, d := range []int{blockLen - 1, blockLen, blockLen + 1, 2 * blockLen, stageLen + 3} {
			space, err := create(d, 2)
			if err != nil {
				t.Fatal(err)
			}
			v := make(Slice64, d)
			var vs []Vector
			for k := range 3 {
				for i := range v {
					v[i] = float64((i*(k+2))%17 - 8)
				}
				v[d-1-k] = float64(100 + k)
				for _, src := range []Source{v, &remote{v: v}, &remote64{remote{v: v}}}[k : k+1] {
					to, err := space.New()
					if err != nil {
						t.Fatal(err)
					}
					most, err := space.Store(to, src)
					s.Line(d, "stored", most, err)
					most, err = space.Store(nil, src)
					s.Line("  checked", most, err)
					vs = append(vs, to)
				}
			}
			row := make([]float64, 3)
			with := []Residual{{X: vs[1], Y: vs[2]}, {X: vs[2], Exp: 3}, {X: vs[0], Y: vs[1], Exp: -2}}
			s.Line("  products", space.GramRow(row, with[2], with), row)
			s.Line("  of another", space.GramRow(row, Residual{X: vs[0]}, with), row)
			s.Line("  too few", space.GramRow(row[:2], with[2], with))
			s.Line("  none", space.GramRow(row[:0], with[2], nil), space.GramRow(row[:1], Residual{}, with[:1]),
				space.GramRow(row[:1], with[0], []Residual{{}}))
			for _, r := range with {
				most, err := space.MaxAbs(r)
				s.Line("  largest", most, err)
			}
			_, err = space.MaxAbs(Residual{})
			s.Line("  of none", err)
			g, err := Gram(space, with)
			s.Line("  gram", g.RawSymmetric().Data, err)
			foreign, errForeign := Gram(struct{ Space }{space}, with)
			s.Line("  in another's memory", errForeign, mat.Equal(foreign, g))
			_, errForeign = Gram(struct{ Space }{space}, []Residual{with[0], {}})
			s.Line("  of one that is empty", errForeign)
			gramSums = 5 // by rows
			rows, errRows := Gram(space, with)
			gramSums = 8 << 20
			s.Line("  by rows", errRows, mat.Equal(rows, g))
			g, err = Gram(space, nil)
			s.Line("  of none", g == nil, err)
			_, err = Gram(space, make([]Residual, 1))
			s.Line("  of an empty one", err)
			terms := []Term{{2, vs[0]}, {-1, vs[1]}, {.5, vs[2]}}
			far, far64 := &remote{v: make(Slice64, d)}, &remote64{remote{v: make(Slice64, d)}}
			to32, to64 := make(Slice32, d), make(Slice64, d)
			for _, dst := range []Sink{far, far64, to32, to64} {
				s.Line("  combined", space.Combine(dst, terms))
			}
			sums := make([]float64, 4)
			for i := range d {
				a := float64(i%5 + 1)
				sums[0] += a * far.v[i]
				sums[1] += a * far64.v[i]
				sums[2] += a * float64(to32[i])
				sums[3] += a * to64[i]
			}
			s.Line(" ", sums, []float64(to64[d-4:]))
			for _, k := range []int{0, blockLen - 3, d - 2} {
				for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
					v[k+1] = bad
					_, err = space.Store(vs[0], v)
					_, far := space.Store(nil, &remote{v: v})
					s.Line("  refused", err, far)
					v[k+1] = 0
				}
			}
			_, err = space.Store(vs[0], &remote{v: v, failAt: 2})
			s.Line("  fails", err, space.Combine(&remote{v: v, failAt: 2}, terms))
			_, err = space.Store(vs[0], v[1:])
			s.Line("  short", err, space.Combine(to32[1:], terms))
			part := make([]float64, 3)
			part32 := make([]float32, 3)
			for _, off := range []int{-1, 0, d - 4, d - 3, d - 2} {
				s.Line("  read", off, vs[2].ReadAt64(part, off), part, vs[2].ReadAt(part32, off), fmt.Sprint(part32), vs[2].Len())
			}
			whole, whole32 := make(Slice64, d), make(Slice32, d)
			errs := []error{vs[2].ReadAt64(whole, 0), vs[2].ReadAt(whole32, 0)}
			clear(sums)
			for i := range d {
				sums[0] += float64(i%5+1) * whole[i]
				sums[1] += float64(i%5+1) * float64(whole32[i])
			}
			s.Line("  whole", errs[0], errs[1], sums[:2], whole[d-1], whole32[d-1])
			for _, v := range vs {
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		golden.Numbers(t, "long-"+name[:7]+".txt", s.String())
	}
	all := ""
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		all += spans[name]
	}
	golden.Numbers(t, "long-spans.txt", all)
}

// A lost vector cannot be read.
type lost struct{ Slice64 }

func (lost) ReadAt64([]float64, int) error { return errRemote }
func (lost) Close() error                  { return nil }

// Residuals are read by spans of rows, with the rounding of their differences, and errors of vectors come through.
func TestGoldenSpans(t *testing.T) {
	s := &golden.Script{}
	for _, c := range []struct{ d, lo, hi, span int }{{23, 2, 19, 5}, {23, 0, 23, 50}, {6000, 7, 5600, 2500},
		{9, 4, 4, 3}} {
		space, _ := NewHost64(c.d, 1)
		var reads []normed
		for k := range 3 {
			x := make(Slice64, c.d)
			for i := range x {
				x[i] = float64((i*(k+3))%13) + math.Ldexp(float64(i%7+k), -58*(k%2))
			}
			v, _ := space.New()
			if _, err := space.Store(v, x); err != nil {
				t.Fatal(err)
			}
			reads = append(reads, normed{vector: v, exp: 5 - k})
		}
		pairs := []kernel.Pair{{X: 0, Y: 1}, {X: 1, Y: -1, Exp: 1}, {X: 2, Y: 1, Exp: -1}, {X: 0, Y: 2, Exp: 3}}
		s.Line("rows", c.lo, "to", c.hi, "of", c.d, "by", c.span)
		err := differences(reads, pairs, c.lo, c.hi, c.span, func(high, low [][]float64) {
			for k := range high {
				sums := [2]float64{}
				for i, v := range high[k] {
					sums[0] += v * float64(i%3+1)
				}
				for i, v := range low[k] {
					sums[1] += v * float64(i%3+1)
				}
				s.Line("  residual", k, len(high[k]), sums[0], "low", low[k] != nil, golden.Rough(sums[1], 1e-6))
			}
		})
		s.Line(" ", err)
		for _, rows := range []int{4, 700} {
			f := foldSpans(reads, pairs, c.lo, c.hi, c.span, rows)
			s.Line("  norms", f.norms, f.err)
			for j := range pairs {
				norm := 0.
				for i := range j + 1 {
					norm = math.Hypot(norm, f.factor.At(i, j))
				}
				s.Line("  column", j, norm, math.Abs(f.factor.At(j, j)))
			}
		}
		reads[1].vector = lost{make(Slice64, c.d)}
		s.Line("  lost", differences(reads, pairs, c.lo, c.hi, c.span, nil),
			foldSpans(reads, pairs, c.lo, c.hi, c.span, 4).err)
	}
	space, _ := NewHost64(4, 1)
	for k := range 3 {
		w := window(t, space, 3)
		for i := range 3 {
			if err := w.PushResidual(path[i][:4], Slice64{1, 1, float64(i) * 0x1p-30, 0}); err != nil {
				t.Fatal(err)
			}
		}
		w.columns[k].r.vector = lost{make(Slice64, 4)}
		for _, o := range []Options{{Lambda: Set(1e-14)}, {Lambda: Set(0)}, {Tau: Set(1)}, {Lambda: Set(1)}} {
			res, err := w.Solve(o)
			s.Line("lost", k, fmt.Sprint(o), res.Status, res.Detail, err)
		}
		_, err := w.QR(0)
		s.Line("  QR", err)
		_, err = w.Candidates(SearchOptions{Lambdas: []float64{1, 0}})
		s.Line("  candidates", err)
	}
	golden.Numbers(t, "spans.txt", s.String())
}
