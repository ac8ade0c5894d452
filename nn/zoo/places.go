package zoo

import (
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// resizing is a way to resize a line of points, as PyTorch's interpolate does.
type resizing struct {
	cubic     bool // by cubic polynomials, else linearly
	antialias bool // points outside are left out, not the last ones again; PyTorch's cubics differ, too
	corners   bool // the first and the last points stay there: align_corners
}

// matrix resizes a line: [to,from].
func (p resizing) matrix(from, to int) op.Tensor {
	m := op.New(op.T(op.Float64, to, from))
	w := m.Data.([]float64)
	scale, stretch := float64(from)/float64(to), 1.
	if p.antialias {
		stretch = max(scale, 1)
	}
	for i := range to {
		at := scale*(float64(i)+.5) - .5
		if p.corners {
			at = float64(i*(from-1)) / float64(max(to-1, 1))
		}
		row, all := w[i*from:][:from], 0.
		for k := int(math.Floor(at - 2*stretch)); float64(k) <= at+2*stretch; k++ {
			near := min(max(k, 0), from-1)
			if p.antialias && near != k {
				continue
			}
			v := p.weight(math.Abs(float64(k)-at) / stretch)
			row[near] += v
			all += v
		}
		for k := range row {
			row[k] /= all
		}
	}
	return m
}

// weight is that of a point at a distance of x.
func (p resizing) weight(x float64) float64 {
	a := -.75
	if p.antialias {
		a = -.5
	}
	switch {
	case !p.cubic:
		return max(1-x, 0)
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}

// resized resizes the rows [side²,C] of a square: [1,height·width,C].
func (b layer) resized(name string, rows *G.Node, side, height, width int, by resizing) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := rows.Shape()[1]
	if height != side || width != side {
		down, across := b.Constant(name+".along", by.matrix(side, height)), b.Constant(name+".across", by.matrix(side, width))
		rows = b.MatMul(name+".down", down, b.Reshape(name+".lines", rows, side, side*c), false)
		rows = b.Permute(name+".turned", b.Reshape(name+".points", rows, height, side, c), 1, 0, 2)
		rows = b.MatMul(name+".resized", across, b.Reshape(name+".columns", rows, side, height*c), false)
		rows = b.Permute(name+".back", b.Reshape(name+".planes", rows, width, height, c), 1, 0, 2)
	}
	return b.Reshape(name+".all", rows, 1, height*width, c)
}

// windowPlaces are places of height×width tokens, [1,height·width,width of a token], as sums: of a square of side
// places pos_embed, which is resized, and of another for each window.
type windowPlaces struct {
	width        int // elements of a token
	side, window int
	name         string // of the parameter of windows
	decayed      bool   // which weight decay makes smaller
	by           resizing
}

func (p windowPlaces) build(b layer, height, width int) *G.Node {
	square := func(name string, side int, decayed bool) *G.Node {
		x := b.AddParam(nn.Param{Name: name, Shape: op.Shape{p.width, side * side},
			Stored: op.Shape{1, p.width, side, side}, Init: nn.Init{Distribution: nn.Normal, Scale: .02}, BiasOrNorm: !decayed})
		return b.Permute(name+".rows", x, 1, 0)
	}
	grid, window := square(timmNames.place, p.side, false), square(p.name, p.window, p.decayed)
	grid = b.resized(timmNames.place, grid, p.side, height, width, p.by)
	window = b.Reshape(p.name+".tokens", window, 1, p.window, 1, p.window, p.width)
	window = b.Expand(p.name+".windows", window, height/p.window, p.window, width/p.window, p.window, p.width)
	return b.Map(timmNames.place+".sum", expr.Arg(0).Add(expr.Arg(1)), grid,
		b.Reshape(p.name+".all", window, 1, height*width, p.width))
}
