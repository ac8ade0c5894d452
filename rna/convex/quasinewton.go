package convex

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// An inverse estimates the inverse of the Hessian from steps s and changes q of the gradient.
type inverse interface {
	apply(dst, grad []float64)
	update(s, q []float64)
}

// quasiNewton runs BFGS, or L-BFGS with as many vectors as RNA's window has, with the line search, the first step and
// the rules of minFunc, which made the published curves. When the search finds nothing lower in the digits of f the
// curve stays where it is.
func quasiNewton(p Problem, m Method, opt Options, rec *recorder) error {
	n := p.Dim
	var h inverse = &limited{store: opt.Window}
	if m == BFGS {
		h = &full{}
	}
	w := append([]float64(nil), opt.Start...)
	grad, step, s, q := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	line := newLineSearch(p.F, n)
	f := p.F(w, grad)
	stuck := false
	for k := 1; k <= opt.Iterations; k++ {
		if !stuck {
			h.apply(step, grad)
			floats.Scale(-1, step)
			first := 1.0
			if k == 1 {
				first = min(1, 1/max(floats.Norm(grad, 1), math.SmallestNonzeroFloat64))
			}
			if line.along(w, step, f, floats.Dot(grad, step), first) {
				floats.AddScaledTo(s, line.best.w, -1, w)
				floats.SubTo(q, line.best.grad, grad)
				copy(w, line.best.w)
				copy(grad, line.best.grad)
				f = line.best.f
				h.update(s, q)
			} else {
				stuck = true
			}
		}
		if err := rec.add(k, w, f); err != nil {
			return err
		}
	}
	return nil
}

// limited is L-BFGS: two loops over the last pairs, with the scale of the newest.
type limited struct {
	store int
	s, q  [][]float64
	rho   []float64
	alpha []float64
}

func (l *limited) apply(dst, grad []float64) {
	copy(dst, grad)
	k := len(l.s)
	if k == 0 {
		return
	}
	for i := k - 1; i >= 0; i-- {
		l.alpha[i] = l.rho[i] * floats.Dot(l.s[i], dst)
		floats.AddScaled(dst, -l.alpha[i], l.q[i])
	}
	floats.Scale(1/(l.rho[k-1]*floats.Dot(l.q[k-1], l.q[k-1])), dst)
	for i := range k {
		floats.AddScaled(dst, l.alpha[i]-l.rho[i]*floats.Dot(l.q[i], dst), l.s[i])
	}
}

func (l *limited) update(s, q []float64) {
	sq := floats.Dot(s, q)
	if !(sq > 0) {
		return
	}
	if len(l.s) == l.store {
		s0, q0 := l.s[0], l.q[0]
		l.s, l.q, l.rho = append(l.s[:0], l.s[1:]...), append(l.q[:0], l.q[1:]...), append(l.rho[:0], l.rho[1:]...)
		copy(s0, s)
		copy(q0, q)
		l.s, l.q = append(l.s, s0), append(l.q, q0)
	} else {
		l.s, l.q = append(l.s, append([]float64(nil), s...)), append(l.q, append([]float64(nil), q...))
		l.alpha = append(l.alpha, 0)
	}
	l.rho = append(l.rho, 1/sq)
}

// full is BFGS. The inverse is kept as its updates while these take less memory than the matrix, then as the matrix.
type full struct {
	scale float64
	pairs []rankTwo
	h     *mat.SymDense
	hq    []float64
}

// A rankTwo is an update of the inverse H: H⁺ = H − ρ(H q sᵀ + s (H q)ᵀ) + ρ(1 + ρ qᵀH q) s sᵀ, ρ = 1/sᵀq.
type rankTwo struct {
	s, hq    []float64
	rho, own float64 // own is ρ(1 + ρ qᵀH q)
}

func (b *full) apply(dst, grad []float64) {
	if b.h != nil {
		mat.NewVecDense(len(dst), dst).MulVec(b.h, mat.NewVecDense(len(grad), grad))
		return
	}
	copy(dst, grad)
	if b.scale != 0 {
		floats.Scale(b.scale, dst)
	}
	for _, p := range b.pairs {
		sg, hqg := floats.Dot(p.s, grad), floats.Dot(p.hq, grad)
		floats.AddScaled(dst, p.own*sg-p.rho*hqg, p.s)
		floats.AddScaled(dst, -p.rho*sg, p.hq)
	}
}

func (b *full) update(s, q []float64) {
	sq := floats.Dot(s, q)
	if !(sq > 0) {
		return
	}
	n := len(s)
	if b.scale == 0 {
		b.scale = sq / floats.Dot(q, q)
		b.hq = make([]float64, n)
	}
	b.apply(b.hq, q)
	p := rankTwo{s, b.hq, 1 / sq, (1 + floats.Dot(q, b.hq)/sq) / sq}
	switch {
	case b.h != nil:
		b.add(p)
		return
	case 8*len(b.pairs) < n:
		p.s, p.hq = slices.Clone(s), slices.Clone(b.hq)
		b.pairs = append(b.pairs, p)
		return
	}
	b.h = mat.NewSymDense(n, nil)
	for j := range n {
		b.h.SetSym(j, j, b.scale)
	}
	for _, p := range append(b.pairs, p) {
		b.add(p)
	}
	b.pairs = nil
}

// add adds an update to the matrix.
func (b *full) add(p rankTwo) {
	s := mat.NewVecDense(len(p.s), p.s)
	b.h.RankTwo(b.h, -p.rho, mat.NewVecDense(len(p.hq), p.hq), s)
	b.h.SymRankOne(b.h, p.own, s)
}
