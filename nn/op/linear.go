package op

// Linear is x wᵀ + b for x [N,I], w [O,I] and, if there is one, b [O].
type Linear struct{}

// Kind is "linear".
func (Linear) Kind() string { return "linear" }

func (Linear) String() string { return "linear" }

// Infer gives [N,O].
func (o Linear) Infer(in ...Type) (Type, error) {
	want := []operand{{"input", 2, float}, {"weight", 2, float}}
	if len(in) != 2 {
		want = append(want, operand{"bias", 1, float})
	}
	dt, err := check(o, in, want...)
	switch {
	case err != nil:
	case in[0].Shape[1] != in[1].Shape[1]:
		err = wrong(o, in, "input has %d features, weight wants %d", in[0].Shape[1], in[1].Shape[1])
	case len(in) == 3 && in[2].Shape[0] != in[1].Shape[0]:
		err = wrong(o, in, "bias has %d elements, weight has %d outputs", in[2].Shape[0], in[1].Shape[0])
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[0], in[1].Shape[0]), nil
}

// Gradients are dy w, dyᵀ x and the sum of dy over images.
func (o Linear) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	dy := Leaf(ResultGrad)
	g := []*Term{Apply(LinearGradInput{}, Leaf(1), dy), Apply(LinearGradWeight{}, Leaf(0), dy)}
	if len(in) == 3 {
		g = append(g, Apply(ChannelSum{}, dy))
	}
	return g, nil
}

// Weights are the weight and the bias.
func (Linear) Weights() []int { return []int{1, 2} }

// FLOPs counts every weight for every row of the input.
func (Linear) FLOPs(in ...Type) int64 { return 2 * int64(in[0].Shape.Size()) * int64(in[1].Shape[0]) }

// Run computes the product.
func (o Linear) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, linear[float32], linear[float64])
}

func linear[T element](_ Linear, out Tensor, in []Tensor) {
	x, w, y := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	k, outputs := in[0].Shape[1], in[1].Shape[0]
	for i := range y {
		a, b := x[i/outputs*k:][:k], w[i%outputs*k:][:k]
		sum := 0.0
		if len(in) == 3 {
			sum = float64(vec[T](in[2])[i%outputs])
		}
		for j, v := range a {
			sum += float64(v) * float64(b[j])
		}
		y[i] = T(sum)
	}
}

// LinearGradInput is dy w, for operands w [O,I], dy [N,O].
type LinearGradInput struct{}

// Kind is "linear_grad_input".
func (LinearGradInput) Kind() string { return "linear_grad_input" }

func (LinearGradInput) String() string { return "linear_grad_input" }

// Infer gives [N,I].
func (o LinearGradInput) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"weight", 2, float}, operand{"gradient", 2, float})
	if err == nil && in[0].Shape[0] != in[1].Shape[1] {
		err = wrong(o, in, "weight has %d outputs, the gradient %d", in[0].Shape[0], in[1].Shape[1])
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[1].Shape[0], in[0].Shape[1]), nil
}

// Weights are the weight.
func (LinearGradInput) Weights() []int { return []int{0} }

// FLOPs are as many as the layer's.
func (LinearGradInput) FLOPs(in ...Type) int64 { return products(in[1].Shape, in[0].Shape) }

// Run computes the product.
func (o LinearGradInput) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, linearGradInput[float32], linearGradInput[float64])
}

func linearGradInput[T element](_ LinearGradInput, out Tensor, in []Tensor) {
	w, dy, dx := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	outputs, inputs := in[0].Shape[0], in[0].Shape[1]
	acc := make([]float64, inputs)
	for n := range in[1].Shape[0] {
		clear(acc)
		for k := range outputs {
			a := float64(dy[n*outputs+k])
			for j, v := range w[k*inputs:][:inputs] {
				acc[j] += a * float64(v)
			}
		}
		for j, v := range acc {
			dx[n*inputs+j] = T(v)
		}
	}
}

// LinearGradWeight is dyᵀ x, for operands x [N,I], dy [N,O].
type LinearGradWeight struct{}

// Kind is "linear_grad_weight".
func (LinearGradWeight) Kind() string { return "linear_grad_weight" }

func (LinearGradWeight) String() string { return "linear_grad_weight" }

// Infer gives [O,I].
func (o LinearGradWeight) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 2, float}, operand{"gradient", 2, float})
	if err == nil && in[0].Shape[0] != in[1].Shape[0] {
		err = wrong(o, in, "%d inputs, %d gradients", in[0].Shape[0], in[1].Shape[0])
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[1].Shape[1], in[0].Shape[1]), nil
}

// FLOPs are as many as the layer's.
func (LinearGradWeight) FLOPs(in ...Type) int64 {
	return 2 * int64(in[0].Shape.Size()) * int64(in[1].Shape[1])
}

// Run computes the product.
func (o LinearGradWeight) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, linearGradWeight[float32], linearGradWeight[float64])
}

func linearGradWeight[T element](_ LinearGradWeight, out Tensor, in []Tensor) {
	x, dy, dw := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	inputs, outputs := in[0].Shape[1], in[1].Shape[1]
	acc := make([]float64, inputs)
	for k := range outputs {
		clear(acc)
		for n := range in[0].Shape[0] {
			a := float64(dy[n*outputs+k])
			for j, v := range x[n*inputs:][:inputs] {
				acc[j] += a * float64(v)
			}
		}
		for j, v := range acc {
			dw[k*inputs+j] = T(v)
		}
	}
}
