package device

import (
	"fmt"

	"onlinerna/nn/op/update"
)

// HostUpdate checks u for the parameters w, vectors in host memory, and returns their elements with the numbers of the
// step, rounded to T. A step whose guard is not finite is off: nothing is to be done.
func HostUpdate[T Float](w Vector, u *Update) (p update.Piece[T], n Numbers, off bool, err error) {
	if err = u.Check(w); err != nil {
		return p, n, false, err
	}
	fail := func(what string, err error) (update.Piece[T], Numbers, bool, error) {
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
	x := [NumbersLen]T{T(u.Numbers.Rate), T(u.Numbers.scale()), T(u.Numbers.Step), T(u.Numbers.Share)}
	if err := live(u.Live.Numbers, x[:]); err != nil {
		return fail("numbers", err)
	}
	var guard [1]T
	if err := live(u.Live.Guard, guard[:]); err != nil {
		return fail("guard", err)
	}
	return p, Numbers{Rate: float64(x[0]), Scale: float64(x[1]), Step: float64(x[2]), Share: float64(x[3])},
		guard[0]-guard[0] != 0, nil
}

// live reads dst from r, unless r is empty.
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
