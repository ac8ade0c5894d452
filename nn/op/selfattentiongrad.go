package op

import "fmt"

// SelfAttentionGrad is the gradient of SelfAttention with respect to the rows, for operands rows, bias if the op has
// one, and dy. With the weights P = softmax(Scale · q kᵀ + bias) of a head and dS = P ∘ (dy vᵀ − (P ∘ dy vᵀ) 1 1ᵀ) it is
//
//	dq = Scale · dS k,  dk = Scale · dSᵀ q,  dv = Pᵀ dy
type SelfAttentionGrad SelfAttention

// SelfAttentionGradBias is the gradient with respect to the bias, for operands rows, bias and dy: the sum of dS over
// the matrices that share it.
type SelfAttentionGradBias SelfAttention

var _, _ Composite = SelfAttentionGrad{}, SelfAttentionGradBias{}

// Kind is "self_attention_grad".
func (SelfAttentionGrad) Kind() string { return "self_attention_grad" }

func (o SelfAttentionGrad) String() string {
	return fmt.Sprintf("self_attention_grad{tokens %d, heads %d, scale %g}", o.Tokens, o.Heads, o.Scale)
}

// Kind is "self_attention_grad_bias".
func (SelfAttentionGradBias) Kind() string { return "self_attention_grad_bias" }

func (o SelfAttentionGradBias) String() string {
	return fmt.Sprintf("self_attention_grad_bias{tokens %d, heads %d, scale %g}", o.Tokens, o.Heads, o.Scale)
}

// Infer gives the shape of the rows.
func (o SelfAttentionGrad) Infer(in ...Type) (Type, error) {
	dt, err := SelfAttention(o).inferGrad(o, in, len(in) > 2)
	return typed(dt, first(in), err)
}

// Infer gives the shape of the bias.
func (o SelfAttentionGradBias) Infer(in ...Type) (Type, error) {
	dt, err := SelfAttention(o).inferGrad(o, in, true)
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[1].Shape}, nil
}

// inferGrad checks the operands of a gradient.
func (o SelfAttention) inferGrad(as Op, in []Type, biased bool) (DType, error) {
	want := []operand{{"rows", 2, float}, {"gradient", 2, float}}
	if biased {
		want = []operand{want[0], {"bias", 3, float}, want[1]}
	}
	dt, err := check(as, in, want...)
	if err != nil {
		return 0, err
	}
	last := len(in) - 1
	if err := o.fits(as, in, biased); err != nil {
		return 0, err
	}
	if s := in[0].Shape; !in[last].Shape.Equal(Shape{s[0], s[1] / 3}) {
		return 0, wrong(as, in, "the gradient must be [%d %d]", s[0], s[1]/3)
	}
	return dt, nil
}

// Decompose is the gradient of SelfAttention's formula.
func (o SelfAttentionGrad) Decompose(in ...Type) *Term { return gradientOf(SelfAttention(o), 0, in) }

// Decompose is the gradient of SelfAttention's formula.
func (o SelfAttentionGradBias) Decompose(in ...Type) *Term {
	return gradientOf(SelfAttention(o), 1, in)
}

// Run sums in float64.
func (o SelfAttentionGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, selfAttentionGrad[float32], selfAttentionGrad[float64])
}

// Run sums in float64.
func (o SelfAttentionGradBias) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, selfAttentionGradBias[float32], selfAttentionGradBias[float64])
}

func selfAttentionGrad[T element](o SelfAttentionGrad, out Tensor, in []Tensor) {
	dy, sums := vec[T](in[len(in)-1]), make([]float64, out.Shape.Size())
	eachScoreGrad(SelfAttention(o), in, func(h head[T], i int, p, ds []float64) {
		for s := range p {
			for j := range h.width {
				sums[h.place(0, i)+j] += o.Scale * ds[s] * float64(h.key(s)[j])
				sums[h.place(1, s)+j] += o.Scale * ds[s] * float64(h.query(i)[j])
				sums[h.place(2, s)+j] += p[s] * float64(dy[h.result(i)+j])
			}
		}
	})
	round(vec[T](out), sums)
}

func selfAttentionGradBias[T element](o SelfAttentionGradBias, out Tensor, in []Tensor) {
	sums := make([]float64, out.Shape.Size())
	eachScoreGrad(SelfAttention(o), in, func(h head[T], i int, _, ds []float64) {
		for s, v := range ds {
			sums[(h.matrix*len(ds)+i)*len(ds)+s] += v
		}
	})
	round(vec[T](out), sums)
}

// round rounds sums to elements.
func round[T element](dst []T, sums []float64) {
	for i, v := range sums {
		dst[i] = T(v)
	}
}

// eachScoreGrad calls f for each query of each head with its weights and the gradient of its scores.
func eachScoreGrad[T element](o SelfAttention, in []Tensor, f func(h head[T], i int, p, ds []float64)) {
	last := len(in) - 1
	dy := vec[T](in[last])
	eachHead(o, in[:last], func(h head[T]) {
		p, ds := make([]float64, o.Tokens), make([]float64, o.Tokens)
		for i := range o.Tokens {
			h.weights(o, i, p)
			scoreGrad(p, ds, func(s int) float64 { return inner(dy[h.result(i):][:h.width], h.value(s)) })
			f(h, i, p, ds)
		}
	})
}
