package rna

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Defaults for fields of [SolveOptions] that are 0.
const (
	DefaultTolerance      = 1e-10
	DefaultTolerance32    = 1e-5
	DefaultMaxEvaluations = 100_000
	DefaultSolveWindow    = 30
)

// SolveOptions are the parameters of [Solve]. The zero value is right for most maps.
type SolveOptions struct {
	// Tolerance ends the solve when ‖g(x) − x‖₂ ≤ Tolerance · max(‖g(x)‖₂, ‖g(x₀) − x₀‖₂). 0 is [DefaultTolerance],
	// or [DefaultTolerance32] in a space of float32 vectors.
	Tolerance float64

	// MaxEvaluations of g end the solve. 0 is [DefaultMaxEvaluations].
	MaxEvaluations int

	// Window is N, the number of residuals kept; at most as many as x has elements are used. 0 is [DefaultSolveWindow].
	// A solve holds about 2N vectors beside the caller's: choose a smaller N where they are large.
	Window int

	// Projection, if set, moves an extrapolated point into g's domain, in place.
	Projection func(x []float64)

	// Accept, if set, reports whether g may be evaluated at an extrapolated point. A point that it refuses is moved
	// towards g(x), by halves, and costs no evaluation. Points that g itself returned are not asked about.
	Accept func(x []float64) bool

	// Progress, if set, is called after each evaluation.
	Progress func(SolveProgress)
}

// SolveProgress is the state of a solve after an evaluation of g.
type SolveProgress struct {
	Evaluations int
	Residual    float64 // ‖g(x) − x‖₂ at the point evaluated, NaN where g failed
	Best        float64 // the smallest so far
	Accelerated bool    // the point was extrapolated
}

// A Solution says how a solve ended. The point is in the caller's x.
type Solution struct {
	// Evaluations of g, the refused ones included.
	Evaluations int

	// Residual is ‖g(x) − x‖₂ at the point, the smallest of all points evaluated.
	Residual float64

	// Converged reports that the residual is within the tolerance.
	Converged bool

	// Accelerated counts the extrapolated points that were kept, Refused those that were given up.
	Accelerated, Refused int
}

// Parameters of the safeguards, chosen on six seeds of 51 kinds of problems and judged on others.
const (
	solveLambda  = 1e-24 // regularisation, below the squares of residuals that are kept
	stale        = 1e6   // times the newest residual: larger ones are forgotten
	earned       = 0.05  // evaluations that a plain step earns
	mostCredit   = 10    // evaluations that may be spent at a time
	farthest     = 100   // growth of the residual that ends an excursion at once
	bent         = 10    // times the residual that the window predicts, at which the oldest are forgotten
	mostSlow     = 2     // successes in a row that plain steps would outdo, before residuals are forgotten
	nearlyPlain  = 0.3   // residuals between an extrapolated point and a plain one that are as good as the same
	early        = 10    // evaluations before which a step is at most as many residuals long
	sooner       = 1.1   // growth of the plain rate at which plain steps go on
	shorter      = 4     // the step limit after a refused excursion
	longer       = 2     // the step limit after a success
	mostHalvings = 6     // towards g(x), for Accept
	mostRetreats = 30    // towards the last good point, where g fails
)

// Solve finds a fixed point x = g(x) by safeguarded extrapolation. On entry x is the start, on return the point with
// the smallest residual ‖g(x) − x‖₂ of all that were evaluated. g writes g(x) to dst; it must not keep either slice.
//
// Solve takes plain steps and extrapolated ones. An extrapolated point has to pay for its evaluation: a plain step
// earns a twentieth of an evaluation, an extrapolated point costs one, and a fall of the residual earns as many
// evaluations as plain iteration takes for it at its present rate. While there is credit, points whose residual is
// larger may lead to better ones; when it is used up Solve returns to the best plain continuation. So it spends at most
// about a tenth more evaluations than plain iteration where extrapolation does not help. Extrapolated points that are
// nearly plain ones count as such. The length of a step is limited at the start and after a refusal, and plain steps go
// on while each gains more than the one before, as where an iteration ends after finitely many.
//
// Residuals are forgotten that mislead: all but the newest when a plain step raises the residual, as near a saddle, or
// when two extrapolated points in a row gain less than plain steps; the oldest 3 in 10 when a residual is ten times the
// one that the window predicts; and those that are a million times the newest.
//
// Where g fails (an error, NaN or ±Inf) at an extrapolated point, the point is refused. Where it fails at a plain point
// Solve halves the step from the last good point; if that does not help either, it returns g's error, with x the best
// point. When ctx is done Solve returns its error in the same way. Too few evaluations are no error: Converged is
// false.
func Solve(ctx context.Context, g func(dst, x []float64) error, x []float64, o SolveOptions) (*Solution, error) {
	if g == nil || len(x) == 0 {
		return nil, errors.New("rna: solve without a map or without elements")
	}
	space, err := NewHost64(len(x), 0)
	if err != nil {
		return nil, err
	}
	dst := make([]float64, len(x))
	s := solver{
		space: space, y: Slice64(x), x: Slice64(dst), opt: o,
		evaluate: func() error { return g(dst, x) },
	}
	if o.Accept != nil {
		s.accept = func() bool { return o.Accept(x) }
	}
	if o.Projection != nil {
		s.project = func() { o.Projection(x) }
	}
	return s.run(ctx)
}

// SolveIn is [Solve] for vectors that live in a space: a network's weights, a GPU's memory. g writes g(x) to dst; both
// vectors are the caller's, distinct and of the space's length. Projection and Accept must be nil: a g that
// fails outside its domain does the same for the price of an evaluation.
func SolveIn(ctx context.Context, space Space, g func(dst, x Point) error, dst, x Point,
	o SolveOptions) (*Solution, error) {
	switch {
	case space == nil || g == nil || dst == nil || x == nil:
		return nil, errors.New("rna: solve without a space, a map or its vectors")
	case dst.Len() != space.Dim() || x.Len() != space.Dim():
		return nil, fmt.Errorf("rna: solve with vectors of %d and %d elements in a space of %d", dst.Len(), x.Len(),
			space.Dim())
	case o.Projection != nil || o.Accept != nil:
		return nil, errors.New("rna: solve in a space with Projection or Accept, which take slices")
	}
	s := solver{space: space, y: x, x: dst, opt: o, evaluate: func() error { return g(dst, x) }}
	return s.run(ctx)
}

// A solver runs one solve. It evaluates x = g(y); the caller's names are dst = g(x).
type solver struct {
	space    Space
	window   *Window
	evaluate func() error
	accept   func() bool // whether g may be evaluated at y, or nil
	project  func()      // moves y into g's domain, or nil
	y, x     Point
	opt      SolveOptions
	sol      Solution
	scratch  Vector

	first     float64   // the first residual
	base      *snapshot // the last plain point or success
	next      *snapshot // g(base): where plain iteration goes on
	ref       float64   // the residual of base
	best      *snapshot // the point with the smallest residual
	newest    float64   // the last residual
	rate      float64   // by which the last plain step lowered log residual
	predicted float64   // ‖R c‖ of the last extrapolated point
	speeding  bool      // plain steps gain more and more
	slow      int       // successes in a row that plain steps would outdo
	credit    float64   // evaluations that extrapolated points may spend
	limit     float64   // on the length of a step, in residuals
	length    float64   // of the last one
	trial     bool      // y is extrapolated, or follows such a point
	plain     bool      // y is g(base)
	away      int       // points since base
	retreats  int       // halved steps since base
	lastError error     // of g
}

func (s *solver) run(ctx context.Context) (*Solution, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	for s.sol.Evaluations < s.opt.MaxEvaluations {
		if err := ctx.Err(); err != nil {
			return s.end(err)
		}
		r, converged, err := s.observe()
		if err != nil {
			return s.end(err)
		}
		if s.opt.Progress != nil {
			s.opt.Progress(SolveProgress{Evaluations: s.sol.Evaluations, Residual: r, Best: s.sol.Residual,
				Accelerated: s.trial})
		}
		if converged {
			s.sol.Converged = true
			return s.end(nil)
		}
		if s.trial {
			err = s.judgeTrial(r)
		} else {
			err = s.judgePlain(r)
		}
		if err != nil {
			return s.end(err)
		}
	}
	return s.end(nil)
}

func (s *solver) begin() (err error) {
	o := &s.opt
	switch {
	case math.IsNaN(o.Tolerance) || o.Tolerance < 0:
		return fmt.Errorf("rna: the tolerance is %v: it must be 0 (%v) or more", o.Tolerance, DefaultTolerance)
	case o.MaxEvaluations < 0:
		return fmt.Errorf("rna: %d evaluations at most: it must be 0 (%d) or more", o.MaxEvaluations, DefaultMaxEvaluations)
	case o.Window < 0:
		return fmt.Errorf("rna: a window of %d residuals: it must be 0 (%d) or more", o.Window, DefaultSolveWindow)
	}
	if o.Tolerance == 0 {
		o.Tolerance = DefaultTolerance
		if s.space.Bits() == 32 {
			o.Tolerance = DefaultTolerance32
		}
	}
	if o.MaxEvaluations == 0 {
		o.MaxEvaluations = DefaultMaxEvaluations
	}
	if o.Window == 0 {
		o.Window = DefaultSolveWindow
	}
	if s.window, err = NewWindow(s.space, max(min(o.Window, s.space.Dim()), 2)); err != nil {
		return err
	}
	s.scratch, err = s.space.New()
	s.sol.Residual, s.ref, s.limit, s.credit = math.Inf(1), math.Inf(1), math.Inf(1), 1
	return err
}

// end leaves the best point in the caller's vector.
func (s *solver) end(err error) (*Solution, error) {
	if s.best != nil {
		err = errors.Join(err, s.write(Term{1, s.best.vector}))
	}
	for _, held := range []*snapshot{s.base, s.next, s.best} {
		s.window.release(held)
	}
	err = errors.Join(err, s.window.Close())
	if s.scratch != nil {
		err = errors.Join(err, s.scratch.Close())
	}
	return &s.sol, err
}

// write sets y to a combination.
func (s *solver) write(terms ...Term) error { return s.space.Combine(s.y, terms) }

// hold keeps a snapshot of the window in a place, whatever the window forgets.
func (s *solver) hold(place **snapshot, v *snapshot) {
	v.users++
	s.window.release(*place)
	*place = v
}

// observe evaluates g and pushes the pair. The residual is NaN where g failed.
func (s *solver) observe() (r float64, converged bool, err error) {
	s.sol.Evaluations++
	if s.lastError = s.evaluate(); s.lastError == nil {
		s.lastError = s.window.PushPair(s.y, s.x)
		if bad := (*NonFiniteError)(nil); s.lastError != nil && !errors.As(s.lastError, &bad) &&
			!errors.Is(s.lastError, ErrOverflow) {
			return math.NaN(), false, s.lastError
		}
	}
	if s.lastError != nil {
		return math.NaN(), false, nil
	}
	col := s.window.newest(1)[0]
	r = s.window.norm(col)
	if s.first == 0 {
		s.first = r
	}
	if r < s.sol.Residual {
		s.sol.Residual = r
		s.hold(&s.best, col.y)
	}
	s.window.forgetAbove(stale * r)
	size, err := s.norm(col.x.vector, nil, col.x.maxAbs)
	s.newest = r
	return r, r <= s.opt.Tolerance*max(s.first, size), err
}

// norm is the length of a vector, or of the difference of two, whose elements are at most about maxAbs.
func (s *solver) norm(x, y Vector, maxAbs float64) (float64, error) {
	_, exp := math.Frexp(maxAbs)
	r := Residual{X: x, Y: y, Exp: exp}
	var square [1]float64
	err := s.space.GramRow(square[:], r, []Residual{r})
	return math.Ldexp(math.Sqrt(square[0]), exp), err
}

// judgePlain takes a point that plain iteration or a retreat came to.
func (s *solver) judgePlain(r float64) error {
	if math.IsNaN(r) {
		return s.retreat()
	}
	if s.plain {
		fall := math.Log(s.ref / r)
		s.speeding = s.rate > 0 && fall > sooner*s.rate
		s.rate = fall
		s.credit = min(s.credit+earned, mostCredit)
		if s.rate < 0 { // earlier residuals lead back to the repelling point
			s.window.Trim(1)
		}
	}
	s.settle(r)
	return s.choose()
}

// judgeTrial takes a point that extrapolation came to, goes on from there, or returns to the base.
func (s *solver) judgeTrial(r float64) error {
	if s.away == 0 && s.length < nearlyPlain && r <= s.ref {
		s.sol.Accelerated++
		s.plain, s.trial = true, false
		return s.judgePlain(r)
	}
	s.credit--
	s.away++
	if n := s.window.Len(); r > bent*s.predicted { // g is not linear over so large a region
		s.window.Trim(max(n*7/10, 2))
	}
	if !(r <= farthest*s.ref) || r > s.ref && s.credit < 1 {
		s.sol.Refused += s.away
		s.limit = max(s.length/shorter, 1)
		return s.resume()
	}
	if r <= s.ref {
		gain := 2.0 // where plain steps don't lower the residual
		if s.rate > 0 {
			gain = math.Log(s.ref/r) / s.rate
		}
		s.credit = min(s.credit+gain, mostCredit)
		s.limit *= longer
		s.sol.Accelerated += s.away
		s.settle(r)
		s.slow++
		if gain >= 1 {
			s.slow = 0
		} else if s.slow == mostSlow { // residuals from afar distort the newest ones' model
			s.window.Trim(1)
			s.slow = 0
		}
	}
	return s.choose()
}

// settle makes the newest point the base.
func (s *solver) settle(r float64) {
	col := s.window.newest(1)[0]
	s.hold(&s.base, col.y)
	s.hold(&s.next, col.x)
	s.ref, s.away, s.retreats = r, 0, 0
}

// resume goes on from the base by a plain step.
func (s *solver) resume() error {
	s.trial, s.plain, s.away = false, true, 0
	return s.write(Term{1, s.next.vector})
}

// retreat halves the plain step from the base, where g fails at its end.
func (s *solver) retreat() error {
	if s.base == nil || s.retreats == mostRetreats {
		return fmt.Errorf("rna: g fails at a point of plain iteration: %w", s.lastError)
	}
	s.retreats++
	s.trial, s.plain = false, false
	t := math.Ldexp(1, -s.retreats)
	return s.write(Term{1 - t, s.base.vector}, Term{t, s.next.vector})
}

// choose writes the next point: an extrapolated one if there is credit, else a plain one.
func (s *solver) choose() error {
	if s.away == 0 && (s.credit < 1 || s.speeding) || s.window.Len() < 2 {
		return s.resume()
	}
	ok, err := s.extrapolate()
	if err != nil {
		return err
	}
	if n := s.sol.Evaluations; ok && s.away == 0 && n < early && s.length > float64(n) {
		return s.resume() // few plain steps say too little about so long a one
	}
	if ok {
		s.trial, s.plain = true, false
		return nil
	}
	if s.away == 0 {
		return s.resume()
	}
	return s.write(Term{1, s.window.newest(1)[0].x.vector}) // a plain step, away from the base
}

// extrapolate writes an extrapolated point no farther from x than the limit, which g accepts, and reports whether there
// is one.
func (s *solver) extrapolate() (bool, error) {
	res, err := s.window.Solve(Options{Lambda: Set(solveLambda)})
	if err != nil || res.Status != OK {
		return false, err
	}
	if ok, err := s.combine(res.C, 1); !ok || err != nil {
		return false, err
	}
	maxAbs, err := s.space.Store(s.scratch, s.y)
	if err != nil {
		return false, err
	}
	x := s.window.newest(1)[0].x
	length, err := s.norm(s.scratch, x.vector, max(maxAbs, x.maxAbs))
	if err != nil {
		return false, err
	}
	s.predicted = s.window.predict(res.C)
	t := 1.0
	s.length = length / s.newest
	if s.length > s.limit {
		t = s.limit / s.length
		s.length = s.limit
		if ok, err := s.combine(res.C, t); !ok || err != nil {
			return false, err
		}
	}
	for range mostHalvings {
		if s.project != nil {
			s.project()
		}
		if s.accept == nil || s.accept() {
			return true, nil
		}
		t /= 2
		if ok, err := s.combine(res.C, t); !ok || err != nil {
			return false, err
		}
	}
	return false, nil
}

// combine writes x + t (X c − x), x the newest.
func (s *solver) combine(c []float64, t float64) (bool, error) {
	scaled := make([]float64, len(c))
	for i, v := range c {
		scaled[i] = t * v
	}
	scaled[len(c)-1] += 1 - t
	err := s.window.Combine(s.y, scaled, 1)
	if errors.Is(err, ErrOverflow) {
		return false, nil
	}
	return err == nil, err
}
