package op

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/op/expr"
)

// Attention is scaled dot-product attention (Vaswani et al. 2017), for queries [B,T,D], keys [B,S,D], values [B,S,E]
// and, if there is one, a bias [H,T,S] that is added to the scores of B/H times H heads:
//
//	y[b] = softmax(Scale · q[b] k[b]ᵀ + bias[b mod H]) v[b]
//
// The softmax is along the S keys.
type Attention struct {
	Scale float64
}

var _ Composite = Attention{}

// Kind is "attention".
func (Attention) Kind() string { return "attention" }

func (o Attention) String() string { return fmt.Sprintf("attention{scale %g}", o.Scale) }

// Infer gives [B,T,E].
func (o Attention) Infer(in ...Type) (Type, error) {
	dt, err := o.fits(o, in, in)
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[0], in[0].Shape[1], in[2].Shape[2]), nil
}

// fits checks the scale of op as, whose operands are all, and the first of these, which are an attention's.
func (o Attention) fits(as Op, all, in []Type) (DType, error) {
	want := []operand{{"queries", 3, float}, {"keys", 3, float}, {"values", 3, float}}
	if len(in) > 3 {
		want = append(want, operand{"bias", 3, float})
	}
	if len(all) > len(in) {
		want = append(want, operand{"gradient", 3, float})
	}
	dt, err := check(as, all, want...)
	if err != nil {
		return 0, err
	}
	q, k, v := in[0].Shape, in[1].Shape, in[2].Shape
	switch {
	case !(math.Abs(o.Scale) > 0) || math.IsInf(o.Scale, 0):
		err = wrong(as, all, "the scale must be finite and not 0")
	case q[0] != k[0] || q[2] != k[2]:
		err = wrong(as, all, "queries are %d of %d elements a row, keys %d of %d", q[0], q[2], k[0], k[2])
	case k[0] != v[0] || k[1] != v[1]:
		err = wrong(as, all, "there are %d times %d keys, %d times %d values", k[0], k[1], v[0], v[1])
	case len(in) == 4 && (q[0]%in[3].Shape[0] != 0 || in[3].Shape[1] != q[1] || in[3].Shape[2] != k[1]):
		err = wrong(as, all, "the bias must be [H %d %d] with an H that divides %d", q[1], k[1], q[0])
	}
	return dt, err
}

// FLOPs counts both products.
func (Attention) FLOPs(in ...Type) int64 {
	q, v := in[0].Shape, in[2].Shape
	return 2 * int64(q[0]) * int64(q[1]) * int64(v[1]) * int64(q[2]+v[2])
}

// Decompose is two products with a softmax in between.
func (o Attention) Decompose(in ...Type) *Term {
	q, k := in[0].Shape, in[1].Shape
	scores := Apply(MatMul{TransB: true}, Leaf(0), Leaf(1))
	if len(in) == 4 {
		h, of := in[3].Shape[0], Shape{q[0], q[1], k[1]}
		apart, matrix := Shape{q[0] / h, h, q[1] * k[1]}, Shape{1, h, q[1] * k[1]}
		scores = Apply(Map{expr.Arg(0).Scale(o.Scale).Add(expr.Arg(1))}, shaped(scores, of, apart),
			shaped(Leaf(3), in[3].Shape, matrix))
		scores = shaped(scores, apart, of)
	} else {
		scores = Apply(Map{expr.Arg(0).Scale(o.Scale)}, scores)
	}
	return Apply(MatMul{}, Apply(Softmax{}, scores), Leaf(2))
}

// Gradients compute the scores again, which need not be kept.
func (o Attention) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	args := make([]*Term, len(in), len(in)+1)
	for i := range args {
		args[i] = Leaf(Operand(i))
	}
	args = append(args, Leaf(ResultGrad))
	all := make([]*Term, len(in))
	for i := range all {
		all[i] = Apply(AttentionGrad{o.Scale, i}, args...)
	}
	return all, nil
}

// Run sums in float64.
func (o Attention) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, attention[float32], attention[float64])
}

func attention[T element](o Attention, out Tensor, in []Tensor) {
	v, y := vec[T](in[2]), vec[T](out)
	keys, e := in[2].Shape[1], in[2].Shape[2]
	eachQuery[T](o, in, func(i, b int, p []float64) {
		for j := range e {
			mean := 0.0
			for s, a := range p {
				mean += a * float64(v[(b*keys+s)*e+j])
			}
			y[i*e+j] = T(mean)
		}
	})
}

// eachQuery calls f for query i of all matrices, one of matrix b, with its weights.
func eachQuery[T element](o Attention, in []Tensor, f func(i, b int, p []float64)) {
	q, k := vec[T](in[0]), vec[T](in[1])
	rows, d, keys := in[0].Shape[1], in[0].Shape[2], in[1].Shape[1]
	p := make([]float64, keys)
	for i := range len(q) / d {
		b := i / rows
		for s := range p {
			p[s] = o.Scale * inner(q[i*d:][:d], k[(b*keys+s)*d:][:d])
			if len(in) == 4 {
				bias := vec[T](in[3])
				p[s] += float64(bias[(b%in[3].Shape[0]*rows+i%rows)*keys+s])
			}
		}
		weigh(p)
		f(i, b, p)
	}
}

// weigh sets p to its softmax.
func weigh(p []float64) {
	top, sum := slices.Max(p), 0.0
	for s, a := range p {
		p[s] = math.Exp(a - top)
		sum += p[s]
	}
	for s := range p {
		p[s] /= sum
	}
}

func inner[T element](a, b []T) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}
