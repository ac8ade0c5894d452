package device

import (
	"errors"
	"fmt"
	"math"
)

// An Optimizer is a rule that changes parameters by their gradient: a comparable value of hyperparameters, which stay as they are from
// step to step. [SGD], [AdamW], [LARS] and [LAMB] are optimisers; Vector.Update makes a step.
//
// A step is one or two passes of kernels over parts of the vectors. Kernels are defined in this package for float32 and
// float64 (see [Kernels]), and devices have their own under the same names.
type Optimizer interface {
	// Name is what users call it, as "sgd".
	Name() string
	// State names the vectors that it keeps beside the parameters, at most MaxState. They start as zeros.
	State() []string
	// Passes names the kernels of a step.
	Passes() Passes
	// Hyper is the hyperparameters for devices that make coefficients themselves, in the optimiser's own order.
	Hyper() Coefficients
	// Coefficients are the numbers that the kernels of a step take for a part of the parameters. ratio is that of the
	// part's tensor, 1 without.
	Coefficients(n Numbers, decays bool, ratio float64) Coefficients
	// Check says which hyperparameter is out of its range.
	Check() error
}

// Adaptive is an Optimizer that scales the step of each tensor by a ratio of norms: Passes names a kernel that measures them.
type Adaptive interface {
	Optimizer
	// Ratio is that of a tensor with the sums of squares x and y that the kernel found.
	Ratio(n Numbers, x, y float64) float64
	// MaxNorm is the norm to which the gradient of all parameters is scaled down where it is larger; 0 leaves it.
	MaxNorm() float64
}

// Passes are the names of an optimiser's kernels.
type Passes struct {
	Measure string // finds the norms of an Adaptive optimiser; empty for others
	Apply   string // changes the parameters
}

// MaxState is how many vectors of state there may be.
const MaxState = 2

// Coefficients are numbers of an optimiser in an order of its own.
type Coefficients [8]float64

// Numbers are what of an update changes from step to step.
type Numbers struct {
	Rate  float64 // learning rate
	Scale float64 // of the gradient: 1/k where k batches were added up; 0 means 1
	// Step counts the steps since the state was zero, with this one, from 1: for bias corrections. Steps that a LossScaler skipped
	// count here; it takes them off itself.
	Step float64
}

// NumbersLen is how many elements Numbers are in memory.
const NumbersLen = 3

// Values are the numbers as they lie in memory.
func (n Numbers) Values() []float64 { return []float64{n.Rate, n.scale(), n.Step} }

// scale is Scale with its default.
func (n Numbers) scale() float64 {
	if n.Scale == 0 {
		return 1
	}
	return n.Scale
}

// Update is a step of an optimiser on parameters, the receiver of Vector.Update. Parameters, gradient and vectors of state
// are all different. The gradient is left as it is.
type Update struct {
	Optimizer Optimizer
	Grad      Vector
	State     []Vector // as Optimizer.State names them

	NoDecay []Span // elements exempt from weight decay, sorted, disjoint
	// Factors are elements with learning rates of their own, sorted, disjoint. Others have the factor 1.
	Factors []Factor
	// Tensors are the parameters, one tensor behind the other without gaps: for Adaptive optimisers. A tensor in NoDecay has the
	// ratio 1, and none is in it by half, or in one of Factors.
	Tensors []Span

	// MaxNorm is the norm to which the gradient of all parameters, scaled, is scaled down where it is larger; 0 leaves it. An Adaptive
	// optimiser that has such a norm of its own applies that behind it.
	MaxNorm float64

	Numbers Numbers
	Live    Live // what is read when the step runs: a recording reads it at each run
}

// Factor is elements whose learning rate is Rate times that of the step. Where it is 0 the elements and their state are left alone.
type Factor struct {
	Span
	Rate float64
}

// Check says what is wrong with u as a step on the parameters w.
func (u *Update) Check(w Vector) error {
	o := u.Optimizer
	if o == nil {
		return errors.New("update: no optimiser")
	}
	if err := u.check(w); err != nil {
		return fmt.Errorf("%s: %w", o.Name(), err)
	}
	return nil
}

func (u *Update) check(w Vector) error {
	if err := u.Optimizer.Check(); err != nil {
		return err
	}
	names := u.Optimizer.State()
	if len(names) != len(u.State) {
		return fmt.Errorf("%d vectors of state, want %d: %v", len(u.State), len(names), names)
	}
	n := w.Len()
	if err := sameLen("gradient", u.Grad, n); err != nil {
		return err
	}
	if !(u.MaxNorm >= 0) || math.IsInf(u.MaxNorm, 0) {
		return fmt.Errorf("largest norm %g of the gradient: want a number above 0, or 0 for any", u.MaxNorm)
	}
	if u.Grad == w {
		return errors.New("the gradient is the parameters")
	}
	for i, s := range u.State {
		if err := sameLen(names[i], s, n); err != nil {
			return err
		}
		if s == w || s == u.Grad || i > 0 && s == u.State[0] {
			return fmt.Errorf("%s is also another operand", names[i])
		}
	}
	if u.Live.Numbers.Memory == nil && !(u.Numbers.Step >= 1) {
		return fmt.Errorf("step %g: steps count from 1", u.Numbers.Step)
	}
	return u.checkSpans(n)
}

func sameLen(what string, v Vector, n int) error {
	if v == nil {
		return fmt.Errorf("%s is missing", what)
	}
	if v.Len() != n {
		return fmt.Errorf("%s: vector of %d elements where one of %d is needed", what, v.Len(), n)
	}
	return nil
}

func (u *Update) checkSpans(n int) error {
	end := 0
	for i, d := range u.NoDecay {
		if d.Off < end || d.Len < 0 || d.Off > n-d.Len {
			return fmt.Errorf("span %d without decay, [%d, %d), is not after %d and within %d elements", i, d.Off, d.Off+d.Len, end, n)
		}
		end = d.Off + d.Len
	}
	end = 0
	for i, f := range u.Factors {
		if f.Off < end || f.Len < 0 || f.Off > n-f.Len {
			return fmt.Errorf("span %d with a factor, [%d, %d), is not after %d and within %d elements", i, f.Off, f.Off+f.Len, end, n)
		}
		if !(f.Rate >= 0) || math.IsInf(f.Rate, 0) {
			return fmt.Errorf("factor %g of a learning rate: must be finite and not negative", f.Rate)
		}
		end = f.Off + f.Len
	}
	if _, ok := u.Optimizer.(Adaptive); !ok {
		return nil
	}
	end = 0
	rest, factors := u.NoDecay, u.Factors
	for i, t := range u.Tensors {
		if t.Off != end || t.Len < 0 || t.Off > n-t.Len {
			return fmt.Errorf("tensor %d, [%d, %d), is not right behind %d and within %d elements", i, t.Off, t.Off+t.Len, end, n)
		}
		end = t.Off + t.Len
		for len(rest) > 0 && rest[0].Off+rest[0].Len <= t.Off {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].Off < end && (rest[0].Off > t.Off || rest[0].Off+rest[0].Len < end) {
			return fmt.Errorf("tensor %d, [%d, %d), decays in part: [%d, %d) does not", i, t.Off, end, rest[0].Off, rest[0].Off+rest[0].Len)
		}
		for len(factors) > 0 && factors[0].Off+factors[0].Len <= t.Off {
			factors = factors[1:]
		}
		if len(factors) > 0 && factors[0].Off < end && (factors[0].Off > t.Off || factors[0].Off+factors[0].Len < end) {
			return fmt.Errorf("tensor %d, [%d, %d), has a factor in part: [%d, %d)", i, t.Off, end, factors[0].Off, factors[0].Off+factors[0].Len)
		}
	}
	if end != n {
		return fmt.Errorf("tensors end at %d of %d elements", end, n)
	}
	return nil
}

// Part is a part of the parameters that one set of coefficients serves.
type Part struct {
	Span
	Tensor int // by index, 0 where the optimiser is not Adaptive
	Decays bool
	Rate   float64 // factor of the learning rate
}

// Numbers is n for the part.
func (p Part) Numbers(n Numbers) Numbers {
	n.Rate *= p.Rate
	return n
}

// Parts appends the parts of n parameters to list, in order, without those that are left alone. None crosses a multiple of block.
func (u *Update) Parts(list []Part, n, block int) []Part {
	tensors := []Span{{0, n}}
	if _, ok := u.Optimizer.(Adaptive); ok {
		tensors = u.Tensors
	}
	rest, factors := u.NoDecay, u.Factors
	for i, t := range tensors {
		for at, end := t.Off, t.Off+t.Len; at < end; {
			for len(rest) > 0 && rest[0].Off+rest[0].Len <= at {
				rest = rest[1:]
			}
			to, decays := min(end, (at/block+1)*block), true
			if len(rest) > 0 && rest[0].Off > at {
				to = min(to, rest[0].Off)
			} else if len(rest) > 0 {
				to, decays = min(to, rest[0].Off+rest[0].Len), false
			}
			for len(factors) > 0 && factors[0].Off+factors[0].Len <= at {
				factors = factors[1:]
			}
			rate := 1.
			if len(factors) > 0 && factors[0].Off > at {
				to = min(to, factors[0].Off)
			} else if len(factors) > 0 {
				to, rate = min(to, factors[0].Off+factors[0].Len), factors[0].Rate
			}
			if rate > 0 {
				list = append(list, Part{Span{at, to - at}, i, decays, rate})
			}
			at = to
		}
	}
	return list
}

// Clipped is n with a scale by which a gradient of the given norm is no longer than max: unless max is 0, scale is divided by
// max(1, scale·norm/max).
func (n Numbers) Clipped(norm, max float64) Numbers {
	if max != 0 {
		if k := math.Abs(n.Scale) * norm / max; !(k <= 1) {
			n.Scale /= k
		}
	}
	return n
}

// clipEps is added to the norm that MaxNorm is divided by, as by torch.nn.utils.clip_grad_norm_.
const clipEps = 1e-6

// ClippedFor is n with the scale for a gradient of the given norm, as far as u's MaxNorm and its optimiser's limit it.
func (u *Update) ClippedFor(n Numbers, norm float64) Numbers {
	if u.MaxNorm > 0 {
		if k := u.MaxNorm / (math.Abs(n.Scale)*norm + clipEps); k < 1 {
			n.Scale *= k
		}
	}
	if o, ok := u.Optimizer.(Adaptive); ok {
		n = n.Clipped(norm, o.MaxNorm())
	}
	return n
}

// Clips says whether a step of u needs the norm of the gradient.
func (u *Update) Clips() bool {
	o, ok := u.Optimizer.(Adaptive)
	return u.MaxNorm > 0 || ok && o.MaxNorm() > 0
}

// biasCorrection is 1 − βᵗ.
func biasCorrection(beta, t float64) float64 { return -math.Expm1(t * math.Log(beta)) }

// inRange says that a hyperparameter is not a number from lo to hi.
func inRange(name string, x, lo, hi float64) error {
	if x >= lo && x <= hi {
		return nil
	}
	switch {
	case hi < 1 && lo == 0:
		return fmt.Errorf("%s %g: want a number in [0, 1)", name, x)
	case hi < math.MaxFloat64:
		return fmt.Errorf("%s %g: want a number from %g to %g", name, x, lo, hi)
	case lo > 0:
		return fmt.Errorf("%s %g: want a finite number above 0", name, x)
	}
	return fmt.Errorf("%s %g: want a finite number, at least %g", name, x, lo)
}
