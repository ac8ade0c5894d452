package convex

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"onlinerna/rna"
)

// A Method is an [Iteration] alone, or RNA around one: [Offline], [Online], [PlainOnline] or [Anderson]. Methods can be
// compared.
type Method interface {
	// String is the name in the curves of the paper's authors, as online_rna_gd.
	String() string

	iteration() Iteration
}

// An Iteration is a method without RNA.
type Iteration string

// Iterations for any function.
const (
	GD              Iteration = "gd"
	NesterovConvex  Iteration = "nesterov_convex"
	NesterovStrong  Iteration = "nesterov_strong"
	OptimalAdaptive Iteration = "optimal_adaptive" // Algorithm 3, on an estimate sequence
	PrintedAdaptive Iteration = "printed_adaptive" // Algorithm 3 as printed, which breaks Nesterov's bound
	LBFGS           Iteration = "lbfgs"
	BFGS            Iteration = "bfgs"
)

// Iterations for sums, by samples.
const (
	SGD      Iteration = "sgd"
	SVRG     Iteration = "svrg"
	SAGA     Iteration = "saga"
	Katyusha Iteration = "katyusha"
)

func (i Iteration) String() string       { return string(i) }
func (i Iteration) iteration() Iteration { return i }

// Offline leaves the iteration as it is and extrapolates beside it.
type Offline struct{ Of Iteration }

func (m Offline) String() string       { return "offline_rna_" + m.Of.String() }
func (m Offline) iteration() Iteration { return m.Of }

// Online takes the extrapolated point where it is better.
type Online struct{ Of Iteration }

func (m Online) String() string       { return "online_rna_" + m.Of.String() }
func (m Online) iteration() Iteration { return m.Of }

// PlainOnline always takes the extrapolated point: eq. (online_rna). It goes around GD.
type PlainOnline struct{ Of Iteration }

func (m PlainOnline) String() string       { return "plain_online_rna_" + m.Of.String() }
func (m PlainOnline) iteration() Iteration { return m.Of }

// Anderson is PlainOnline with λ = 0.
type Anderson struct{ Of Iteration }

func (m Anderson) String() string       { return "anderson_" + m.Of.String() }
func (m Anderson) iteration() Iteration { return m.Of }

// Deterministic lists the methods of [Minimize], those of [Published] first.
func Deterministic() []Method {
	return []Method{
		GD, NesterovConvex, NesterovStrong, Offline{GD}, Offline{NesterovConvex}, Offline{NesterovStrong}, Online{GD},
		Online{NesterovConvex}, Online{NesterovStrong}, LBFGS, BFGS, OptimalAdaptive, PlainOnline{GD}, Anderson{GD},
		PrintedAdaptive,
	}
}

// Stochastic lists the methods of [MinimizeSum], those of [Published] first.
func Stochastic() []Method {
	return []Method{
		SGD, SVRG, SAGA, Offline{SGD}, Offline{SVRG}, Offline{SAGA}, Online{SGD}, Online{SVRG}, Online{SAGA},
		Katyusha, Offline{Katyusha}, Online{Katyusha},
	}
}

// Published lists the methods whose curves the authors published, in their order.
func Published(stochastic bool) []Method {
	if stochastic {
		return Stochastic()[:10]
	}
	return Deterministic()[:10]
}

// ParseMethod returns the method of [Deterministic] or [Stochastic] with this name.
func ParseMethod(name string) (Method, error) {
	for _, m := range append(Deterministic(), Stochastic()...) {
		if m.String() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("convex: unknown method %q", name)
}

// A Func is a function to minimise: it returns f(w) and, unless grad is nil, writes ∇f(w) to grad. It
// must not change or keep w.
type Func func(w, grad []float64) float64

// A Problem is a smooth convex function with its known constants.
type Problem struct {
	F   Func
	Dim int

	// Values, when set, writes f(points[k]) to dst[k]: for functions that evaluate several points at little more than
	// the cost of one.
	Values func(dst []float64, points [][]float64)

	// L is the Lipschitz constant of the gradient. 0 is unknown: step sizes are then found by backtracking alone, in
	// the methods that have it.
	L float64

	// Mu is the strong convexity of f, which nesterov_strong and printed_adaptive take, and optimal_adaptive may. 0 is
	// unknown.
	Mu float64

	linear *linear // of a risk
}

// Defaults for fields of [Options] that are not set: those of the paper.
const (
	DefaultIterations = 500
	DefaultEpochs     = 100
	DefaultWindow     = 10
	DefaultLambda     = 1e-8
)

// Options are the parameters of a run. The zero value is the paper's.
type Options struct {
	// Iterations of [Minimize], or epochs of [MinimizeSum]: the passes over the data, of any kind. 0 is the default.
	Iterations int

	// Window is the number N of residuals, 0 the default.
	Window int

	// Lambda is RNA's λ, relative to ‖R‖². Unset it is DefaultLambda.
	Lambda rna.Value

	// Start is w₀, nil the origin.
	Start []float64

	// Seed of the samples drawn.
	Seed uint64

	// Observe is called after each iteration, for w₀ too. Its time does not count. An error ends the run.
	Observe func(Progress) error
}

// Progress reports an iteration.
type Progress struct {
	// At is the iteration, or the number of epochs.
	At int

	// W is the method's current point, extrapolated if the method extrapolates. It is valid during the call.
	W []float64

	// Value is f(W).
	Value float64
}

// A Result is a run: its value k is after iteration (or epochs) At[k].
type Result struct {
	At      []int
	Values  []float64
	Seconds []float64 // since the start
	W       []float64 // the last point
}

// A DivergedError reports values that are no longer finite. The result returned with it ends before them.
type DivergedError struct {
	Method Method
	At     int
	Value  float64
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("convex: %s diverged: f is %v after iteration %d", e.Method, e.Value, e.At)
}

// Minimize runs a deterministic method. After an error, a [*DivergedError] or one from Observe, the result covers the
// iterations before it.
func Minimize(p Problem, m Method, opt Options) (Result, error) {
	if !slices.Contains(Deterministic(), m) {
		return Result{}, fmt.Errorf("convex: no deterministic method: %v", m)
	}
	if p.F == nil || p.Dim < 1 {
		return Result{}, errors.New("convex: a problem without a function or dimension")
	}
	if !(p.L >= 0) || !(p.Mu >= 0) || math.IsInf(p.L, 0) || p.L > 0 && p.Mu > p.L {
		return Result{}, fmt.Errorf("convex: a problem with L = %v and μ = %v", p.L, p.Mu)
	}
	opt, err := opt.withDefaults(p.Dim, DefaultIterations)
	if err != nil {
		return Result{}, err
	}
	if p.Values == nil {
		p.Values = func(dst []float64, points [][]float64) {
			for k, w := range points {
				dst[k] = p.F(w, nil)
			}
		}
	}
	if p.linear != nil {
		defer p.linear.team.begin()()
	}
	rec := newRecorder(m, opt)
	if err := rec.add(0, opt.Start, p.F(opt.Start, nil)); err != nil {
		return rec.result, err
	}
	if m == LBFGS || m == BFGS {
		err := quasiNewton(p, m, opt, rec)
		return rec.result, err
	}
	err = descend(p, m, opt, rec)
	return rec.result, err
}

func (o Options) withDefaults(dim, iterations int) (Options, error) {
	switch {
	case o.Iterations < 0:
		return o, fmt.Errorf("convex: %d iterations", o.Iterations)
	case o.Window < 0 || o.Window > rna.MaxColumns:
		return o, fmt.Errorf("convex: a window of %d residuals: it must be 1 to %d", o.Window, rna.MaxColumns)
	case o.Start != nil && len(o.Start) != dim:
		return o, fmt.Errorf("convex: a start of %d elements for a function of %d", len(o.Start), dim)
	case !(o.Lambda.Or(DefaultLambda) >= 0):
		return o, fmt.Errorf("convex: lambda is %v: it must be 0 or more", o.Lambda.Or(0))
	}
	if o.Iterations == 0 {
		o.Iterations = iterations
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	o.Lambda = rna.Set(o.Lambda.Or(DefaultLambda))
	if o.Start == nil {
		o.Start = make([]float64, dim)
	}
	return o, nil
}

// A recorder keeps the curve of a run.
type recorder struct {
	method  Method
	observe func(Progress) error
	result  Result
	started time.Time
}

func newRecorder(m Method, opt Options) *recorder {
	return &recorder{method: m, observe: opt.Observe, started: time.Now()}
}

func (r *recorder) add(at int, w []float64, value float64) error {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return &DivergedError{Method: r.method, At: at, Value: value}
	}
	res := &r.result
	res.At = append(res.At, at)
	res.Values = append(res.Values, value)
	res.Seconds = append(res.Seconds, time.Since(r.started).Seconds())
	res.W = append(res.W[:0], w...)
	if r.observe == nil {
		return nil
	}
	paused := time.Now()
	err := r.observe(Progress{At: at, W: w, Value: value})
	r.started = r.started.Add(time.Since(paused))
	return err
}
