package rna

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// DefaultLambdas returns a grid of λ for residuals of which nothing is known: from 1e-12, where c is what the residuals ask for,
// to 10, where it nears the average.
func DefaultLambdas() []float64 { return []float64{1e-12, 1e-9, 1e-6, 1e-3, 0.1, 10} }

// Lambdas returns the grid of a [Window.Search] that names none: as many values as DefaultLambdas has, geometrically from a tenth of
// the least eigenvalue of RᵀR over the largest, below which λ does nothing, though no less than 1e-12, to 10. On residuals
// of SGD, which are nearly orthogonal, that is where c moves from the residuals' own to the average.
func (s *Spectrum) Lambdas() []float64 {
	grid := DefaultLambdas()
	if s.fault.Status != OK || s.n == 0 {
		return grid
	}
	last := len(grid) - 1
	low, high := max(grid[0], s.sigma[0]/10), grid[last]
	for i := range grid {
		grid[i] = low * math.Pow(high/low, float64(i)/float64(last))
	}
	grid[last] = high
	return grid
}

// SearchOptions are the parameters of a [Window.Search]. The zero SearchOptions are the
// defaults.
type SearchOptions struct {
	// Lambdas is the grid of λ ≥ 0, relative to ‖R‖₂². Nil is that of [Spectrum.Lambdas]. The average,
	// λ = ∞, and the newest iterate are candidates whatever it holds.
	Lambdas []float64

	// Beta, Newest and MaxNorm are as in [Options]. MaxNorm leaves candidates out.
	Beta    Value
	Newest  int
	MaxNorm float64
}

// Kind is what a [Candidate] of a search is.
type Kind int

const (
	// Kept is the newest iterate, as it is.
	Kept Kind = iota
	// Averaged is the extrapolation with λ = ∞.
	Averaged
	// Extrapolated is one with a λ of the grid.
	Extrapolated
)

var kindNames = [...]string{Kept: "kept", Averaged: "averaged", Extrapolated: "extrapolated"}

func (k Kind) String() string { return name(kindNames[:], int(k), "Kind") }

// MarshalText gives the kind by name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// A Candidate is a point that a search considered.
type Candidate struct {
	Kind Kind

	// Result is the solve's. It is that of no solve, and has no C, for the iterate that is kept.
	Result Result

	// Value is the caller's function at the point, NaN where it was not asked because Result
	// refuses the point.
	Value float64
}

// A Choice is the outcome of a search.
type Choice struct {
	// Candidate is the one chosen, whose point was written.
	Candidate

	// Candidates are all of them: the newest iterate, the average, then the grid in its order.
	Candidates []Candidate
}

// Search chooses λ by the caller's function, a held-out loss or f itself: it writes one candidate after the
// other to dst, calls value, which evaluates what dst holds and leaves it as it is, and ends with the
// candidate of the smallest value in dst. The newest iterate and the average are among them, so that
// the choice is never worse than either on that function; the earlier candidate wins a tie, the iterate
// first of all. NaN and ±Inf are never chosen; the iterate is kept when there is nothing else, though its own
// value be one.
//
// All come from one decomposition; a candidate costs one combination, O(N d), and one call of
// value. Equal candidates, as all are for N = 1, are evaluated once.
//
// An empty window gives TooFew and leaves dst untouched, an option out of range Invalid. An error is
// one of value, of dst or of the vectors; dst then holds the newest iterate, if that can still
// be written.
func (w *Window) Search(dst Sink, value func() (float64, error), opt SearchOptions) (Choice, error) {
	lambdas := opt.Lambdas
	if lambdas == nil {
		lambdas = w.Spectrum(opt.Newest).Lambdas()
	}
	refused := func(status Status, detail string) Choice {
		return Choice{Candidate: Candidate{Result: Result{Status: status, Detail: detail}, Value: math.NaN()}}
	}
	latest := w.latest()
	if latest == nil {
		return refused(TooFew, "push iterates before asking for an extrapolation"), nil
	}
	for _, lambda := range append([]float64{0}, opt.Lambdas...) {
		if err := opt.at(lambda).check(); err != nil {
			return refused(Invalid, err.Error()), nil
		}
	}
	if dst == nil || dst.Len() != w.space.Dim() {
		return refused(Invalid, "no destination"), w.destinationError()
	}
	s := &search{window: w, dst: dst, value: value, latest: latest, beta: opt.Beta.Or(DefaultBeta)}
	choice, err := s.run(opt, lambdas)
	if err != nil {
		return choice, errors.Join(err, s.write(Candidate{Kind: Kept}))
	}
	return choice, nil
}

// at returns the options of one candidate.
func (o SearchOptions) at(lambda float64) Options {
	return Options{Lambda: Set(lambda), Beta: o.Beta, Newest: o.Newest, MaxNorm: o.MaxNorm}
}

// search is a search that runs.
type search struct {
	window *Window
	dst    Sink
	value  func() (float64, error)
	latest *snapshot
	beta   float64
}

func (s *search) run(opt SearchOptions, lambdas []float64) (choice Choice, err error) {
	choice.Candidates = []Candidate{{Kind: Kept}}
	if s.window.Len() > 0 {
		from := &spectra{window: s.window, newest: opt.Newest}
		for i, lambda := range append([]float64{math.Inf(1)}, lambdas...) {
			res, err := s.window.solve(opt.at(lambda), from)
			if err != nil {
				return choice, err
			}
			kind := Extrapolated
			if i == 0 {
				kind = Averaged
			}
			choice.Candidates = append(choice.Candidates, Candidate{Kind: kind, Result: res})
		}
	}
	best, held := 0, 0
	for i := range choice.Candidates {
		c := &choice.Candidates[i]
		c.Value = math.NaN()
		if c.Result.Status != OK {
			continue
		}
		if j := s.equal(choice.Candidates, i); j >= 0 {
			c.Value = choice.Candidates[j].Value
			continue
		}
		err := s.write(*c)
		if errors.Is(err, ErrOverflow) && c.Kind != Kept {
			c.Result.overflow()
			continue
		}
		if err != nil {
			return choice, err
		}
		held = i
		if c.Value, err = s.value(); err != nil {
			return choice, fmt.Errorf("rna: value of the candidate that is %v with lambda %g: %w", c.Kind, c.Result.Lambda, err)
		}
		if least := choice.Candidates[best].Value; isFinite(c.Value) && !(c.Value >= least) {
			best = i
		}
	}
	choice.Candidate = choice.Candidates[best]
	if held != best {
		return choice, s.write(choice.Candidate)
	}
	return choice, nil
}

// equal returns an earlier candidate with the same point as candidate i, or -1.
func (s *search) equal(cs []Candidate, i int) int {
	c := cs[i].Result.C
	for j := range i {
		if cs[j].Kind != Kept && cs[j].Result.Status == OK && slices.Equal(cs[j].Result.C, c) {
			return j
		}
	}
	if newest := s.window.newest(1); len(c) == 1 && s.beta == 1 && newest[0].x == s.latest {
		return 0
	}
	return -1
}

// write writes a candidate to dst.
func (s *search) write(c Candidate) error {
	if c.Kind == Kept {
		return s.window.combine(s.dst, []Term{{Coef: 1, Vector: s.latest.vector}}, s.latest.maxAbs)
	}
	return s.window.Combine(s.dst, c.Result.C, s.beta)
}

// Latest writes the newest iterate that the window holds to dst: the vector that the next [Window.Push]
// pairs with, or else the newest x, or y for a residual that was pushed as such.
func (w *Window) Latest(dst Sink) error {
	s := w.latest()
	if s == nil {
		return errors.New("rna: newest iterate of an empty window")
	}
	return w.combine(dst, []Term{{Coef: 1, Vector: s.vector}}, s.maxAbs)
}

func (w *Window) latest() *snapshot {
	if w.tail != nil || len(w.columns) == 0 {
		return w.tail
	}
	c := w.columns[len(w.columns)-1]
	if c.r != nil {
		return c.y
	}
	return c.x
}
