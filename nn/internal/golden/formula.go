package golden

import (
	"math"
	"strings"

	"onlinerna/nn/op"
)

// U01 is number i of a stream of pseudo-random numbers, uniform in [0,1): the upper 53 bits of output
// stream·2³²+i, from 0, of splitmix64 seeded with 0, times 2⁻⁵³.
func U01(stream uint64, i int) float64 {
	z := (stream<<32+uint64(i))*0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return float64(z>>11) * 0x1p-53
}

// Formula gives the parameters and the input of a network in closed form, rounded to float32.
type Formula struct {
	InputStream uint64  // of the input's pseudo-random numbers
	LastScale   float64 // factor of the scales of each bottleneck block's last batch normalisation
}

// The formulas of the golden networks. Damped is for deep networks with bottleneck blocks, which amplify
// rounding otherwise.
var (
	Plain  = Formula{InputStream: 1000, LastScale: 1}
	Damped = Formula{InputStream: 1004, LastScale: 0.2}
)

// Param is parameter p of a network, counted from 0 in the order of its state dict without buffers, under its
// PyTorch name. With u = U01(p, i) for element i in row-major order it is
//
//	convolution     (2u−1) √3 √(2/(O kh kw))      linear weight   (2u−1) √3 √(1/I)
//	scale           1 + 0.1 sin i                  fc.bias         0.1 (2u−1)
//	other bias      0.1 cos i
//
// and the scale of a bn3 is LastScale times that.
func (f Formula) Param(p int, name string, s op.Shape, d op.DType) op.Tensor {
	symmetric := func(i int) float64 { return 2*U01(uint64(p), i) - 1 }
	switch {
	case len(s) == 4:
		scale := math.Sqrt(2 / float64(s[0]*s[2]*s[3]))
		return tabulate(s, d, func(i int) float64 { return symmetric(i) * math.Sqrt(3) * scale })
	case len(s) == 2:
		scale := math.Sqrt(1 / float64(s[1]))
		return tabulate(s, d, func(i int) float64 { return symmetric(i) * math.Sqrt(3) * scale })
	case name == "fc.bias":
		return tabulate(s, d, func(i int) float64 { return 0.1 * symmetric(i) })
	case strings.HasSuffix(name, "bias"):
		return tabulate(s, d, func(i int) float64 { return 0.1 * math.Cos(float64(i)) })
	}
	factor := 1.0
	if strings.HasSuffix(name, "bn3.weight") {
		factor = f.LastScale
	}
	return tabulate(s, d, func(i int) float64 { return factor * (1 + 0.1*math.Sin(float64(i))) })
}

// Input is the batch of images [N,C,H,W]: (2u−1) √3 with u = U01(InputStream, i).
func (f Formula) Input(s op.Shape, d op.DType) op.Tensor {
	return tabulate(s, d, func(i int) float64 { return (2*U01(f.InputStream, i) - 1) * math.Sqrt(3) })
}

// Labels are 0, 1, … for a batch of n images.
func Labels(n int) op.Tensor {
	l := make([]int32, n)
	for i := range l {
		l[i] = int32(i)
	}
	return op.Tensor{Shape: op.Shape{n}, Data: l}
}

// tabulate rounds f's values to float32, also where d is float64.
func tabulate(s op.Shape, d op.DType, f func(i int) float64) op.Tensor {
	x := make([]float32, s.Size())
	for i := range x {
		x[i] = float32(f(i))
	}
	return Convert(op.Tensor{Shape: s, Data: x}, d)
}

// Convert gives a float32 or float64 tensor in the floating-point type d. Other tensors stay as they are.
func Convert(t op.Tensor, d op.DType) op.Tensor {
	if t.DType() == d || !t.DType().Float() {
		return t
	}
	c := op.New(op.Type{DType: d, Shape: t.Shape})
	switch x := t.Data.(type) {
	case []float32:
		for i, v := range x {
			c.Data.([]float64)[i] = float64(v)
		}
	case []float64:
		for i, v := range x {
			c.Data.([]float32)[i] = float32(v)
		}
	}
	return c
}

// Floats gives the elements of a tensor of any type as float64.
func Floats(t op.Tensor) []float64 {
	switch x := t.Data.(type) {
	case []float64:
		return x
	case []float32:
		return widen(x)
	case []int32:
		return widen(x)
	case []uint8:
		return widen(x)
	}
	return nil
}

func widen[T float32 | int32 | uint8](x []T) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
