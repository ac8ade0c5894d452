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
	return []*Term{Apply(ReLUGrad{}, Leaf(Result), Leaf(ResultGrad))}, nil
}

// Run computes the result.
func (o ReLU) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in,
		func() { relu(out, in, vec[float32]) },
		func() { relu(out, in, vec[float64]) })
}

func relu[T float32 | float64](out Tensor, in []Tensor, vec func(Tensor) []T) {
	y := vec(out)
	for i, v := range vec(in[0]) {
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

// Run computes the gradient.
func (o ReLUGrad) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in,
		func() { reluGrad(out, in, vec[float32]) },
		func() { reluGrad(out, in, vec[float64]) })
}

func reluGrad[T float32 | float64](out Tensor, in []Tensor, vec func(Tensor) []T) {
	dy, dx := vec(in[1]), vec(out)
	for i, v := range vec(in[0]) {
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
	return []*Term{Leaf(ResultGrad), Leaf(ResultGrad)}, nil
}

// Run adds.
func (o Add) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in,
		func() { add(out, in, vec[float32]) },
		func() { add(out, in, vec[float64]) })
}

func add[T float32 | float64](out Tensor, in []Tensor, vec func(Tensor) []T) {
	b, y := vec(in[1]), vec(out)
	for i, v := range vec(in[0]) {
		y[i] = v + b[i]
	}
}

// pair checks two operands of one shape.
func pair(o Op, in []Type, a, b string) (Type, error) {
	dt, err := check(o, in, operand{a, -1, float}, operand{b, -1, float})
	if err == nil && !in[0].Shape.Equal(in[1].Shape) {
		err = wrong(o, in, "shapes differ")
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}
