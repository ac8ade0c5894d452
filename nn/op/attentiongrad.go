package op

import "fmt"

// AttentionGrad is the gradient of Attention with respect to an operand: By is 0 for the queries, 1 for the keys, 2 for
// the values and 3 for the bias. Its operands are those of Attention and dy [B,T,E]. With the weights
// P = softmax(Scale · q kᵀ + bias) of a matrix and dS = P ∘ (dy vᵀ − (P ∘ dy vᵀ) 1 1ᵀ) the gradients are
//
//	dq = Scale · dS k,  dk = Scale · dSᵀ q,  dv = Pᵀ dy
//
// and for the bias the sum of dS over the matrices that share it.
type AttentionGrad struct {
	Scale float64
	By    int
}

var _ Composite = AttentionGrad{}

// Kind is "attention_grad".
func (AttentionGrad) Kind() string { return "attention_grad" }

func (o AttentionGrad) String() string {
	return fmt.Sprintf("attention_grad{scale %g, by operand %d}", o.Scale, o.By)
}

// Infer gives the shape of the operand.
func (o AttentionGrad) Infer(in ...Type) (Type, error) {
	of := in[:max(0, len(in)-1)]
	dt, err := Attention{o.Scale}.fits(o, in, of)
	switch {
	case err != nil:
	case o.By < 0 || o.By >= len(of):
		err = wrong(o, in, "By must be an operand, 0 to %d", len(of)-1)
	default:
		if q, v, dy := in[0].Shape, in[2].Shape, in[len(of)].Shape; !dy.Equal(Shape{q[0], q[1], v[2]}) {
			err = wrong(o, in, "the gradient must be [%d %d %d]", q[0], q[1], v[2])
		}
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[o.By].Shape}, nil
}

// Decompose is the gradient of Attention's formula.
func (o AttentionGrad) Decompose(in ...Type) *Term { return gradientOf(Attention{o.Scale}, o.By, in) }

// Run sums in float64.
func (o AttentionGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, attentionGrad[float32], attentionGrad[float64])
}

func attentionGrad[T element](o AttentionGrad, out Tensor, in []Tensor) {
	of := in[:len(in)-1]
	q, k, v, dy := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](in[len(of)])
	rows, d, keys, e := in[0].Shape[1], in[0].Shape[2], in[1].Shape[1], in[2].Shape[2]
	ds, sums := make([]float64, keys), make([]float64, out.Shape.Size())
	add := func(dst int, factor float64, x []T) {
		for j, a := range x {
			sums[dst+j] += factor * float64(a)
		}
	}
	eachQuery[T](Attention{o.Scale}, of, func(i, b int, p []float64) {
		scoreGrad(p, ds, func(s int) float64 { return inner(dy[i*e:][:e], v[(b*keys+s)*e:][:e]) })
		for s := range p {
			switch at := b*keys + s; o.By {
			case 0:
				add(i*d, o.Scale*ds[s], k[at*d:][:d])
			case 1:
				add(at*d, o.Scale*ds[s], q[i*d:][:d])
			case 2:
				add(at*e, p[s], dy[i*e:][:e])
			case 3:
				sums[(b%in[3].Shape[0]*rows+i%rows)*keys+s] += ds[s]
			}
		}
	})
	round(vec[T](out), sums)
}

// scoreGrad sets ds to the gradient of the scores whose softmax is p, given that of each weight.
func scoreGrad(p, ds []float64, of func(s int) float64) {
	mean := 0.0
	for s := range p {
		ds[s] = of(s)
		mean += p[s] * ds[s]
	}
	for s := range p {
		ds[s] = p[s] * (ds[s] - mean)
	}
}
