package rna

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna/internal/parallel"
	"onlinerna/rna/internal/qr"
)

const (
	// gramFloor is the λ below which a Gram matrix, whose rounding moves c by some 1e-16/λ, is
	// not asked.
	gramFloor = 1e-12

	// foldRows rows of the residuals are reflected at a time, at least.
	foldRows = blockLen / 4

	// readElements is about how many elements of all vectors a worker reads at a time.
	readElements = 1 << 20

	// foldGroups is into how many parts the rows are cut, each with a factor of its own. It is no
	// matter of the machine, since it shows in the rounding.
	foldGroups = 32
)

// QR decomposes the residuals of the newest k columns, or of all for k = 0, themselves
// rather than their Gram matrix, which squares the condition number: coefficients for small λ have twice
// the digits, and λ = 0 an answer where the residuals are dependent. It reads each vector once and takes
// O(N² d), where [Window.Spectrum] takes O(N³). [Window.Solve] does so by
// itself where λ calls for it.
//
// An error is one of reading the vectors.
func (w *Window) QR(k int) (*Spectrum, error) {
	cols := w.newest(k)
	exps := make([]int, len(cols))
	for j, c := range cols {
		exps[j] = c.exp
	}
	f, err := w.triangle(cols)
	if err != nil {
		return nil, err
	}
	return factorQR(f, exps), nil
}

// triangle returns the triangular factor of the columns, each times 2^-exp.
func (w *Window) triangle(cols []column) (*qr.Factor, error) {
	n := len(cols)
	var vectors []Vector
	numbers := map[*snapshot]int{}
	number := func(s *snapshot) int {
		i, known := numbers[s]
		if !known {
			i = len(vectors)
			numbers[s] = i
			vectors = append(vectors, s.vector)
		}
		return i
	}
	pairs := make([]pair, n)
	for j, c := range cols {
		if c.r != nil {
			pairs[j] = pair{x: number(c.r), y: -1, exp: c.exp}
		} else {
			pairs[j] = pair{x: number(c.x), y: number(c.y), exp: c.exp}
		}
	}
	dim := w.space.Dim()
	rows := max(foldRows, 2*n)
	span := rows * min(max(readElements/(rows*(len(vectors)+1)), 1), 32)
	group := (dim + foldGroups*span - 1) / (foldGroups * span) * span
	factors := make([]*qr.Factor, (dim+group-1)/group)
	errs := make([]error, len(factors))
	workers := 1
	if s, ok := w.space.(interface{ threads() int }); ok {
		workers = s.threads()
	}
	parallel.For(len(factors), workers, func(_, g int) {
		factors[g] = qr.New(n)
		lo, hi := g*group, min((g+1)*group, dim)
		errs[g] = foldSpans(factors[g], vectors, pairs, lo, hi, span, rows)
	})
	whole := qr.New(n)
	for g, f := range factors {
		if errs[g] != nil {
			return nil, fmt.Errorf("rna: residuals: %w", errs[g])
		}
		whole.Merge(f)
	}
	return whole, nil
}

// foldSpans folds the rows [lo, hi) of the residuals into f.
func foldSpans(f *qr.Factor, vectors []Vector, pairs []pair, lo, hi, span, rows int) error {
	span = min(span, hi-lo)
	views := make([][]float64, len(vectors))
	for i := range views {
		views[i] = make([]float64, span)
	}
	fold := make([][]float64, len(pairs))
	for j := range fold {
		fold[j] = make([]float64, rows)
	}
	for at := lo; at < hi; at += span {
		n := min(span, hi-at)
		for i, v := range vectors {
			if err := v.ReadAt64(views[i][:n], at); err != nil {
				return err
			}
		}
		for from := 0; from < n; from += rows {
			for j, p := range pairs {
				fold[j] = fold[j][:min(rows, n-from)]
				block(fold[j], p, views, from)
			}
			f.Fold(fold)
		}
	}
	return nil
}

// factorQR decomposes residuals with the triangular factor f, column j of it times 2^exps[j].
func factorQR(f *qr.Factor, exps []int) *Spectrum {
	n := len(exps)
	s := &Spectrum{n: n}
	if n == 0 {
		s.fail(TooFew, "push iterates before asking for an extrapolation")
		return s
	}
	s.norms = make([]float64, n)
	s.exp = math.MinInt
	for j := range n {
		norm := 0.0
		for i := range j + 1 {
			norm = math.Hypot(norm, f.At(i, j))
		}
		if !isFinite(norm) {
			s.fail(NonFinite, "a residual has NaN or infinite elements", j)
			return s
		}
		s.norms[j] = math.Ldexp(norm, exps[j])
		if _, e := math.Frexp(norm); norm > 0 {
			s.exp = max(s.exp, e+exps[j])
		}
	}
	if s.exp == math.MinInt {
		s.exp = 0
		s.fail(ZeroResidual, "all residuals are zero, so the iteration has converged: keep its last iterate")
		return s
	}
	r := mat.NewDense(n, n, nil)
	for j := range n {
		for i := range j + 1 {
			r.Set(i, j, math.Ldexp(f.At(i, j), exps[j]-s.exp))
		}
	}
	s.triangle = r
	var svd mat.SVD
	if !svd.Factorize(r, mat.SVDThin) {
		s.fail(NonFinite, "the singular value decomposition did not converge")
		return s
	}
	values := svd.Values(nil)
	s.top = values[0] * values[0]
	s.basis = new(mat.Dense)
	svd.VTo(s.basis)
	s.sigma = make([]float64, n)
	s.ones = make([]float64, n)
	for k, v := range values { // descending, where eigenvalues ascend: n-1-k holds k
		v /= values[0]
		s.sigma[n-1-k] = v * v
	}
	reversed := mat.NewDense(n, n, nil)
	for k := range n {
		for i := range n {
			v := s.basis.At(i, n-1-k)
			reversed.Set(i, k, v)
			s.ones[k] += v
		}
	}
	s.basis = reversed
	return s
}
