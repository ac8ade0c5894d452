package device

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/nn/op/update"
)

// An Optimizer is a rule that changes parameters by their gradient: a comparable value of hyperparameters that are
// constant from step to step. Package optim has them; Vector.Update makes a step.
type Optimizer interface {
	// Name is its name for users, such as "sgd".
	Name() string
	// State names the vectors that it keeps beside the parameters, at most update.MaxState. They start as zeros.
	State() []string
	// Passes define a step.
	Passes() []update.Pass
	// Check returns an error for a hyperparameter out of range.
	Check() error
}

// Limited is an Optimizer with its own limit on the gradient, applied after the limit of the Update.
type Limited interface {
	Optimizer
	// MaxNorm is the largest norm of the gradient of all parameters: a larger gradient is scaled down to it. 0 is no
	// limit.
	MaxNorm() float64
}

// Averaging is an Optimizer whose iterate is a weighted average over steps: its parameters are those where gradients
// are taken, and the iterate lies beside them.
type Averaging interface {
	Optimizer
	// Offset is k: the iterate is the parameters plus k times the first vector of state.
	Offset() float64
	// Weight is a step's weight in the average, given the largest learning rate up to it. Numbers.Share is this over the
	// sum of all weights.
	Weight(most float64) float64
}

// Numbers are the values of an update that change from step to step.
type Numbers struct {
	Rate  float64 // learning rate
	Scale float64 // of the gradient: 1/k where k batches were added up; 0 means 1
	// Step counts the steps since the state was zero, with this one, from 1: for bias corrections. Steps that a
	// LossScaler skipped count here; the LossScaler subtracts them.
	Step float64
	// Share is the weight of the step in the average of an Averaging optimiser, over the sum of the weights so far.
	Share float64
}

// NumbersLen is the number of elements of Numbers in memory.
const NumbersLen = 4

// Values are the numbers in the order of memory.
func (n Numbers) Values() []float64 { return []float64{n.Rate, n.scale(), n.Step, n.Share} }

// scale is Scale with its default.
func (n Numbers) scale() float64 {
	if n.Scale == 0 {
		return 1
	}
	return n.Scale
}

// Update is a step of an optimiser on parameters, the receiver of Vector.Update. Parameters, gradient and vectors of
// state are all different. The gradient is not changed.
type Update struct {
	Optimizer Optimizer
	Grad      Vector
	State     []Vector // as Optimizer.State names them

	NoDecay []Span // elements exempt from weight decay, sorted, disjoint
	// Factors are elements with learning rates of their own, sorted, disjoint. Others have the factor 1.
	Factors []Factor
	// Tensors are the parameters' tensors, one after the other without gaps, for optimisers that treat tensors separately.
	// NoDecay and each of Factors contain a tensor whole or not at all.
	Tensors []Span
	// Matrices are the tensors that count as matrices, sorted: for optimisers that treat matrices in another way.
	Matrices []Matrix

	Clip Clip // limits the gradient

	Numbers Numbers
	Live    Live // read when the step runs: a recording reads it at each run
}

// Clip limits the gradient of a step, scaled. At most one of the limits may be set.
type Clip struct {
	// Norm is the largest norm of the gradient of all parameters: a larger gradient is scaled down to it, as by
	// torch.nn.utils.clip_grad_norm_. 0 is no limit.
	Norm float64
	// Value is the largest absolute value of an element: larger ones are clipped to it. 0 is no limit.
	Value float64
}

// Matrix is a tensor as a matrix with a row for each output.
type Matrix struct {
	Tensor        int // by index
	Rows, Columns int
	Transposed    bool // elements are contiguous by column, not by row
}

// Factor is elements whose learning rate is Rate times that of the step. With 0 the elements and their state do not
// change.
type Factor struct {
	Span
	Rate float64
}

// Check returns an error for a u that is invalid as a step on the parameters w.
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
	if err := u.Clip.check(); err != nil {
		return err
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
			return fmt.Errorf("span %d without decay, [%d, %d), is not after %d and within %d elements", i, d.Off,
				d.Off+d.Len, end, n)
		}
		end = d.Off + d.Len
	}
	end = 0
	for i, f := range u.Factors {
		if f.Off < end || f.Len < 0 || f.Off > n-f.Len {
			return fmt.Errorf("span %d with a factor, [%d, %d), is not after %d and within %d elements", i, f.Off,
				f.Off+f.Len, end, n)
		}
		if !(f.Rate >= 0) || math.IsInf(f.Rate, 0) {
			return fmt.Errorf("factor %g of a learning rate: must be finite and not negative", f.Rate)
		}
		end = f.Off + f.Len
	}
	if !u.Apart() {
		return nil
	}
	if err := u.checkMatrices(); err != nil {
		return err
	}
	end = 0
	rest, factors := u.NoDecay, u.Factors
	for i, t := range u.Tensors {
		if t.Off != end || t.Len < 0 || t.Off > n-t.Len {
			return fmt.Errorf("tensor %d, [%d, %d), is not right behind %d and within %d elements", i, t.Off,
				t.Off+t.Len, end, n)
		}
		end = t.Off + t.Len
		for len(rest) > 0 && rest[0].Off+rest[0].Len <= t.Off {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].Off < end && (rest[0].Off > t.Off || rest[0].Off+rest[0].Len < end) {
			return fmt.Errorf("tensor %d, [%d, %d), decays in part: [%d, %d) does not", i, t.Off, end, rest[0].Off,
				rest[0].Off+rest[0].Len)
		}
		for len(factors) > 0 && factors[0].Off+factors[0].Len <= t.Off {
			factors = factors[1:]
		}
		if len(factors) > 0 && factors[0].Off < end && (factors[0].Off > t.Off || factors[0].Off+factors[0].Len < end) {
			return fmt.Errorf("tensor %d, [%d, %d), has a factor in part: [%d, %d)", i, t.Off, end, factors[0].Off,
				factors[0].Off+factors[0].Len)
		}
	}
	if end != n {
		return fmt.Errorf("tensors end at %d of %d elements", end, n)
	}
	return nil
}
