package rna

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// AcceleratorOptions are the parameters of an [Accelerator]. The zero value extrapolates online at
// every iterate, with the default [Options], no restarts and no safeguards but those of a solve.
type AcceleratorOptions struct {
	Options

	// Offline leaves the iteration untouched: Next gives points beside the iterates, and the
	// method goes on from x. Otherwise it goes on from the point.
	Offline bool

	// Every extrapolates at each Every-th iterate only. 0 is 1.
	Every int

	// Restart forgets all residuals but the newest when there would be more than so many. 0 never does; it is to
	// be less than the window's capacity, at which residuals go one by one.
	Restart int

	// Value is the caller's function of a point: f, or a held-out loss. When it is set an
	// extrapolated point is taken only if its value is finite and not above that of x.
	Value func(point Source) (float64, error)

	// Lambdas lets Value choose λ among these, the average and x, by [Window.Search].
	// Lambda and Tau must then be unset.
	Lambdas []float64

	// MaxGrowth bounds how the residual may grow: an extrapolated point y⁺ is taken back, for the x that it
	// replaced, when ‖g(y⁺) − y⁺‖ exceeds MaxGrowth times the ‖x − y‖ before it. 1 says that it must
	// not rise, 0 is no bound. Since g(y⁺) is known one iterate later, this is
	// for online acceleration, and takes a window of 2 residuals or more.
	MaxGrowth float64
}

func (o AcceleratorOptions) check(w *Window) error {
	if err := o.Options.check(); err != nil {
		return err
	}
	switch {
	case o.Every < 0:
		return fmt.Errorf("rna: every is %d: it must be 0 (each iterate) or more", o.Every)
	case o.Restart < 0:
		return fmt.Errorf("rna: restart is %d: it must be 0 (never) or more", o.Restart)
	case o.Restart >= w.Cap():
		return fmt.Errorf("rna: restart after %d residuals in a window of %d: it would never happen",
			o.Restart, w.Cap())
	case math.IsNaN(o.MaxGrowth) || o.MaxGrowth < 0:
		return fmt.Errorf("rna: the growth of the residual is limited to %v: it must be 0 (no limit) or more",
			o.MaxGrowth)
	case o.MaxGrowth > 0 && o.Offline:
		return errors.New("rna: the growth of the residual is limited, which an offline extrapolation never shows")
	case o.MaxGrowth > 0 && w.Cap() < 2:
		return errors.New("rna: the growth of the residual is limited in a window of 1 residual, which keeps no " +
			"iterate to go back to")
	case o.Lambdas != nil && o.Value == nil:
		return errors.New("rna: lambdas to choose from without a value to choose by")
	case o.Lambdas != nil && (o.Lambda.set || o.Tau.set):
		return errors.New("rna: lambdas to choose from beside a lambda or tau that is set")
	}
	for _, lambda := range o.Lambdas {
		if err := (Options{Lambda: Set(lambda)}).check(); err != nil {
			return err
		}
	}
	return nil
}

// A Point is a vector that can be read and written: [Slice32], [Slice64], or one of a device.
type Point interface {
	Source
	Sink
}

// An Accelerator drives a [Window] for a loop that the caller owns: it is told each iterate and says
// where to go on.
//
//	Start(y)
//	for … { x = g(y); Next(y, x) }
//
// is the paper's online acceleration. It takes N + 1 vectors while nothing is extrapolated, and one more
// for every extrapolated point in the window, 2N + 1 at most.
type Accelerator struct {
	window *Window
	opt    AcceleratorOptions
	state  AcceleratorState
}

// An AcceleratorState is what a checkpoint keeps of an [Accelerator] beside its window and
// options. It goes through encoding/json without the loss of a bit.
type AcceleratorState struct {
	// Iterates is the number of x taken so far.
	Iterates int `json:"iterates"`

	// OnTrial says that the y of the next x is an extrapolated point, and Residual is the
	// ‖x − y‖₂ before it.
	OnTrial  bool    `json:"on_trial"`
	Residual float64 `json:"residual"`
}

// Outcome is what became of an iterate.
type Outcome int

const (
	// Accepted: the point is the extrapolated one.
	Accepted Outcome = iota
	// NotDue: the point is x, since no extrapolation was due.
	NotDue
	// Refused: the point is x, since the solve was refused, as its Status says.
	Refused
	// ValueRose: the point is x, since the extrapolated one has a larger value, or none that is finite;
	// or since no candidate of a search has a smaller one.
	ValueRose
	// ResidualRose: the extrapolated point of the step before led to a larger residual and is
	// taken back. The point is the x that it replaced.
	ResidualRose
	// Diverged: x is not finite, or too large. The point is the last that is: the x that an
	// extrapolated point replaced, or y. When it was y, g itself diverges there.
	Diverged
)

var outcomeNames = [...]string{
	Accepted:     "accepted",
	NotDue:       "not due",
	Refused:      "refused",
	ValueRose:    "value rose",
	ResidualRose: "residual rose",
	Diverged:     "diverged",
}

func (o Outcome) String() string { return name(outcomeNames[:], int(o), "Outcome") }

// MarshalText gives the outcome by name, so that it reads well in metrics.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// A Step is what [Accelerator.Next] did.
type Step struct {
	Outcome Outcome

	// Result is that of the solve, zero when there was none.
	Result Result

	// Residual is ‖x − y‖₂, NaN when x diverged.
	Residual float64

	// Value and ValueX are the caller's function at the extrapolated point, the best one of a search, and
	// at x. NaN when it was not asked.
	Value, ValueX float64

	// Restarted says that all residuals but the newest were forgotten.
	Restarted bool
}

// NewAccelerator returns an accelerator that keeps its residuals in w, which may hold some. The window
// remains the caller's, to save and to close.
func NewAccelerator(w *Window, opt AcceleratorOptions) (*Accelerator, error) {
	if w == nil {
		return nil, errors.New("rna: accelerator without a window")
	}
	if err := opt.check(w); err != nil {
		return nil, err
	}
	return &Accelerator{window: w, opt: opt}, nil
}

// Window returns the window.
func (a *Accelerator) Window() *Window { return a.window }

// State returns what [Accelerator.Resume] needs beside the window.
func (a *Accelerator) State() AcceleratorState { return a.state }

// Resume goes on from a saved state, where the window was restored as it was then. It takes
// the place of Start.
func (a *Accelerator) Resume(st AcceleratorState) error {
	if st.Iterates < 0 || st.OnTrial && (a.window.Len() == 0 || !(st.Residual >= 0)) {
		return fmt.Errorf("rna: state of an accelerator: %d iterates, residual %v, for a window of %d", st.Iterates,
			st.Residual, a.window.Len())
	}
	a.state = st
	return nil
}

// Start says that the iteration goes on from y: at first, and whenever the caller has moved it.
// Residuals stay. Errors are as for [Window.Push].
func (a *Accelerator) Start(y Source) error {
	a.window.Break()
	a.state.OnTrial = false
	return a.window.Push(y)
}

// Next takes the iterate x = g(y) of the y that Start or the step before gave, and writes the next
// point to y: that from which to go on, or offline a point to evaluate beside x. Online the caller then leaves y
// as it is until the next call, or calls Start. Y and x are distinct vectors.
//
// The step says what the point is. An error is one of Value or of the vectors: y then holds x, if that
// could still be written, and the accelerator is to be started again. Before Start, or with vectors of
// another length, it is an error that changes nothing.
func (a *Accelerator) Next(y Point, x Source) (Step, error) {
	step := Step{Residual: math.NaN(), Value: math.NaN(), ValueX: math.NaN()}
	w := a.window
	if w.tail == nil {
		return step, errors.New("rna: accelerator without a point to go on from: call Start")
	}
	if y == nil || x == nil || y.Len() != w.space.Dim() || x.Len() != w.space.Dim() {
		return step, fmt.Errorf("rna: iterates of another length than %d", w.space.Dim())
	}
	a.state.Iterates++
	err := w.Push(x)
	if bad := (*NonFiniteError)(nil); errors.As(err, &bad) || errors.Is(err, ErrOverflow) {
		step.Outcome = Diverged
		if a.state.OnTrial {
			return step, a.takeBack(y, 1)
		}
		return step, w.Latest(y)
	}
	if err != nil {
		return step, errors.Join(err, copyVector(y, x))
	}
	newest := w.newest(1)[0]
	step.Residual = math.Ldexp(math.Sqrt(w.gram[newest.slot*w.n+newest.slot]), newest.exp)
	if a.state.OnTrial && a.opt.MaxGrowth > 0 && !(step.Residual <= a.opt.MaxGrowth*a.state.Residual) {
		step.Outcome = ResidualRose
		return step, a.takeBack(y, 2)
	}
	a.state.OnTrial = false
	if a.opt.Restart > 0 && w.Len() > a.opt.Restart {
		w.Trim(1)
		step.Restarted = true
	}
	if err := a.extrapolate(y, x, &step); err != nil {
		return step, errors.Join(err, copyVector(y, x))
	}
	if step.Outcome != Accepted {
		return step, copyVector(y, x)
	}
	if a.opt.Offline {
		return step, nil
	}
	w.Break()
	if err := w.Push(y); err != nil {
		return step, errors.Join(err, copyVector(y, x))
	}
	a.state.OnTrial, a.state.Residual = true, step.Residual
	return step, nil
}

// extrapolate writes a point to y and decides on it. Y is to be overwritten by x unless it is Accepted.
func (a *Accelerator) extrapolate(y Point, x Source, step *Step) (err error) {
	if a.opt.Every > 1 && a.state.Iterates%a.opt.Every != 0 {
		step.Outcome = NotDue
		return nil
	}
	if a.opt.Lambdas != nil {
		choice, err := a.window.Search(y, alone(func() (float64, error) { return a.opt.Value(y) }), SearchOptions{
			Lambdas: a.opt.Lambdas, Beta: a.opt.Beta, Newest: a.opt.Newest, MaxNorm: a.opt.MaxNorm,
		})
		if err != nil {
			return err
		}
		step.Result, step.Value, step.ValueX = choice.Result, choice.Value, choice.Candidates[0].Value
		if choice.Kind != Kept {
			return nil
		}
		step.Outcome = ValueRose
		if others := choice.Candidates[1:]; !slices.ContainsFunc(others,
			func(c Candidate) bool { return c.Result.Status == OK }) {
			step.Outcome, step.Result = Refused, others[0].Result
		}
		return nil
	}
	if step.Result, err = a.window.Extrapolate(y, a.opt.Options); err != nil {
		return err
	}
	if step.Result.Status != OK {
		step.Outcome = Refused
		return nil
	}
	if a.opt.Value == nil {
		return nil
	}
	if step.ValueX, err = a.opt.Value(x); err != nil {
		return fmt.Errorf("rna: value of an iterate: %w", err)
	}
	if step.Value, err = a.opt.Value(y); err != nil {
		return fmt.Errorf("rna: value of an extrapolated point: %w", err)
	}
	if !isFinite(step.Value) || step.Value > step.ValueX {
		step.Outcome = ValueRose
	}
	return nil
}

// takeBack writes the x of the column that is back-th from the newest to y and goes on from there.
func (a *Accelerator) takeBack(y Point, back int) error {
	a.state.OnTrial = false
	w := a.window
	x := w.columns[len(w.columns)-back].x
	if x == nil {
		return errors.New("rna: the window does not hold the iterate to go back to")
	}
	if err := w.combine(y, []Term{{Coef: 1, Vector: x.vector}}, x.maxAbs); err != nil {
		return err
	}
	w.continueFrom(x)
	return nil
}

// alone is a function as the loss of one sample.
func alone(value func() (float64, error)) func() ([]float64, error) {
	return func() ([]float64, error) {
		v, err := value()
		return []float64{v}, err
	}
}
