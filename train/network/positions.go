package network

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/internal/resize"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/statedict"
)

// grids are positions in a file's tensor and in the model's.
type grids struct {
	from, to int  // sides of the squares
	class    bool // the file's first row is the place of a class token that has none in the model
}

// gridsOf finds the grids of an entry of the model's and a file's tensor; ok is false if the tensor has none, or they
// are equal.
func gridsOf(m *nn.Model, e nn.Entry, t []int) (g grids, ok bool) {
	p := m.Arch.Positions
	if e.Name != p.Name || len(t) < 2 || op.Shape(t[:len(t)-2]).Size() != 1 {
		return g, false
	}
	own := e.Shape[len(e.Shape)-2:] // rows, channels
	if t[len(t)-1] != own[1] {
		return g, false
	}
	rows := t[len(t)-2]
	if rows == own[0] {
		return g, false
	}
	g.from, g.to = root(rows-p.First), root(own[0]-p.First)
	if p.Class != "" && g.from == 0 {
		g.from, g.class = root(rows-p.First-1), true
	}
	return g, g.from > 0 && g.to > 0
}

// root is the side of a square of n, 0 if n is no square.
func root(n int) int {
	side := int(math.Sqrt(float64(max(n, 0))))
	if side*side != n {
		return 0
	}
	return side
}

// loadPositions reads positions and resizes their grid to the model's.
func (n *Network) loadPositions(f *statedict.File, t statedict.Tensor, e nn.Entry, g grids) error {
	x := make([]float64, op.Shape(t.Shape).Size())
	if err := f.Float64s(t, x); err != nil {
		return err
	}
	c := e.Shape[len(e.Shape)-1]
	if g.class {
		x = x[c:]
	}
	first := n.model.Arch.Positions.First * c
	grid := x[first:]
	if g.from != g.to {
		grid = bicubic(grid, g.from, g.to, c)
	}
	return n.upload(n.Params, n.params[e.Index], op.Tensor{Shape: e.Shape, Data: slices.Concat(x[:first], grid)})
}

// classPlace finds the place that a file has for a class token without one in the model. ok is false if e is another
// parameter, or the file has no such place.
func (n *Network) classPlace(f *statedict.File, e nn.Entry) (t statedict.Tensor, ok bool) {
	p := n.model.Arch.Positions
	if e.Name != p.Class {
		return t, false
	}
	for _, place := range n.model.StateDict() {
		if place.Name == p.Name {
			t, ok = f.Lookup(p.Name)
			g, found := gridsOf(n.model, place, t.Shape)
			return t, ok && found && g.class
		}
	}
	return t, false
}

// loadClass reads a class token and adds its place, the first row of the file's.
func (n *Network) loadClass(f *statedict.File, t, places statedict.Tensor, e nn.Entry) error {
	x, y := make([]float64, op.Shape(t.Shape).Size()), make([]float64, op.Shape(places.Shape).Size())
	if err := f.Float64s(t, x); err != nil {
		return err
	}
	if err := f.Float64s(places, y); err != nil {
		return err
	}
	for i := range x {
		x[i] += y[i]
	}
	return n.upload(n.Params, n.params[e.Index], op.Tensor{Shape: e.Shape, Data: x})
}

// bicubic resizes an image of from×from pixels with c channels to to×to, as timm resizes positions.
func bicubic(x []float64, from, to, c int) []float64 {
	return resample(x, bicubically.Weights(from, to), c)
}

var bicubically = resize.Line{Cubic: true, Antialias: true}

// resample applies weights, a row for each of the result, to the rows and columns of a square image with c channels.
func resample(x []float64, weights [][]float64, c int) []float64 {
	from, to := len(weights[0]), len(weights)
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

// resized describes positions and tables of relative ones that loading resizes, "" if there are none.
func (n *Network) resized(f *statedict.File) string {
	for _, e := range n.model.StateDict() {
		if t, ok := f.Lookup(e.Name); ok {
			if g, ok := gridsOf(n.model, e, t.Shape); ok && g.from != g.to {
				return fmt.Sprintf("%s is resized from %d×%[2]d to %d×%[3]d positions", e.Name, g.from, g.to)
			}
		}
	}
	return n.tables(f)
}
