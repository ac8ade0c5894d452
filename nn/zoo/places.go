package zoo

import (
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/internal/resize"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// lineMatrix is the matrix [to,from] that resizes a line of points.
func lineMatrix(by resize.Line, from, to int) op.Tensor {
	return op.Tensor{Shape: op.Shape{to, from}, Data: slices.Concat(by.Weights(from, to)...)}
}

// resized resizes the rows [side²,C] of a square: [1,height·width,C].
func (b layer) resized(name string, rows *G.Node, side, height, width int, by resize.Line) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := rows.Shape()[1]
	if height != side || width != side {
		down := b.Constant(name+".along", lineMatrix(by, side, height))
		across := b.Constant(name+".across", lineMatrix(by, side, width))
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
	by           resize.Line
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
