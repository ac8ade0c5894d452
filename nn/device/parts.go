package device

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"onlinerna/nn/op/update"
)

// Part is a part of the parameters with one set of coefficients.
type Part struct {
	Span
	Tensor int // by index, 0 if the optimiser does not treat tensors separately
	Decays bool
	Rate   float64 // factor of the learning rate
	Matrix int     // by index, -1 for none
}

// Takes reports whether a pass goes over the part.
func (p Part) Takes(on update.Parts) bool {
	return on == update.All || (on == update.Matrices) == (p.Matrix >= 0)
}

// PartNumbers are the inputs of the part's coefficients, for a tensor's ratio.
func (u *Update) PartNumbers(n Numbers, p Part, ratio float64) update.Numbers {
	x := update.Numbers{Rate: n.Rate * p.Rate, Scale: n.Scale, Step: n.Step, Share: n.Share,
		Decays: p.Decays, Ratio: ratio}
	if p.Matrix >= 0 {
		x.Rows, x.Columns = u.Matrices[p.Matrix].Rows, u.Matrices[p.Matrix].Columns
	}
	return x
}

// Passes returns the optimiser's passes for a gradient with limited elements.
func (u *Update) Passes() []update.Pass {
	list := u.Optimizer.Passes()
	if u.Clip.Value > 0 {
		for i, p := range list {
			list[i] = p.ClipTo(u.Clip.Value)
		}
	}
	return list
}

// tensorsApart caches whether optimisers' passes treat tensors separately. Steps look it up and must not allocate.
var tensorsApart sync.Map

// Apart reports whether a pass treats tensors separately.
func (u *Update) Apart() bool {
	if known, ok := tensorsApart.Load(u.Optimizer); ok {
		return known.(bool)
	}
	apart := slices.ContainsFunc(u.Optimizer.Passes(), func(p update.Pass) bool { return p.Tensors() })
	tensorsApart.Store(u.Optimizer, apart)
	return apart
}

// Parts appends the parts of n parameters to list, in order, without those that are left alone. None crosses a multiple
// of block.
func (u *Update) Parts(list []Part, n, block int) []Part {
	tensors := []Span{{0, n}}
	var matrices []Matrix
	if u.Apart() {
		tensors, matrices = u.Tensors, u.Matrices
	}
	rest, factors, m := u.NoDecay, u.Factors, 0
	for i, t := range tensors {
		matrix := -1
		for m < len(matrices) && matrices[m].Tensor < i {
			m++
		}
		if m < len(matrices) && matrices[m].Tensor == i {
			matrix = m
		}
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
				list = append(list, Part{Span{at, to - at}, i, decays, rate, matrix})
			}
			at = to
		}
	}
	return list
}

func (u *Update) checkMatrices() error {
	last := -1
	for i, m := range u.Matrices {
		switch {
		case m.Tensor <= last || m.Tensor >= len(u.Tensors):
			return fmt.Errorf("matrix %d is tensor %d: want them in order, and below %d", i, m.Tensor, len(u.Tensors))
		case m.Rows <= 0 || m.Columns <= 0 || m.Rows*m.Columns != u.Tensors[m.Tensor].Len:
			return fmt.Errorf("matrix %d, %d×%d, is not the %d elements of tensor %d", i, m.Rows, m.Columns,
				u.Tensors[m.Tensor].Len, m.Tensor)
		}
		last = m.Tensor
	}
	return nil
}

// NormLimit is a limit on the norm of a gradient.
type NormLimit struct{ Norm, Eps float64 }

// clipEps is added to the norm that Clip.Norm is divided by, as by torch.nn.utils.clip_grad_norm_.
const clipEps = 1e-6

// Limits are applied one after the other: the Update's, then the optimiser's. A Norm of 0 is none.
func (u *Update) Limits() (l [2]NormLimit) {
	l[0] = NormLimit{u.Clip.Norm, clipEps}
	if o, ok := u.Optimizer.(Limited); ok {
		l[1].Norm = o.MaxNorm()
	}
	return l
}

// Clips reports whether a step of u needs the norm of the gradient.
func (u *Update) Clips() bool {
	l := u.Limits()
	return l[0].Norm > 0 || l[1].Norm > 0
}

// ClippedFor is n with the scale for a gradient of the given norm, not scaled yet.
func (u *Update) ClippedFor(n Numbers, norm float64) Numbers {
	for _, l := range u.Limits() {
		if l.Norm > 0 {
			if k := l.Norm / (math.Abs(n.Scale)*norm + l.Eps); !(k >= 1) {
				n.Scale *= k
			}
		}
	}
	return n
}

func (c Clip) check() error {
	for _, x := range []struct {
		name string
		is   float64
	}{{"norm", c.Norm}, {"element", c.Value}} {
		if !(x.is >= 0) || math.IsInf(x.is, 0) {
			return fmt.Errorf("largest %s %g of the gradient: want a number above 0, or 0 for any", x.name, x.is)
		}
	}
	if c.Norm > 0 && c.Value > 0 {
		return errors.New("the gradient is limited by its norm and by its elements: choose one")
	}
	return nil
}
