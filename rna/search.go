package rna

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/internal/stat"
)

// DefaultLambdas returns a grid of λ for any residuals: from 1e-12, nearly unregularised, to 10, near the average.
func DefaultLambdas() []float64 { return []float64{1e-12, 1e-9, 1e-6, 1e-3, 0.1, 10} }

// Lambdas returns the default grid of [Window.Search]. It has as many values as DefaultLambdas, spaced geometrically
// up to 10. The lowest is a tenth of the least eigenvalue of RᵀR over the largest, below which λ has no effect, but
// at least 1e-12. Residuals of SGD are nearly orthogonal, and in this range c moves from its unregularised value to
// the average.
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
	// Lambdas is the grid of λ ≥ 0, relative to ‖R‖₂². Nil is the grid of [Spectrum.Lambdas]. The average, λ = ∞, and
	// the newest iterate are always candidates.
	Lambdas []float64

	// Beta, Newest and MaxNorm are as in [Options]. Candidates beyond MaxNorm are skipped.
	Beta    Value
	Newest  int
	MaxNorm float64
}

// Kind is the kind of a [Candidate].
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

	// Result is the result of the solve. For Kept it has no C.
	Result Result

	// Value is the mean of the caller's losses at the point, NaN if Result refuses the point. Difference is Value
	// minus the first candidate's value, and Error its standard error.
	Value, Difference, Error float64
}

// A Choice is the outcome of a search.
type Choice struct {
	// Candidate is the chosen one. Its point was written.
	Candidate

	// Candidates are all of them: the newest iterate, the average, then the grid in its order.
	Candidates []Candidate

	// NoDifference is true when another candidate has a lower value than the chosen one, but not by enough.
	NoDifference bool
}

// Search chooses λ by the losses of held-out samples, or by f itself as the loss of one sample. It writes each
// candidate to dst and calls losses, which evaluates dst, leaves it unchanged and returns one number per sample, for
// the same samples in the same order each time. At the end dst holds the candidate that [Choose] selects. The first
// candidate is the newest iterate, the second the average. The iterate is kept if no other candidate can be used,
// even if its own value is not finite.
//
// All come from one decomposition; a candidate costs one combination, O(N d), and one call of
// losses. Equal candidates, as all are for N = 1, are evaluated once.
//
// An empty window gives TooFew and an option out of range Invalid; both leave dst untouched. Errors come from losses,
// dst or the vectors; dst then holds the newest iterate, if it can still be written.
func (w *Window) Search(dst Sink, losses func() ([]float64, error), opt SearchOptions) (Choice, error) {
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
	s := &search{window: w, dst: dst, losses: losses, latest: latest, beta: opt.Beta.Or(DefaultBeta)}
	choice, err := s.run(opt)
	if err != nil {
		return choice, errors.Join(err, s.write(Candidate{Kind: Kept}))
	}
	return choice, nil
}

// Candidates are those of a [Window.Search], not evaluated: the newest iterate, the average and a λ each of the grid.
func (w *Window) Candidates(opt SearchOptions) ([]Candidate, error) {
	list := []Candidate{{Kind: Kept, Value: math.NaN()}}
	if w.Len() == 0 {
		return list, nil
	}
	lambdas := opt.Lambdas
	if lambdas == nil {
		lambdas = w.Spectrum(opt.Newest).Lambdas()
	}
	from := &spectra{window: w, newest: opt.Newest}
	for i, lambda := range append([]float64{math.Inf(1)}, lambdas...) {
		res, err := w.solve(opt.at(lambda), from)
		if err != nil {
			return list, err
		}
		kind := Extrapolated
		if i == 0 {
			kind = Averaged
		}
		list = append(list, Candidate{Kind: kind, Result: res, Value: math.NaN()})
	}
	return list, nil
}

// errSkipped, returned by losses, skips a candidate.
var errSkipped = errors.New("passed over")

// Significance bounds how often [Choose] leaves the first of candidates that are all equally good.
const Significance = 0.05

// Choose evaluates, in order, the iterate and the candidates with coefficients. It leaves the first only for one whose
// mean loss is lower by a one-sided t test of the differences, sample by sample, at the level [Significance] divided
// by the number of candidates that can be used (Bonferroni's correction for choosing the best). Among these it moves
// to a later one whose mean is lower by more than the standard error of the difference. Losses returns the losses of a
// candidate, for the same samples in the same order each time. With one sample there is no standard error: the least
// value wins, the earlier of equals. A mean that is NaN or ±Inf is never chosen, except for the first candidate if no
// mean is finite.
func Choose(candidates []Candidate, losses func(c *Candidate) ([]float64, error)) (Choice, error) {
	choice := Choice{Candidates: candidates}
	if len(candidates) == 0 {
		return choice, errors.New("rna: a choice among no candidates")
	}
	best, usable := 0, 0
	for _, c := range candidates[1:] {
		if c.Result.Status == OK {
			usable++
		}
	}
	var first, taken []float64
	for i := range candidates {
		c := &candidates[i]
		c.Value = math.NaN()
		if c.Result.Status != OK {
			continue
		}
		x, err := losses(c)
		if err == errSkipped {
			continue
		}
		if err != nil {
			return choice, fmt.Errorf("rna: value of the candidate that is %v with lambda %g: %w", c.Kind,
				c.Result.Lambda, err)
		}
		if len(x) == 0 || taken != nil && len(x) != len(taken) {
			return choice, fmt.Errorf("rna: losses of %d samples after those of %d", len(x), len(taken))
		}
		x = slices.Clone(x)
		c.Value, _ = difference(x, nil)
		if i == 0 {
			first, taken = x, x
			continue
		}
		if first != nil {
			c.Difference, c.Error = difference(x, first)
		}
		if !isFinite(c.Value) {
			continue
		}
		if !isFinite(candidates[best].Value) {
			best, taken = i, x
			continue
		}
		if first != nil && isFinite(candidates[0].Value) && !below(c.Difference, c.Error, usable, len(x)) {
			continue
		}
		if d, e := difference(x, taken); d < 0 && -d > e {
			best, taken = i, x
		}
	}
	for _, c := range candidates {
		choice.NoDifference = choice.NoDifference || isFinite(c.Value) && c.Value < candidates[best].Value
	}
	choice.Candidate = candidates[best]
	return choice, nil
}

// below tells whether a mean difference of n samples with a standard error is below 0, for the best of k.
func below(mean, deviation float64, k, n int) bool {
	if n == 1 {
		return mean < 0
	}
	return mean < 0 && -mean > deviation*stat.T(1-Significance/float64(k), n)
}

// difference returns the mean of x − y and its standard error; a nil y is 0.
func difference(x, y []float64) (mean, deviation float64) {
	n := float64(len(x))
	at := func(i int) float64 {
		if y == nil {
			return x[i]
		}
		return x[i] - y[i]
	}
	for i := range x {
		mean += at(i) / n
	}
	if len(x) == 1 {
		return mean, 0
	}
	sum := 0.0
	for i := range x {
		sum += (at(i) - mean) * (at(i) - mean)
	}
	return mean, math.Sqrt(sum / (n - 1) / n)
}

// at returns the options of one candidate.
func (o SearchOptions) at(lambda float64) Options {
	return Options{Lambda: Set(lambda), Beta: o.Beta, Newest: o.Newest, MaxNorm: o.MaxNorm}
}

// search is a running search.
type search struct {
	window *Window
	dst    Sink
	losses func() ([]float64, error)
	latest *snapshot
	beta   float64
}

func (s *search) run(opt SearchOptions) (Choice, error) {
	candidates, err := s.window.Candidates(opt)
	if err != nil {
		return Choice{Candidates: candidates}, err
	}
	held, number := 0, -1 // the candidate whose point dst holds, and the current one
	seen := make([][]float64, len(candidates))
	choice, err := Choose(candidates, func(c *Candidate) (_ []float64, err error) {
		for number++; &candidates[number] != c; number++ {
		}
		if j := s.equal(candidates, number); j >= 0 {
			seen[number] = seen[j]
			return seen[j], nil
		}
		err = s.write(*c)
		if errors.Is(err, ErrOverflow) && c.Kind != Kept {
			c.Result.overflow()
			return nil, errSkipped
		}
		if err != nil {
			return nil, err
		}
		held = number
		x, err := s.losses()
		seen[number] = slices.Clone(x)
		return seen[number], err
	})
	if err != nil {
		return choice, err
	}
	if choice.Kind != candidates[held].Kind || choice.Result.Lambda != candidates[held].Result.Lambda {
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
