package device

import "fmt"

// Piece is some elements of the parameters, of their gradient and of the vectors of state, as many of each.
type Piece[T Float] struct {
	W, G  []T
	State [MaxState][]T // those that the optimiser has
}

// Kernels are the kernels of a name on elements of type T. Arithmetic is T's, each operation rounded.
type Kernels[T Float] struct {
	// Apply changes the parameters and the state.
	Apply func(p Piece[T], c *[8]T)
	// Measure adds up squares in float64, those of what element i has in sums[·][i%8]: of two quantities, the arguments
	// of Adaptive.Ratio. It may change the state, and does so once in a step, before Apply.
	Measure func(p Piece[T], c *[8]T, sums *[2][8]float64)
}

var (
	kernels32 = map[string]Kernels[float32]{}
	kernels64 = map[string]Kernels[float64]{}
)

// define names kernels.
func define(name string, k32 Kernels[float32], k64 Kernels[float64]) {
	if _, ok := kernels32[name]; ok {
		panic("two kernels of optimisers are called " + name)
	}
	kernels32[name], kernels64[name] = k32, k64
}

// KernelsOf is the kernels that define a step of o.
func KernelsOf[T Float](o Optimizer) (k Kernels[T], err error) {
	p := o.Passes()
	var apply, measure Kernels[T]
	switch any(k).(type) {
	case Kernels[float32]:
		apply, measure = any(kernels32[p.Apply]).(Kernels[T]), any(kernels32[p.Measure]).(Kernels[T])
	case Kernels[float64]:
		apply, measure = any(kernels64[p.Apply]).(Kernels[T]), any(kernels64[p.Measure]).(Kernels[T])
	}
	k = Kernels[T]{Apply: apply.Apply, Measure: measure.Measure}
	if k.Apply == nil || p.Measure != "" && k.Measure == nil {
		return k, fmt.Errorf("%s: no kernels %+v", o.Name(), p)
	}
	return k, nil
}

// Of is elements of p.
func (p Piece[T]) Of(s Span) Piece[T] {
	q := Piece[T]{W: p.W[s.Off : s.Off+s.Len], G: p.G[s.Off : s.Off+s.Len]}
	for i, x := range p.State {
		if x != nil {
			q.State[i] = x[s.Off : s.Off+s.Len]
		}
	}
	return q
}

// In is c in type T.
func In[T Float](c Coefficients) (t [8]T) {
	for i, x := range c {
		t[i] = T(x)
	}
	return t
}

// Sum adds up the lanes of a measurement.
func Sum(lanes [8]float64) (sum float64) {
	for _, x := range lanes {
		sum += x
	}
	return sum
}

// HostUpdate checks u on the parameters w, vectors in host memory, and is their elements with the numbers of the step, rounded
// to T. A step whose guard is not finite is off: nothing is to be done.
func HostUpdate[T Float](w Vector, u *Update) (p Piece[T], n Numbers, off bool, err error) {
	if err = u.Check(w); err != nil {
		return p, n, false, err
	}
	fail := func(what string, err error) (Piece[T], Numbers, bool, error) {
		return p, n, false, fmt.Errorf("%s: %s: %w", u.Optimizer.Name(), what, err)
	}
	if p.W, err = HostElements[T](w, w.Len()); err != nil {
		return fail("parameters", err)
	}
	if p.G, err = HostElements[T](u.Grad, w.Len()); err != nil {
		return fail("gradient", err)
	}
	for i, name := range u.Optimizer.State() {
		if p.State[i], err = HostElements[T](u.State[i], w.Len()); err != nil {
			return fail(name, err)
		}
	}
	x := [NumbersLen]T{T(u.Numbers.Rate), T(u.Numbers.scale()), T(u.Numbers.Step)}
	if err := live(u.Live.Numbers, x[:]); err != nil {
		return fail("numbers", err)
	}
	var guard [1]T
	if err := live(u.Live.Guard, guard[:]); err != nil {
		return fail("guard", err)
	}
	return p, Numbers{Rate: float64(x[0]), Scale: float64(x[1]), Step: float64(x[2])}, guard[0]-guard[0] != 0, nil
}

// live reads dst from r, if r is there.
func live[T Float](r Region, dst []T) error {
	if r.Memory == nil {
		return nil
	}
	from, err := HostSlice[T](r)
	if err == nil && len(from) != len(dst) {
		err = fmt.Errorf("region of %d elements: want %d", len(from), len(dst))
	}
	copy(dst, from)
	return err
}
