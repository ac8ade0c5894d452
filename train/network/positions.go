package network

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/statedict"
)

// grids are the sides of the square grids of positions in a file's tensor and in the model's; ok is false if the tensor
// has none, or they are equal.
func (n *Network) grids(e nn.Entry, t []int) (from, to int, ok bool) {
	p := n.model.Arch.Positions
	if e.Name != p.Name || len(t) != 3 || t[0] != 1 || t[2] != e.Shape[2] || t[1] == e.Shape[1] {
		return 0, 0, false
	}
	side := func(rows int) int { return int(math.Sqrt(float64(rows - p.First))) }
	from, to = side(t[1]), side(e.Shape[1])
	return from, to, from > 0 && from*from == t[1]-p.First && to*to == e.Shape[1]-p.First
}

// loadPositions reads positions and resizes their grid to the model's.
func (n *Network) loadPositions(f *statedict.File, t statedict.Tensor, e nn.Entry, from, to int) error {
	x := make([]float64, op.Shape(t.Shape).Size())
	if err := f.Float64s(t, x); err != nil {
		return err
	}
	c := t.Shape[2]
	first := n.model.Arch.Positions.First * c
	y := op.Tensor{Shape: e.Shape, Data: slices.Concat(x[:first], bicubic(x[first:], from, to, c))}
	return n.upload(n.Params, n.params[e.Index], y)
}

// bicubic resizes an image of from×from pixels with c channels to to×to. Where it shrinks, the kernel is as much wider:
// PyTorch's interpolate with mode bicubic and antialias, by which timm resizes positions.
func bicubic(x []float64, from, to, c int) []float64 {
	weights := make([][]float64, to) // of all elements, for each of the result
	scale := float64(from) / float64(to)
	wide := max(scale, 1)
	for i := range weights {
		weights[i] = make([]float64, from)
		center, sum := scale*(float64(i)+.5), 0.
		for k := max(int(center-2*wide+.5), 0); k < min(int(center+2*wide+.5), from); k++ {
			weights[i][k] = cubic((float64(k) - center + .5) / wide)
			sum += weights[i][k]
		}
		for k := range weights[i] {
			weights[i][k] /= sum
		}
	}
	across := make([]float64, from*to*c)
	for row := range from {
		for i, w := range weights {
			for k, v := range w {
				for j := range c {
					across[(row*to+i)*c+j] += v * x[(row*from+k)*c+j]
				}
			}
		}
	}
	y := make([]float64, to*to*c)
	for i, w := range weights {
		for k, v := range w {
			for j := range to * c {
				y[i*to*c+j] += v * across[k*to*c+j]
			}
		}
	}
	return y
}

// cubic is Keys' kernel with a = −1/2.
func cubic(x float64) float64 {
	switch x = math.Abs(x); {
	case x < 1:
		return (1.5*x-2.5)*x*x + 1
	case x < 2:
		return ((-.5*x+2.5)*x-4)*x + 2
	}
	return 0
}

// resized describes positions that loading resizes, "" if there are none.
func (n *Network) resized(f *statedict.File) string {
	for _, e := range n.model.StateDict() {
		if t, ok := f.Lookup(e.Name); ok {
			if from, to, ok := n.grids(e, t.Shape); ok {
				return fmt.Sprintf("%s is resized from %d×%[2]d to %d×%[3]d positions", e.Name, from, to)
			}
		}
	}
	return ""
}
