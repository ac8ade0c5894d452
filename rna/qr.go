package rna

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"onlinerna/internal/parallel"
	"onlinerna/rna/internal/qr"
	"onlinerna/rna/kernel"
)

const (
	// foldRows rows of the residuals are reflected at a time, at least.
	foldRows = 512

	// readElements is the approximate number of elements of all vectors that a worker reads at a time.
	readElements = 1 << 20

	// foldGroups is the number of parts of the rows, each with its own factor. It affects rounding, so it does not
	// depend on the machine.
	foldGroups = 32
)

// QR decomposes the residuals of the newest k columns, or of all for k = 0, themselves rather than their Gram matrix,
// which squares the condition number: coefficients for small λ have twice the digits, and λ = 0 an answer where the
// residuals are dependent. It reads each vector once and takes O(N² d); [Window.Spectrum] takes O(N³). [Window.Solve]
// uses it for λ = 0, and for a τ that the Gram matrix is not precise enough for.
//
// It fails only when a vector cannot be read.
func (w *Window) QR(k int) (*Spectrum, error) {
	reads, pairs := readsOf(w.newest(k))
	f, err := w.triangle(reads, pairs)
	if err != nil {
		return nil, err
	}
	s := factorQR(f, pairs)
	unit := epsilon / 2
	if w.space.Bits() == 32 {
		unit = 1.0 / (1 << 24)
	}
	s.noise = make([]float64, len(pairs))
	for j, p := range pairs {
		s.noise[j] = unit * reads[p.X].scaled(s.exp)
		if p.Y >= 0 {
			s.noise[j] += unit * reads[p.Y].scaled(s.exp)
		}
	}
	return s, nil
}

// A normed is a vector and its norm, 2^exp norm.
type normed struct {
	vector Vector
	exp    int
	norm   float64
}

// scaled returns 2^-exp of the norm.
func (v *normed) scaled(exp int) float64 { return math.Ldexp(v.norm, v.exp-exp) }

// readsOf lists each vector of the columns once.
func readsOf(cols []column) (reads []normed, pairs []kernel.Pair) {
	numbers := map[*snapshot]int{}
	number := func(s *snapshot) int {
		i, known := numbers[s]
		if !known {
			i = len(reads)
			numbers[s] = i
			_, exp := math.Frexp(s.maxAbs)
			reads = append(reads, normed{vector: s.vector, exp: exp})
		}
		return i
	}
	for _, c := range cols {
		p := kernel.Pair{Y: -1, Exp: c.exp}
		if c.r != nil {
			p.X = number(c.r)
		} else {
			p.X, p.Y = number(c.x), number(c.y)
		}
		pairs = append(pairs, p)
	}
	return reads, pairs
}

// triangle returns the triangular factor of the residuals, each times 2^-exp, and sets the norms of
// the vectors.
func (w *Window) triangle(reads []normed, pairs []kernel.Pair) (*qr.Factor, error) {
	n := len(pairs)
	own, dim, threads, failed := w.rowsOf(reads)
	rows := max(foldRows, 2*n)
	span := rows * min(max(readElements/(rows*(len(reads)+1)), 1), 32)
	group := max(1, (dim+foldGroups*span-1)/(foldGroups*span)*span)
	folds := make([]fold, (dim+group-1)/group)
	parallel.For(len(folds), threads, func(_, g int) {
		folds[g] = foldSpans(own, pairs, g*group, min((g+1)*group, dim), span, rows)
	})
	whole := qr.New(n)
	for _, f := range folds {
		if f.err != nil {
			failed = fmt.Errorf("rna: residuals: %w", f.err)
			break
		}
		whole.Merge(f.factor)
		for i, norm := range f.norms {
			reads[i].norm = math.Hypot(reads[i].norm, norm)
		}
	}
	return w.merge(whole, n, reads, failed)
}

// A fold is the factor of some rows, with the norms of their vectors.
type fold struct {
	factor *qr.Factor
	norms  []float64 // of the vectors
	err    error
}

// foldSpans folds the rows [lo, hi) of the residuals.
func foldSpans(reads []normed, pairs []kernel.Pair, lo, hi, span, rows int) fold {
	f := fold{factor: qr.New(len(pairs)), norms: make([]float64, len(reads))}
	span = min(span, hi-lo)
	views := make([][]float64, len(reads))
	for i := range views {
		views[i] = make([]float64, span)
	}
	columns := make([][]float64, len(pairs))
	for j := range columns {
		columns[j] = make([]float64, rows)
	}
	for at := lo; at < hi; at += span {
		n := min(span, hi-at)
		for i, r := range reads {
			view := views[i][:n]
			if f.err = r.vector.ReadAt64(view, at); f.err != nil {
				return f
			}
			norm := math.Sqrt(float64(n)) // a bound, if squares overflow or underflow
			if r.exp > minExp && r.exp < maxExp {
				norm = math.Ldexp(math.Sqrt(squares(view)), -r.exp)
			}
			f.norms[i] = math.Hypot(f.norms[i], norm)
		}
		for from := 0; from < n; from += rows {
			for j, p := range pairs {
				columns[j] = columns[j][:min(rows, n-from)]
				residual(columns[j], p, views, from)
			}
			f.factor.Fold(columns)
		}
	}
	return f
}

// residual writes the elements from at on to dst.
func residual(dst []float64, p kernel.Pair, views [][]float64, at int) {
	copy(dst, views[p.X][at:])
	if p.Y >= 0 {
		for i, v := range views[p.Y][at : at+len(dst)] {
			dst[i] -= v
		}
	}
	if p.Exp != 0 {
		kernel.Shift(dst, -p.Exp)
	}
}

func squares(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x * x)
	}
	return sum
}

// factorQR decomposes residuals with the triangular factor f, column j of it times 2^pairs[j].Exp.
func factorQR(f *qr.Factor, pairs []kernel.Pair) *Spectrum {
	n := len(pairs)
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
		s.norms[j] = math.Ldexp(norm, pairs[j].Exp)
		if _, e := math.Frexp(norm); norm > 0 {
			s.exp = max(s.exp, e+pairs[j].Exp)
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
			r.Set(i, j, math.Ldexp(f.At(i, j), pairs[j].Exp-s.exp))
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
