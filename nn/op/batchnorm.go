package op

import (
	"fmt"
	"math"

	"onlinerna/nn/op/expr"
)

// BatchNormStats gives the mean and the biased variance of each channel of x [N,C,H,W], as [2,C].
type BatchNormStats struct{}

// Kind is "batch_norm_stats".
func (BatchNormStats) Kind() string { return "batch_norm_stats" }

func (BatchNormStats) String() string { return "batch_norm_stats" }

// Infer gives [2,C].
func (o BatchNormStats) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float})
	if err != nil {
		return Type{}, err
	}
	return T(dt, 2, in[0].Shape[1]), nil
}

// Run sums twice, in float64: squares are taken of differences from the mean.
func (o BatchNormStats) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, batchNormStats[float32], batchNormStats[float64])
}

func batchNormStats[T element](_ BatchNormStats, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	n, c, hw := planes(in[0].Shape)
	count := float64(n * hw)
	for k := range c {
		sum := 0.0
		for i := range n {
			for _, v := range x[(i*c+k)*hw:][:hw] {
				sum += float64(v)
			}
		}
		mean, squares := sum/count, 0.0
		for i := range n {
			for _, v := range x[(i*c+k)*hw:][:hw] {
				d := float64(v) - mean
				squares += d * d
			}
		}
		y[k], y[c+k] = T(mean), T(squares/count)
	}
}

// BatchNorm normalises x [N,C,H,W] with the mean and variance of stats [2,C]:
//
//	y = scale · (x − mean)/√(var + Eps) + bias
//
// Unless Fixed, the statistics are those of x, and the gradient goes through them.
type BatchNorm struct {
	Eps   float64
	Fixed bool // the statistics are constants, as in evaluation
}

// Kind is "batch_norm".
func (BatchNorm) Kind() string { return "batch_norm" }

func (o BatchNorm) String() string {
	return fmt.Sprintf("batch_norm{eps %g, fixed %t}", o.Eps, o.Fixed)
}

// Infer gives the shape of x.
func (o BatchNorm) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float}, operand{"statistics", 2, float}, operand{"scale", 1, float},
		operand{"bias", 1, float})
	if err == nil {
		err = channels(o, in, in[0].Shape[1], in[1:]...)
	}
	if err == nil {
		err = checkEps(o, in, o.Eps)
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}

// channels checks vectors [C] and statistics [2,C].
func channels(o Op, in []Type, c int, rest ...Type) error {
	for _, t := range rest {
		s := t.Shape
		if s[len(s)-1] != c || len(s) == 2 && s[0] != 2 {
			return wrong(o, in, "operands of shape [%d] or [2 %d] are wanted for %d channels, not %v", c, c, c, s)
		}
	}
	return nil
}

// Gradients share the sums of the backward pass. With Fixed statistics that of x is scale/√(var+Eps) · dy, and needs
// neither sums nor x.
func (o BatchNorm) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	x, stats, scale, dy := Leaf(0), Leaf(1), Leaf(2), Leaf(ResultGrad)
	sums := Apply(BatchNormGradSums{o.Eps}, x, stats, dy)
	dx := Apply(BatchNormGradInput{o.Eps}, x, stats, scale, sums, dy)
	if a, b := expr.Arg(0), expr.Arg(1); o.Fixed {
		gain := Apply(Map{a.Mul(inverseRoot(b, o.Eps))}, scale, Apply(Row{1}, stats))
		dx = Apply(Map{a.Mul(b)}, dy, Apply(Reshape{Shape{in[0].Shape[1], 1, 1}}, gain))
	}
	return []*Term{
		dx,
		nil,
		Apply(Row{0}, sums),
		Apply(Row{1}, sums),
	}, nil
}

// Weights are the statistics, the scale and the bias.
func (BatchNorm) Weights() []int { return []int{1, 2, 3} }

// Run normalises.
func (o BatchNorm) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, batchNorm[float32], batchNorm[float64])
}

func batchNorm[T element](o BatchNorm, out Tensor, in []Tensor) {
	x, stats, scale, bias, y := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](in[3]), vec[T](out)
	n, c, hw := planes(in[0].Shape)
	for k := range c {
		mean, a := float64(stats[k]), float64(scale[k])/math.Sqrt(float64(stats[c+k])+o.Eps)
		for i := range n {
			from := (i*c + k) * hw
			for j, v := range x[from:][:hw] {
				y[from+j] = T((float64(v)-mean)*a + float64(bias[k]))
			}
		}
	}
}

// BatchNormUpdate moves running statistics [2,C] towards those of a batch, by the momentum m [1]:
//
//	mean ← (1−m) mean + m batch mean,  var ← (1−m) var + m batch var · Count/(Count−1)
//
// It overwrites the running statistics.
type BatchNormUpdate struct {
	Count int // values a channel in the batch, N·H·W
}

// Kind is "batch_norm_update".
func (BatchNormUpdate) Kind() string { return "batch_norm_update" }

func (o BatchNormUpdate) String() string { return fmt.Sprintf("batch_norm_update{count %d}", o.Count) }

// OverwritesFirst marks the op.
func (BatchNormUpdate) OverwritesFirst() {}

// Infer gives [2,C].
func (o BatchNormUpdate) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"running statistics", 2, float}, operand{"statistics", 2, float},
		operand{"momentum", 1, float})
	switch {
	case err != nil:
	case !in[0].Shape.Equal(in[1].Shape) || in[0].Shape[0] != 2:
		err = wrong(o, in, "statistics must both be [2 C]")
	case in[2].Shape[0] != 1:
		err = wrong(o, in, "momentum must be one number")
	case o.Count < 2:
		err = wrong(o, in, "a batch of one value a channel has no variance: use a larger batch or larger images")
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}

// Weights are the running statistics.
func (BatchNormUpdate) Weights() []int { return []int{0} }

// Run moves the statistics; out may be the first operand.
func (o BatchNormUpdate) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, batchNormUpdate[float32], batchNormUpdate[float64])
}

func batchNormUpdate[T element](o BatchNormUpdate, out Tensor, in []Tensor) {
	running, stats, m, y := vec[T](in[0]), vec[T](in[1]), float64(vec[T](in[2])[0]), vec[T](out)
	c := in[0].Shape[1]
	unbiased := float64(o.Count) / float64(o.Count-1)
	for k := range y {
		v := float64(stats[k])
		if k >= c {
			v *= unbiased
		}
		y[k] = T((1-m)*float64(running[k]) + m*v)
	}
}

// BatchNormGradSums gives, for operands x, stats, dy, the gradients of scale and bias as [2,C]:
// Σ dy·(x−mean)/√(var+Eps) and Σ dy.
type BatchNormGradSums struct {
	Eps float64
}

// Kind is "batch_norm_grad_sums".
func (BatchNormGradSums) Kind() string { return "batch_norm_grad_sums" }

func (o BatchNormGradSums) String() string { return fmt.Sprintf("batch_norm_grad_sums{eps %g}", o.Eps) }

// Infer gives [2,C].
func (o BatchNormGradSums) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float}, operand{"statistics", 2, float}, operand{"gradient", 4, float})
	if err == nil {
		err = channels(o, in, in[0].Shape[1], in[1])
	}
	if err == nil {
		err = checkEps(o, in, o.Eps)
	}
	if err == nil && !in[0].Shape.Equal(in[2].Shape) {
		err = wrong(o, in, "the gradient must have the input's shape")
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, 2, in[0].Shape[1]), nil
}

// Weights are the statistics.
func (BatchNormGradSums) Weights() []int { return []int{1} }

// Run sums in float64.
func (o BatchNormGradSums) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, batchNormGradSums[float32], batchNormGradSums[float64])
}

func batchNormGradSums[T element](o BatchNormGradSums, out Tensor, in []Tensor) {
	x, stats, dy, y := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](out)
	n, c, hw := planes(in[0].Shape)
	for k := range c {
		mean, inv := float64(stats[k]), 1/math.Sqrt(float64(stats[c+k])+o.Eps)
		dscale, dbias := 0.0, 0.0
		for i := range n {
			from := (i*c + k) * hw
			for j, g := range dy[from:][:hw] {
				dscale += float64(g) * (float64(x[from+j]) - mean)
				dbias += float64(g)
			}
		}
		y[k], y[c+k] = T(dscale*inv), T(dbias)
	}
}

// BatchNormGradInput is the gradient of BatchNorm with respect to x, for operands x, stats, scale, sums (of
// BatchNormGradSums) and dy. With x̂ = (x−mean)/√(var+Eps) and M values a channel it is
//
//	dx = scale/√(var+Eps) · (dy − dbias/M − x̂ · dscale/M)
type BatchNormGradInput struct {
	Eps float64
}

// Kind is "batch_norm_grad_input".
func (BatchNormGradInput) Kind() string { return "batch_norm_grad_input" }

func (o BatchNormGradInput) String() string {
	return fmt.Sprintf("batch_norm_grad_input{eps %g}", o.Eps)
}

// Infer gives the shape of x.
func (o BatchNormGradInput) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", 4, float}, operand{"statistics", 2, float}, operand{"scale", 1, float},
		operand{"sums", 2, float}, operand{"gradient", 4, float})
	if err == nil {
		err = channels(o, in, in[0].Shape[1], in[1:4]...)
	}
	if err == nil {
		err = checkEps(o, in, o.Eps)
	}
	if err == nil && !in[0].Shape.Equal(in[4].Shape) {
		err = wrong(o, in, "the gradient must have the input's shape")
	}
	if err != nil {
		return Type{}, err
	}
	return Type{dt, in[0].Shape}, nil
}

// Weights are the statistics and the scale.
func (BatchNormGradInput) Weights() []int { return []int{1, 2} }

// Run computes the gradient.
func (o BatchNormGradInput) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, batchNormGradInput[float32], batchNormGradInput[float64])
}

func batchNormGradInput[T element](o BatchNormGradInput, out Tensor, in []Tensor) {
	x, stats, scale, sums, dy, dx := vec[T](in[0]), vec[T](in[1]), vec[T](in[2]), vec[T](in[3]),
		vec[T](in[4]), vec[T](out)
	n, c, hw := planes(in[0].Shape)
	count := float64(n * hw)
	for k := range c {
		mean, inv := float64(stats[k]), 1/math.Sqrt(float64(stats[c+k])+o.Eps)
		a := float64(scale[k]) * inv
		b, s := float64(sums[c+k])/count, float64(sums[k])/count*inv
		for i := range n {
			from := (i*c + k) * hw
			for j, g := range dy[from:][:hw] {
				dx[from+j] = T(a * (float64(g) - b - (float64(x[from+j])-mean)*s))
			}
		}
	}
}
