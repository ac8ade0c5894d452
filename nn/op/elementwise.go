package op

// ReLU is max(x, 0). NaN stays NaN.
type ReLU struct{}

// Kind is "relu".
func (ReLU) Kind() string { return "relu" }

func (ReLU) String() string { return "relu" }

// Infer gives the shape of x.
func (o ReLU) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}

// Gradients needs the result only: it is positive where x is.
func (o ReLU) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	return []*Term{Apply(ReLUGrad{}, Leaf(Result), Leaf(ResultGrad))}, nil
}

// Overwrites lists x.
func (ReLU) Overwrites(...Type) []int { return []int{0} }

// Run computes the result.
func (o ReLU) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, relu[float32], relu[float64])
}

func relu[T element](_ ReLU, out Tensor, in []Tensor) {
	y := vec[T](out)
	for i, v := range vec[T](in[0]) {
		y[i] = max(v, 0)
	}
}

// ReLUGrad is the gradient of ReLU for operands y, dy: dy where y > 0 or y is NaN, else 0.
type ReLUGrad struct{}

// Kind is "relu_grad".
func (ReLUGrad) Kind() string { return "relu_grad" }

func (ReLUGrad) String() string { return "relu_grad" }

// Infer gives the shape of both operands.
func (o ReLUGrad) Infer(in ...Type) (Type, error) { return pair(o, in, "result", "gradient") }

// Overwrites lists both operands.
func (ReLUGrad) Overwrites(...Type) []int { return []int{0, 1} }

// Run computes the gradient.
func (o ReLUGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, reluGrad[float32], reluGrad[float64])
}

func reluGrad[T element](_ ReLUGrad, out Tensor, in []Tensor) {
	dy, dx := vec[T](in[1]), vec[T](out)
	for i, v := range vec[T](in[0]) {
		if v <= 0 {
			dx[i] = 0
		} else {
			dx[i] = dy[i]
		}
	}
}

// Add is a + b.
type Add struct{}

// Kind is "add".
func (Add) Kind() string { return "add" }

func (Add) String() string { return "add" }

// Infer gives the shape of both operands.
func (o Add) Infer(in ...Type) (Type, error) { return pair(o, in, "first operand", "second operand") }

// Gradients are dy for both.
func (o Add) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	dy := Leaf(ResultGrad)
	return []*Term{dy, dy}, nil
}

// Overwrites lists both operands.
func (Add) Overwrites(...Type) []int { return []int{0, 1} }

// Run adds.
func (o Add) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, add[float32], add[float64])
}

func add[T element](_ Add, out Tensor, in []Tensor) {
	b, y := vec[T](in[1]), vec[T](out)
	for i, v := range vec[T](in[0]) {
		y[i] = v + b[i]
	}
}

// pair checks two operands of one shape.
func pair(o Op, in []Type, a, b string) (Type, error) {
	dt, err := check(o, in, operand{a, -1, float}, operand{b, -1, float})
	if err == nil && !in[0].Shape.Equal(in[1].Shape) {
		err = wrong(o, in, "the shapes must be equal")
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}
