package extrapolate

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna"
	"onlinerna/train/safetensors"
)

// space presents the files of a measured series as vectors to package rna: it already has all inner products of
// residuals, and reads elements only for solves that need them.
type space struct {
	series *Series
	spans  []span // of weights, in order
	dim    int
	sum    partial
	exps   []int        // the Gram matrix is of residuals times 2^-exp
	number map[Pair]int // index of a residual
}

var (
	_ rna.Space  = (*space)(nil)
	_ rna.Vector = (*vector)(nil)
)

func newSpace(s *Series, sum partial, exps []int) *space {
	sp := &space{series: s, sum: sum, exps: exps, number: map[Pair]int{}}
	sp.spans = s.spans(func(r Role) bool { return r == Weight })
	for _, part := range sp.spans {
		sp.dim += part.n
	}
	for i, p := range s.opt.Pairs {
		sp.number[p] = i
	}
	return sp
}

// window returns a window with the residuals of the series.
func (s *space) window() (*rna.Window, error) {
	pairs := s.series.opt.Pairs
	if len(pairs) == 0 {
		return nil, errors.New("one file makes no residual: give two or more")
	}
	w, err := rna.NewWindow(s, len(pairs))
	if err != nil {
		return nil, err
	}
	for i, p := range pairs {
		if i > 0 && pairs[i-1].X == p.Y {
			err = w.Push(&vector{s, p.X})
		} else {
			err = w.PushPair(&vector{s, p.Y}, &vector{s, p.X})
		}
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// vector represents the weights of one file.
type vector struct {
	space *space
	file  int
}

func (v *vector) Len() int     { return v.space.dim }
func (v *vector) Close() error { return nil }

func (v *vector) ReadAt(dst []float32, off int) error {
	wide := make([]float64, len(dst))
	err := v.ReadAt64(wide, off)
	for i, x := range wide {
		dst[i] = float32(x)
	}
	return err
}

func (v *vector) ReadAt64(dst []float64, off int) error {
	if off < 0 || off > v.space.dim-len(dst) {
		return fmt.Errorf("elements %d to %d of %d", off, off+len(dst), v.space.dim)
	}
	r := v.space.series.reader()
	at := 0 // of the span
	for _, sp := range v.space.spans {
		lo, hi := max(off, at), min(off+len(dst), at+sp.n)
		if lo < hi {
			part := span{sp.column, sp.off + lo - at, hi - lo}
			if err := r.load(part, []int{v.file}); err != nil {
				return err
			}
			convert.Widen(dst[lo-off:hi-off], r.views[v.file], sp.column.work().Format())
		}
		at += sp.n
	}
	return nil
}

func (s *space) Dim() int { return s.dim }

func (s *space) Bits() int {
	for _, sp := range s.spans {
		if sp.column.DType != safetensors.F64 {
			return 32
		}
	}
	return 64
}

func (s *space) New() (rna.Vector, error) { return &vector{space: s}, nil }

// Store records the file meant. All files are known to be finite, and maxAbs bounds them all.
func (s *space) Store(dst rna.Vector, src rna.Source) (maxAbs float64, err error) {
	from, ok := src.(*vector)
	if !ok || from.space != s {
		return 0, fmt.Errorf("%T is not a file of the series", src)
	}
	if dst != nil {
		dst.(*vector).file = from.file
	}
	return s.sum.maxAbs, nil
}

func (s *space) residual(r rna.Residual) (int, error) {
	x, ok := r.X.(*vector)
	y, ok2 := r.Y.(*vector)
	if ok && ok2 {
		if i, known := s.number[Pair{y.file, x.file}]; known {
			return i, nil
		}
	}
	return 0, errors.New("a residual that is not of the series")
}

// MaxAbs bounds the elements by their norm, which suffices for scaling.
func (s *space) MaxAbs(r rna.Residual) (float64, error) {
	i, err := s.residual(r)
	return math.Ldexp(math.Sqrt(s.sum.gram[i*len(s.exps)+i]), s.exps[i]), err
}

func (s *space) GramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	i, err := s.residual(r)
	if err != nil {
		return err
	}
	for k, q := range with {
		j, err := s.residual(q)
		if err != nil {
			return err
		}
		row[k] = math.Ldexp(s.sum.gram[i*len(s.exps)+j], s.exps[i]+s.exps[j]-r.Exp-q.Exp)
	}
	return nil
}

// Combine combines block by block.
func (s *space) Combine(dst rna.Sink, terms []rna.Term) error {
	narrow, sum, part := make([]float32, spanLen), make([]float64, spanLen), make([]float64, spanLen)
	for off := 0; off < s.dim; off += spanLen {
		n := min(spanLen, s.dim-off)
		clear(sum)
		for _, t := range terms {
			if err := t.Vector.ReadAt64(part[:n], off); err != nil {
				return err
			}
			for i, v := range part[:n] {
				sum[i] += float64(t.Coef * v)
			}
		}
		for i, v := range sum[:n] {
			narrow[i] = float32(v)
		}
		var err error
		if wide, ok := dst.(rna.Sink64); ok && s.Bits() == 64 {
			err = wide.WriteAt64(sum[:n], off)
		} else {
			err = dst.WriteAt(narrow[:n], off)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
