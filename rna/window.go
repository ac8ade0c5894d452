package rna

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrOverflow: a difference or combination of finite vectors might exceed the largest finite value, so it was not
// computed.
var ErrOverflow = errors.New("rna: the result might exceed the largest finite value")

// MaxColumns is the largest N of a [Window].
const MaxColumns = 1024

// A Window keeps the last N residuals of an iterative method with the vectors they came
// from, and their Gram matrix RᵀR.
//
// The zero Window is not usable; make one with [NewWindow] or [Restore]. A Window
// may not be used concurrently.
type Window struct {
	space Space
	n     int

	columns []column  // in order of age, oldest first
	gram    []float64 // n×n, by column slot
	tail    *snapshot // the y of the next Push; nil when no chain is open
	free    []Vector

	products *products // nil until a solve needs them

	pushes, refused int
}

// A column is a pair (y, r), with r = x − y when x is stored and not r.
type column struct {
	slot    int // row and column of the Gram matrix
	y, x, r *snapshot
	exp     int // the Gram matrix holds 2^-exp r
}

// A snapshot is a stored vector, shared by the columns and the tail that use it.
type snapshot struct {
	vector Vector
	maxAbs float64
	users  int
}

// NewWindow returns an empty window of up to n residuals in space. Vectors are
// allocated as they are pushed.
func NewWindow(space Space, n int) (*Window, error) {
	if space == nil {
		return nil, errors.New("rna: window without a space")
	}
	if n < 1 || n > MaxColumns {
		return nil, fmt.Errorf("rna: window of %d residuals: it must be 1 to %d", n, MaxColumns)
	}
	return &Window{space: space, n: n, gram: make([]float64, n*n)}, nil
}

// Cap returns N, the number of residuals that the window can hold.
func (w *Window) Cap() int { return w.n }

// Len returns the number of residuals held.
func (w *Window) Len() int { return len(w.columns) }

// Space returns the space that the window's vectors live in.
func (w *Window) Space() Space { return w.space }

// Refused returns how many pushes were refused for NaN or ±Inf so far.
func (w *Window) Refused() int { return w.refused }

// Push appends v to the chain of iterates. The first push of a chain stores y_0;
// each later one is an iterate x = g(y) whose y is the vector pushed before, and
// adds a residual x − y. When the window is full the oldest residual gives way.
//
// A v with NaN or ±Inf, or of a length other than the space's, is refused and the window is
// unchanged; the chain then still ends with the vector before. An error from v
// or from the space while the vector is stored leaves a valid window, which may
// have lost its oldest residual.
func (w *Window) Push(v Source) error {
	if w.tail == nil {
		return w.begin(v)
	}
	return w.add(false, v)
}

// PushPair adds the residual x − y and ends the chain before it: a later Push goes
// on from x. It is for methods where y is not the iterate before, as in online
// acceleration with x = g(y⁺). Errors are as for [Window.Push].
func (w *Window) PushPair(y, x Source) error { return w.add(false, y, x) }

// PushResidual adds a residual r that belongs to y and is not a difference of
// iterates: minus the gradient at y, say, up to a factor. It ends the chain before
// it. Errors are as for [Window.Push].
//
// The scale of r does not change c, but it does change y⁺ = Y c + β R c: with
// r = −∇f(y), β is the step size.
func (w *Window) PushResidual(y, r Source) error { return w.add(true, y, r) }

// Break ends the chain: the next Push starts a new one. Call it whenever the iteration continues from another vector
// than the one pushed last: after an extrapolated point replaced it, or after a restart from a checkpoint. Residuals
// stay.
func (w *Window) Break() {
	w.release(w.tail)
	w.tail = nil
}

// Trim forgets all residuals but the newest k. The chain goes on.
func (w *Window) Trim(k int) {
	for len(w.columns) > max(k, 0) {
		w.evict()
	}
}

// Reset empties the window and keeps its memory for later pushes.
func (w *Window) Reset() {
	w.Break()
	w.Trim(0)
}

// Close empties the window and gives its memory back.
func (w *Window) Close() error {
	w.Reset()
	var errs []error
	for _, v := range w.free {
		errs = append(errs, v.Close())
	}
	w.free = nil
	return errors.Join(errs...)
}

// begin stores the y_0 of a chain.
func (w *Window) begin(y Source) error {
	if err := w.checkLen(y); err != nil {
		return err
	}
	s, err := w.store(y)
	if err != nil {
		return w.note(err)
	}
	s.users++
	w.tail = s
	w.pushes++
	return nil
}

// add appends a column of the last one of vs and y, which is the other one or else
// the tail of the chain.
func (w *Window) add(isResidual bool, vs ...Source) error {
	for _, v := range vs {
		if err := w.checkLen(v); err != nil {
			return err
		}
	}
	if len(w.columns) == w.n {
		// Vectors are about to be overwritten, so check the new ones first.
		if err := w.examine(isResidual, vs); err != nil {
			return w.note(err)
		}
		w.evict()
	}
	col := column{slot: w.freeSlot(), y: w.tail}
	if len(vs) == 2 {
		s, err := w.store(vs[0])
		if err != nil {
			return w.note(err)
		}
		col.y = s
	}
	col.y.users++
	s, err := w.store(vs[len(vs)-1])
	if err != nil {
		w.release(col.y)
		return w.note(err)
	}
	s.users++
	if isResidual {
		col.r = s
	} else {
		col.x = s
	}
	if err := w.fillGram(&col); err != nil {
		w.release(s)
		w.release(col.y)
		return w.note(err)
	}
	w.columns = append(w.columns, col)
	w.release(w.tail)
	w.tail = col.x
	if w.tail != nil {
		w.tail.users++
	}
	w.pushes++
	return nil
}

// examine checks vectors without storing them.
func (w *Window) examine(isResidual bool, vs []Source) error {
	sum := 0.0
	if len(vs) == 1 {
		sum = w.tail.maxAbs
	}
	for _, v := range vs {
		m, err := w.space.Store(nil, v)
		if err != nil {
			return err
		}
		sum += m
	}
	if !isResidual && math.IsInf(sum, 0) {
		return ErrOverflow
	}
	return nil
}

// Residuals within these powers of two have squares that sum up without overflow or
// harmful underflow; others are scaled.
const (
	minExp = -300
	maxExp = 400
)

// fillGram computes the row of the Gram matrix of a column that is not in the
// window yet.
func (w *Window) fillGram(col *column) error {
	w.products.forget(col.slot)
	var bound float64
	if col.r != nil {
		bound = col.r.maxAbs
	} else {
		bound = col.x.maxAbs + col.y.maxAbs
	}
	if math.IsInf(bound, 0) {
		return ErrOverflow
	}
	with := make([]Residual, 0, len(w.columns)+1)
	for _, c := range w.columns {
		with = append(with, c.residual())
	}
	row := make([]float64, len(with)+1)
	if bound > math.Ldexp(1, maxExp) {
		if err := w.scale(col); err != nil {
			return err
		}
	}
	if err := w.space.GramRow(row, col.residual(), append(with, col.residual())); err != nil {
		return err
	}
	if col.exp == 0 && row[len(with)] < math.Ldexp(1, 2*minExp) {
		if err := w.scale(col); err != nil {
			return err
		}
		if col.exp != 0 {
			if err := w.space.GramRow(row, col.residual(), append(with, col.residual())); err != nil {
				return err
			}
		}
	}
	for j, g := range row {
		if !isFinite(g) {
			return fmt.Errorf("rna: the space gave %v for entry %d of a row of the Gram matrix", g, j)
		}
	}
	for j, c := range w.columns {
		w.gram[col.slot*w.n+c.slot] = row[j]
		w.gram[c.slot*w.n+col.slot] = row[j]
	}
	w.gram[col.slot*w.n+col.slot] = row[len(with)]
	return nil
}

// scale sets the column's exponent when its elements call for one.
func (w *Window) scale(col *column) error {
	m, err := w.space.MaxAbs(col.residual())
	if err != nil || m == 0 {
		return err
	}
	if _, e := math.Frexp(m); e < minExp || e > maxExp {
		col.exp = e
	}
	return nil
}

// evict removes the oldest column.
func (w *Window) evict() { w.forget(0) }

// forgetAbove removes the columns, but for the newest, whose residuals are longer than a bound.
func (w *Window) forgetAbove(bound float64) {
	for i := len(w.columns) - 2; i >= 0; i-- {
		if w.norm(w.columns[i]) > bound {
			w.forget(i)
		}
	}
}

// predict is ‖R c‖, to about 1e-8 of the largest residual.
func (w *Window) predict(c []float64) float64 {
	most := math.MinInt
	for _, a := range w.columns {
		if w.gram[a.slot*w.n+a.slot] > 0 {
			most = max(most, a.exp)
		}
	}
	if most == math.MinInt {
		return 0
	}
	square := 0.0
	for i, a := range w.columns {
		for j, b := range w.columns {
			square += c[i] * c[j] * math.Ldexp(w.gram[a.slot*w.n+b.slot], a.exp+b.exp-2*most)
		}
	}
	return math.Ldexp(math.Sqrt(max(square, 0)), most)
}

// norm is the length of a column's residual.
func (w *Window) norm(c column) float64 {
	return math.Ldexp(math.Sqrt(w.gram[c.slot*w.n+c.slot]), c.exp)
}

func (w *Window) forget(i int) {
	c := w.columns[i]
	w.columns = slices.Delete(w.columns, i, i+1)
	for _, s := range []*snapshot{c.y, c.x, c.r} {
		w.release(s)
	}
}

// freeSlot returns a row of the Gram matrix that no column uses.
func (w *Window) freeSlot() int {
	used := make([]bool, w.n)
	for _, c := range w.columns {
		used[c.slot] = true
	}
	for i, u := range used {
		if !u {
			return i
		}
	}
	panic("rna: no free slot in a window that has room")
}

// store copies src into a snapshot that has no users yet.
func (w *Window) store(src Source) (*snapshot, error) {
	v, err := w.take()
	if err != nil {
		return nil, err
	}
	m, err := w.space.Store(v, src)
	if err != nil {
		w.free = append(w.free, v)
		return nil, err
	}
	return &snapshot{vector: v, maxAbs: m}, nil
}

func (w *Window) take() (Vector, error) {
	if k := len(w.free) - 1; k >= 0 {
		v := w.free[k]
		w.free = w.free[:k]
		return v, nil
	}
	return w.space.New()
}

// release gives up one use of a snapshot, and its vector after the last one.
func (w *Window) release(s *snapshot) {
	if s == nil {
		return
	}
	if s.users--; s.users <= 0 {
		w.free = append(w.free, s.vector)
	}
}

func (w *Window) checkLen(v Source) error {
	if v == nil {
		return errors.New("rna: push of a nil vector")
	}
	if v.Len() != w.space.Dim() {
		return fmt.Errorf("rna: push of a vector of %d elements into a window of vectors of %d", v.Len(), w.space.Dim())
	}
	return nil
}

// note counts refused pushes.
func (w *Window) note(err error) error {
	var bad *NonFiniteError
	if errors.As(err, &bad) || errors.Is(err, ErrOverflow) {
		w.refused++
	}
	return err
}

func (c column) residual() Residual {
	if c.r != nil {
		return Residual{X: c.r.vector, Exp: c.exp}
	}
	return Residual{X: c.x.vector, Y: c.y.vector, Exp: c.exp}
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
