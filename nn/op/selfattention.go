package op

import (
	"fmt"
	"math"
)

// SelfAttention is scaled dot-product attention of the tokens of a sequence to each other by Heads heads, for rows
// [N·T,3C] and, optionally, a bias [G,T,T], where T is Tokens and G divides N·Heads. A row holds the query, the key and
// the value of a token one after the other, each split into heads. With b = n·Heads + h, sequence n and head h:
//
//	y[n,h] = softmax(Scale · q[n,h] k[n,h]ᵀ + bias[b mod G]) v[n,h]
//
// The softmax is along the keys. The result [N·T,C] has the heads of a token one after the other.
type SelfAttention struct {
	Tokens, Heads int
	Scale         float64
}

var _ Composite = SelfAttention{}

// Kind is "self_attention".
func (SelfAttention) Kind() string { return "self_attention" }

func (o SelfAttention) String() string {
	return fmt.Sprintf("self_attention{tokens %d, heads %d, scale %g}", o.Tokens, o.Heads, o.Scale)
}

// Infer gives [N·T,C].
func (o SelfAttention) Infer(in ...Type) (Type, error) {
	want := []operand{{"rows", 2, float}}
	if len(in) > 1 {
		want = append(want, operand{"bias", 3, float})
	}
	dt, err := check(o, in, want...)
	if err == nil {
		err = o.fits(o, in, len(in) > 1)
	}
	if err != nil {
		return Type{}, err
	}
	s := in[0].Shape
	return T(dt, s[0], s[1]/3), nil
}

// fits checks the attributes of op as, and the shapes of rows and, if it is biased, a bias.
func (o SelfAttention) fits(as Op, in []Type, biased bool) error {
	s := in[0].Shape
	switch {
	case !(math.Abs(o.Scale) > 0) || math.IsInf(o.Scale, 0):
		return wrong(as, in, "the scale must be finite and not 0")
	case o.Tokens < 1 || o.Heads < 1:
		return wrong(as, in, "tokens and heads must be positive")
	case s[0]%o.Tokens != 0:
		return wrong(as, in, "%d rows are no sequences of %d tokens", s[0], o.Tokens)
	case s[1]%(3*o.Heads) != 0:
		return wrong(as, in, "%d elements are no queries, keys and values of %d heads", s[1], o.Heads)
	}
	if biased {
		b, matrices := in[1].Shape, s[0]/o.Tokens*o.Heads
		if matrices%b[0] != 0 || b[1] != o.Tokens || b[2] != o.Tokens {
			return wrong(as, in, "the bias must be [G %d %[1]d] with a G that divides %d", o.Tokens, matrices)
		}
	}
	return nil
}

// FLOPs counts both products.
func (o SelfAttention) FLOPs(in ...Type) int64 {
	s := in[0].Shape
	return 4 * int64(s[0]) * int64(o.Tokens) * int64(s[1]/3)
}

// extents are the number of matrices, one for each head of a sequence, and the elements of a query.
func (o SelfAttention) extents(in []Type) (matrices, width int) {
	s := in[0].Shape
	return s[0] / o.Tokens * o.Heads, s[1] / 3 / o.Heads
}

// Decompose moves queries, keys and values apart for Attention.
func (o SelfAttention) Decompose(in ...Type) *Term {
	matrices, d := o.extents(in)
	n := matrices / o.Heads
	// Five dimensions: devices keep values of four as images.
	apart, part := Shape{3, n, o.Heads, o.Tokens, d}, Shape{1, n, o.Heads, o.Tokens, d}
	all := Apply(Permute{[]int{2, 0, 3, 1, 4}}, shaped(Leaf(0), in[0].Shape, Shape{n, o.Tokens, 3, o.Heads, d}))
	args := make([]*Term, 3, 4)
	for i := range args {
		args[i] = shaped(Apply(SliceAxis(apart, 0, i, i+1), all), part, Shape{matrices, o.Tokens, d})
	}
	if len(in) > 1 {
		args = append(args, Leaf(1))
	}
	y := shaped(Apply(Attention{o.Scale}, args...), Shape{matrices, o.Tokens, d}, part)
	return shaped(Apply(Permute{[]int{0, 1, 3, 2, 4}}, y), Shape{1, n, o.Tokens, o.Heads, d},
		Shape{n * o.Tokens, o.Heads * d})
}

// Gradients compute the scores again, which need not be kept.
func (o SelfAttention) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	if len(in) == 1 {
		return []*Term{Apply(SelfAttentionGrad(o), Leaf(0), Leaf(ResultGrad))}, nil
	}
	args := []*Term{Leaf(0), Leaf(1), Leaf(ResultGrad)}
	return []*Term{Apply(SelfAttentionGrad(o), args...), Apply(SelfAttentionGradBias(o), args...)}, nil
}

// Run sums in float64.
func (o SelfAttention) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, selfAttention[float32], selfAttention[float64])
}

func selfAttention[T element](o SelfAttention, out Tensor, in []Tensor) {
	y := vec[T](out)
	eachHead(o, in, func(h head[T]) {
		p := make([]float64, o.Tokens)
		for i := range o.Tokens {
			h.weights(o, i, p)
			for j := range h.width {
				mean := 0.0
				for s, a := range p {
					mean += a * float64(h.value(s)[j])
				}
				y[h.result(i)+j] = T(mean)
			}
		}
	})
}

// head is one head of a sequence.
type head[T element] struct {
	rows        []T
	bias        []T // nil for none
	matrix      int // of the bias
	at          int // the first row
	first       int // the first element of the head's query in a row
	width, wide int // elements of a query, and of a result's row
}

// eachHead calls f for all heads, of rows and an optional bias.
func eachHead[T element](o SelfAttention, in []Tensor, f func(h head[T])) {
	s := in[0].Shape
	h := head[T]{rows: vec[T](in[0]), wide: s[1] / 3, width: s[1] / 3 / o.Heads}
	groups := 1
	if len(in) > 1 {
		h.bias, groups = vec[T](in[1]), in[1].Shape[0]
	}
	for b := range s[0] / o.Tokens * o.Heads {
		h.at, h.first, h.matrix = b/o.Heads*o.Tokens, b%o.Heads*h.width, b%groups
		f(h)
	}
}

// place is the index in rows of part 0, 1 or 2 of token i: query, key or value. result is that in a result.
func (h head[T]) place(part, i int) int { return ((h.at+i)*3+part)*h.wide + h.first }
func (h head[T]) result(i int) int      { return (h.at+i)*h.wide + h.first }

func (h head[T]) query(i int) []T { return h.rows[h.place(0, i):][:h.width] }
func (h head[T]) key(i int) []T   { return h.rows[h.place(1, i):][:h.width] }
func (h head[T]) value(i int) []T { return h.rows[h.place(2, i):][:h.width] }

// weights sets p to the softmax of the scores of query i.
func (h head[T]) weights(o SelfAttention, i int, p []float64) {
	for s := range p {
		p[s] = o.Scale * inner(h.query(i), h.key(s))
		if h.bias != nil {
			p[s] += float64(h.bias[(h.matrix*len(p)+i)*len(p)+s])
		}
	}
	weigh(p)
}
