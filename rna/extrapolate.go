package rna

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// goodAccuracy is the relative error of coefficients above which products are summed again in twice the precision.
const goodAccuracy = 1e-12

// Solve returns the coefficients for the window's residuals. It costs O(N³) and reads no vector if the Gram matrix is
// precise enough, that is for condition numbers of RᵀR + λ‖R‖₂²I up to 2000: on most nets, for any λ. Otherwise it
// reads the vectors and sums the products of residuals in twice the precision, in O(N d) for each column added since
// the last call, or O(N² d) for λ = 0 ([Window.QR]). Result.Accuracy bounds the error. It fails only when a vector
// cannot be read.
func (w *Window) Solve(opt Options) (Result, error) {
	if err := opt.check(); err != nil {
		return Result{Status: Invalid, Detail: err.Error()}, nil
	}
	return w.solve(opt, &spectra{window: w, newest: opt.Newest})
}

// spectra caches the decompositions of a window's newest columns.
type spectra struct {
	window *Window
	newest int

	gram, qr *Spectrum
}

func (s *spectra) fromGram() *Spectrum {
	if s.gram == nil {
		s.gram = s.window.Spectrum(s.newest)
	}
	return s.gram
}

func (s *spectra) fromQR() (*Spectrum, error) {
	var err error
	if s.qr == nil {
		s.qr, err = s.window.QR(s.newest)
	}
	return s.qr, err
}

// solve is Solve for valid options.
func (w *Window) solve(opt Options, from *spectra) (Result, error) {
	solve := func(s *Spectrum) Result {
		if opt.Tau.set {
			return s.Constrain(opt.Tau.v)
		}
		return s.Solve(opt.Lambda.Or(DefaultLambda))
	}
	cols := w.newest(opt.Newest)
	res := solve(from.fromGram())
	doubtful := res.Status == RankDeficient || res.Status == Indefinite || res.Status == OK &&
		(res.Lambda == 0 || res.Accuracy > goodAccuracy)
	if doubtful && len(cols) > 1 {
		better, err := w.better(res, solve, opt, from, cols)
		if err != nil {
			return Result{Status: Failed, Detail: err.Error()}, err
		}
		res = better
	}
	if res.Status == OK && opt.MaxNorm > 0 && res.NormC > opt.MaxNorm {
		res.refuse(CoefficientsTooLarge, fmt.Sprintf(
			"‖c‖ is %.3g and the limit %.3g: raise lambda or shorten the window", res.NormC, opt.MaxNorm))
	}
	return res, nil
}

// better solves when the Gram matrix is not precise enough.
func (w *Window) better(res Result, solve func(*Spectrum) Result, opt Options, from *spectra,
	cols []column) (Result, error) {
	if !opt.Tau.set && res.Lambda > 0 && res.Status != Indefinite {
		if ok, err := w.refine(&res, from.fromGram(), cols); ok || err != nil {
			return res, err
		}
	}
	s, err := from.fromQR()
	if err != nil {
		return res, err
	}
	res = solve(s)
	if lambda := res.Lambda; res.Status == OK && lambda > 0 && !opt.Tau.set && res.Condition*epsilon > 1 {
		res = s.Solve(0) // the limit as λ → 0, from which rounding cannot tell λ
		res.Lambda = lambda
	}
	if res.Status == OK && res.Lambda == 0 && res.Rank == len(cols) {
		_, err = w.refine(&res, s, cols)
	}
	return res, err
}

// Extrapolate writes y⁺ = Y c + β R c to dst. Unless the result's status is OK dst is untouched:
// the caller goes on from its last iterate. The error is non-nil only when
// dst has the wrong length, or it or a vector of the window fails; dst may then be partly
// written.
//
// Nothing in the window changes. A caller that puts y⁺ in the iterate's place tells the
// window: [Window.Break], then Push(y⁺).
func (w *Window) Extrapolate(dst Sink, opt Options) (Result, error) {
	res, err := w.Solve(opt)
	if err != nil || res.Status != OK {
		return res, err
	}
	err = w.Combine(dst, res.C, opt.Beta.Or(DefaultBeta))
	if errors.Is(err, ErrOverflow) {
		res.overflow()
		return res, nil
	}
	return res, err
}

// Combine writes Y c + β R c to dst, for coefficients c of the newest len(c) columns,
// oldest of them first. It fails with [ErrOverflow], and leaves dst untouched,
// when the combination might exceed the largest finite value of dst's width.
func (w *Window) Combine(dst Sink, c []float64, beta float64) error {
	if len(c) == 0 || len(c) > len(w.columns) {
		return fmt.Errorf("rna: %d coefficients for a window that holds %d residuals", len(c), len(w.columns))
	}
	terms, bound := w.terms(c, beta)
	return w.combine(dst, terms, bound)
}

// combine writes the sum of terms, whose elements are at most bound, to dst.
func (w *Window) combine(dst Sink, terms []Term, bound float64) error {
	if dst == nil || dst.Len() != w.space.Dim() {
		return w.destinationError()
	}
	limit := math.MaxFloat64
	_, wide := dst.(Sink64)
	if _, narrow := dst.(Float32Memory); narrow || !wide || w.space.Bits() == 32 {
		limit = math.MaxFloat32
	}
	if !(bound <= limit) {
		return ErrOverflow
	}
	return w.space.Combine(dst, terms)
}

func (w *Window) destinationError() error {
	return fmt.Errorf("rna: combination of vectors of %d elements into a destination of another length", w.space.Dim())
}

// Average writes the uniform average of the newest k iterates x to dst; for a residual that
// was pushed as such, y + r counts as x. Average(dst, 1) gives the newest x.
func (w *Window) Average(dst Sink, k int) error {
	if k < 1 || k > len(w.columns) {
		return fmt.Errorf("rna: average of %d iterates of a window that holds %d", k, len(w.columns))
	}
	c := make([]float64, k)
	for i := range c {
		c[i] = 1 / float64(k)
	}
	return w.Combine(dst, c, 1)
}

// terms turns coefficients of columns into coefficients of vectors, each named
// once and none zero, and bounds the elements of their sum.
func (w *Window) terms(c []float64, beta float64) (terms []Term, bound float64) {
	var order []*snapshot
	coef := map[*snapshot]float64{}
	add := func(s *snapshot, a float64) {
		if _, seen := coef[s]; !seen {
			order = append(order, s)
		}
		coef[s] += a
	}
	for i, col := range w.newest(len(c)) {
		if col.r != nil {
			add(col.y, c[i])
			add(col.r, beta*c[i])
			continue
		}
		add(col.y, (1-beta)*c[i])
		add(col.x, beta*c[i])
	}
	for _, s := range order {
		if a := coef[s]; a != 0 {
			terms = append(terms, Term{Coef: a, Vector: s.vector})
			bound += math.Abs(a) * s.maxAbs
		}
	}
	return terms, bound
}

// newest returns the newest k columns, all for k = 0 or more than there are.
func (w *Window) newest(k int) []column {
	if k <= 0 || k > len(w.columns) {
		k = len(w.columns)
	}
	return w.columns[len(w.columns)-k:]
}

// Gram returns RᵀR of the newest k columns, oldest of them first, or of all for k = 0.
// Entries may overflow or underflow where residuals are beyond 1e±90; [Window.Solve] does
// not suffer from that. It returns nil for an empty window.
func (w *Window) Gram(k int) *mat.SymDense {
	cols := w.newest(k)
	if len(cols) == 0 {
		return nil
	}
	g := mat.NewSymDense(len(cols), nil)
	for i, a := range cols {
		for j, b := range cols[:i+1] {
			g.SetSym(i, j, math.Ldexp(w.gram[a.slot*w.n+b.slot], a.exp+b.exp))
		}
	}
	return g
}

// Spectrum decomposes the Gram matrix of the newest k columns, or of all for k = 0.
func (w *Window) Spectrum(k int) *Spectrum {
	cols := w.newest(k)
	gram := make([]float64, 0, len(cols)*len(cols))
	exps := make([]int, len(cols))
	for i, a := range cols {
		exps[i] = a.exp
		for _, b := range cols {
			gram = append(gram, w.gram[a.slot*w.n+b.slot])
		}
	}
	return factor(gram, exps)
}
