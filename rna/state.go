package rna

import (
	"errors"
	"fmt"
	"math"
)

// stateVersion is that of the State written here.
const stateVersion = 1

// A State is a window without its vectors.
type State struct {
	Version int `json:"version"`

	N    int `json:"n"`    // capacity, in residuals
	Dim  int `json:"dim"`  // elements of a vector
	Bits int `json:"bits"` // width of the stored elements, 32 or 64

	// Vectors is the number of vectors that belong to the state. They are numbered from 0, in order of age.
	Vectors int `json:"vectors"`

	// Columns are the residuals, oldest first.
	Columns []ColumnState `json:"columns"`

	// Tail is the number of the vector that the next Push pairs with, -1 for none.
	Tail int `json:"tail"`

	// Gram is the lower triangle of the Gram matrix by rows, in order of age; its entries are
	// those of the columns times 2^-Exp.
	Gram []float64 `json:"gram"`

	Pushes  int `json:"pushes"`
	Refused int `json:"refused"`
}

// A ColumnState names the vectors of a residual: y and x for x − y, y and r for
// one that was pushed as such. The one that is absent is -1.
type ColumnState struct {
	Y   int `json:"y"`
	X   int `json:"x"`
	R   int `json:"r"`
	Exp int `json:"exp,omitempty"`
}

// State returns the state that [Restore] needs together with the vectors.
func (w *Window) State() State {
	snapshots, number := w.snapshots()
	st := State{
		Version: stateVersion,
		N:       w.n,
		Dim:     w.space.Dim(),
		Bits:    w.space.Bits(),
		Vectors: len(snapshots),
		Columns: make([]ColumnState, 0, len(w.columns)),
		Tail:    number(w.tail),
		Gram:    make([]float64, 0, len(w.columns)*(len(w.columns)+1)/2),
		Pushes:  w.pushes,
		Refused: w.refused,
	}
	for i, a := range w.columns {
		st.Columns = append(st.Columns, ColumnState{Y: number(a.y), X: number(a.x), R: number(a.r), Exp: a.exp})
		for _, b := range w.columns[:i+1] {
			st.Gram = append(st.Gram, w.gram[a.slot*w.n+b.slot])
		}
	}
	return st
}

// Vectors returns the number of vectors that the window holds.
func (w *Window) Vectors() int {
	snapshots, _ := w.snapshots()
	return len(snapshots)
}

// Vector returns vector i of the window's [State], to read from until the window
// changes. It returns nil when there is no such vector.
func (w *Window) Vector(i int) Source64 {
	snapshots, _ := w.snapshots()
	if i < 0 || i >= len(snapshots) {
		return nil
	}
	return snapshots[i].vector
}

// snapshots returns the stored vectors in order of age, and a function that gives the number of
// one of them or -1 for nil.
func (w *Window) snapshots() ([]*snapshot, func(*snapshot) int) {
	var list []*snapshot
	numbers := map[*snapshot]int{}
	add := func(s *snapshot) {
		if _, known := numbers[s]; s != nil && !known {
			numbers[s] = len(list)
			list = append(list, s)
		}
	}
	for _, c := range w.columns {
		add(c.y)
		add(c.x)
		add(c.r)
	}
	add(w.tail)
	return list, func(s *snapshot) int {
		if i, ok := numbers[s]; ok {
			return i
		}
		return -1
	}
}

// Restore makes a window in space from a state and its vectors, which load opens by
// number; each is read once. A window restored from the vectors and state of another behaves
// like that one, bit for bit, when the elements are in the same order.
//
// The state is checked before anything is allocated, and the residuals' products are compared with the Gram matrix,
// so vectors of another window are detected.
func Restore(space Space, st State, load func(i int) (Source, error)) (*Window, error) {
	if space == nil || load == nil {
		return nil, errors.New("rna: restore without a space or without vectors")
	}
	if err := st.check(space); err != nil {
		return nil, err
	}
	w, err := NewWindow(space, st.N)
	if err != nil {
		return nil, err
	}
	if err := w.restore(st, load); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Window) restore(st State, load func(i int) (Source, error)) error {
	snapshots := make([]*snapshot, st.Vectors)
	defer func() {
		for _, s := range snapshots {
			if s != nil && s.users == 0 {
				w.release(s)
			}
		}
	}()
	for i := range snapshots {
		src, err := load(i)
		if err == nil {
			err = w.checkLen(src)
		}
		if err == nil {
			snapshots[i], err = w.store(src)
		}
		if err != nil {
			return fmt.Errorf("rna: restore of vector %d of %d: %w", i, st.Vectors, err)
		}
	}
	use := func(i int) *snapshot {
		if i < 0 {
			return nil
		}
		snapshots[i].users++
		return snapshots[i]
	}
	entries := st.Gram
	for i, c := range st.Columns {
		col := column{slot: i, y: use(c.Y), x: use(c.X), r: use(c.R), exp: c.Exp}
		w.columns = append(w.columns, col)
		for j := range i + 1 {
			w.gram[i*w.n+j] = entries[j]
			w.gram[j*w.n+i] = entries[j]
		}
		entries = entries[i+1:]
	}
	if err := w.verify(st.Gram); err != nil {
		return err
	}
	w.tail = use(st.Tail)
	w.pushes, w.refused = st.Pushes, st.Refused
	return nil
}

// A gramSpace computes a whole Gram matrix at once, its lower triangle by rows.
type gramSpace interface {
	gramMatrix(rs []Residual) ([]float64, error)
}

// verify compares the products of the columns with the Gram matrix, or only their norms if that reads less. Another
// order of the elements changes the rounding of a sum; another vector changes the sum.
func (w *Window) verify(gram []float64) error {
	rs := make([]Residual, len(w.columns))
	for i, c := range w.columns {
		rs[i] = c.residual()
	}
	var got []float64
	_, once := w.space.(gramSpace)
	_, divided := w.space.(Divided)
	if (once || divided) && len(rs) > 0 {
		var err error
		if got, err = triangle(w.space, rs); err != nil {
			return fmt.Errorf("rna: restore of the residuals: %w", err)
		}
	}
	at := func(i, j int) int { return i*(i+1)/2 + j }
	for i, r := range rs {
		if got == nil {
			var square [1]float64
			if err := w.space.GramRow(square[:], r, rs[i:i+1]); err != nil {
				return fmt.Errorf("rna: restore of residual %d: %w", i, err)
			}
			if want := gram[at(i, i)]; !(math.Abs(square[0]-want) <= 1e-9*want) {
				return mismatch(i, i, square[0], want)
			}
			continue
		}
		for j := range i + 1 {
			bound := 1e-9 * math.Sqrt(gram[at(i, i)]) * math.Sqrt(gram[at(j, j)])
			if v, want := got[at(i, j)], gram[at(i, j)]; !(math.Abs(v-want) <= bound) {
				return mismatch(i, j, v, want)
			}
		}
	}
	return nil
}

func mismatch(i, j int, got, want float64) error {
	if i == j {
		return fmt.Errorf("rna: restore: residual %d has the square %g and its state says %g: the vectors are not "+
			"those of this state", i, got, want)
	}
	return fmt.Errorf("rna: restore: residuals %d and %d have the product %g and their state says %g: the vectors are "+
		"not those of this state", i, j, got, want)
}

// check returns an error unless the state is complete and fits the space.
func (st *State) check(space Space) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("rna: state of a window: "+format, args...)
	}
	n := len(st.Columns)
	switch {
	case st.Version != stateVersion:
		return fail("version is %d: this program reads %d", st.Version, stateVersion)
	case st.Dim != space.Dim():
		return fail("vectors have %d elements and the space's %d", st.Dim, space.Dim())
	case st.Bits != space.Bits():
		return fail("vectors are float%d and the space's float%d", st.Bits, space.Bits())
	case st.N < 1 || st.N > MaxColumns:
		return fail("n is %d: it must be 1 to %d", st.N, MaxColumns)
	case n > st.N:
		return fail("%d columns where n is %d", n, st.N)
	case st.Vectors < 0 || st.Vectors > 2*n+1:
		return fail("%d vectors for %d columns", st.Vectors, n)
	case len(st.Gram) != n*(n+1)/2:
		return fail("%d entries of the Gram matrix for %d columns", len(st.Gram), n)
	case st.Tail < -1 || st.Tail >= st.Vectors:
		return fail("tail is vector %d of %d", st.Tail, st.Vectors)
	case st.Pushes < 0 || st.Refused < 0:
		return fail("negative counts")
	}
	used := make([]bool, st.Vectors)
	if st.Tail >= 0 {
		used[st.Tail] = true
	}
	for i, c := range st.Columns {
		second := max(c.X, c.R)
		if c.Y < 0 || c.Y >= st.Vectors || second < 0 || second >= st.Vectors || min(c.X, c.R) != -1 || second == c.Y {
			return fail("column %d has the vectors y %d, x %d, r %d of %d", i, c.Y, c.X, c.R, st.Vectors)
		}
		if c.Exp < -1100 || c.Exp > 1100 {
			return fail("column %d has the exponent %d", i, c.Exp)
		}
		used[c.Y], used[second] = true, true
	}
	for i, u := range used {
		if !u {
			return fail("vector %d belongs to no column", i)
		}
	}
	for i, g := range st.Gram {
		if !isFinite(g) {
			return fail("entry %d of the Gram matrix is %v", i, g)
		}
	}
	return nil
}
