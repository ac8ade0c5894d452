package op

import (
	"fmt"
	"math"

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
	want := []operand{{"queries", 3, float}, {"keys", 3, float}, {"values", 3, float}}
	if len(in) > 3 {
		want = append(want, operand{"bias", 3, float})
	}
	dt, err := check(o, in, want...)
	if err != nil {
		return Type{}, err
	}
	q, k, v := in[0].Shape, in[1].Shape, in[2].Shape
	switch {
	case !(math.Abs(o.Scale) > 0) || math.IsInf(o.Scale, 0):
		err = wrong(o, in, "the scale must be finite and not 0")
	case q[0] != k[0] || q[2] != k[2]:
		err = wrong(o, in, "queries are %d of %d elements a row, keys %d of %d", q[0], q[2], k[0], k[2])
	case k[0] != v[0] || k[1] != v[1]:
		err = wrong(o, in, "there are %d times %d keys, %d times %d values", k[0], k[1], v[0], v[1])
	case len(in) == 4 && (q[0]%in[3].Shape[0] != 0 || in[3].Shape[1] != q[1] || in[3].Shape[2] != k[1]):
		err = wrong(o, in, "the bias must be [H %d %d] with an H that divides %d", q[1], k[1], q[0])
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, q[0], q[1], v[2]), nil
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

// Gradients differentiates the formula: gradients compute the scores again, which need not be kept.
func (o Attention) Gradients(in ...Type) ([]*Term, error) { return gradientsOf(o, in) }

// Run sums in float64.
func (o Attention) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, attention[float32], attention[float64])
}

func attention[T element](o Attention, out Tensor, in []Tensor) {
	q, k, v, y := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](out)
	rows, d, keys, e := in[0].Shape[1], in[0].Shape[2], in[1].Shape[1], in[2].Shape[2]
	p := make([]float64, keys)
	for i := range len(q) / d { // queries of all matrices
		b := i / rows
		top, sum := math.Inf(-1), 0.0
		for s := range p {
			p[s] = 0
			for j, a := range q[i*d:][:d] {
				p[s] += float64(a) * float64(k[(b*keys+s)*d+j])
			}
			p[s] *= o.Scale
			if len(in) == 4 {
				bias := vec[T](in[3])
				p[s] += float64(bias[(b%in[3].Shape[0]*rows+i%rows)*keys+s])
			}
			top = max(top, p[s])
		}
		for s, a := range p {
			p[s] = math.Exp(a - top)
			sum += p[s]
		}
		for j := range e {
			mean := 0.0
			for s, a := range p {
				mean += a * float64(v[(b*keys+s)*e+j])
			}
			y[i*e+j] = T(mean / sum)
		}
	}
}
