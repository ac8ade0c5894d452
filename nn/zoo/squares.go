package zoo

import (
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// squares are those of the tokens of queries and of keys, by their sides. Pairs number for each line of queries, and in
// it each of keys, the row of a table that belongs to their distance.
type squares struct {
	queries, keys int
	pairs         []int32
}

// distanceAttention is attention of queries, keys and values [images·n,tokens,elements], the tokens of squares. Scores
// have a summand for the distance down and one for that across, both products of the query with a row of a table.
func (b layer) distanceAttention(name string, parts [3]*G.Node, images int, down, across *G.Node, s squares) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, d, tokens := parts[0].Shape()[0], parts[0].Shape()[2], s.keys*s.keys
	// Products with distances are appended to queries, and a 1 for each row and column to keys.
	queries := b.Concat(name+".queries", 2,
		b.Map(name+".scaled", expr.Arg(0).Scale(1/math.Sqrt(float64(d))), parts[0]),
		b.distanceProducts(name+".down", parts[0], down, s, true),
		b.distanceProducts(name+".across", parts[0], across, s, false))
	places := b.Constant(name+".place", onePerAxis(s.keys))
	places = b.Expand(name+".all_places", places, images, n/images, tokens*2*s.keys)
	places = b.Reshape(name+".places", places, n, tokens, 2*s.keys)
	keys := b.Concat(name+".keys", 2, parts[1], places)
	return b.Apply(name+".attention", op.Attention{Scale: 1}, queries, keys, parts[2])
}

// distanceProducts are the products of queries with those rows of a table that belong to the distances of rows, or
// columns, of queries and keys: [images·n,queries,rows].
func (b layer) distanceProducts(name string, queries, table *G.Node, s squares, down bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, d, side, keys := queries.Shape()[0], queries.Shape()[2], s.queries, s.keys
	pairs := b.Constant(name+".pairs", op.Tensor{Shape: op.Shape{side * keys}, Data: s.pairs})
	table = b.Gather(name+".by_pair", table, 0, pairs)
	axes, back := []int{0, 2, 1, 3, 4}, []int{0, 2, 1, 3, 4} // rows first
	if !down {
		axes, back = []int{0, 3, 1, 2, 4}, []int{0, 2, 3, 1, 4}
	}
	// Five dimensions: devices keep values of four as images.
	x := b.Permute(name+".there", b.Reshape(name+".there.apart", queries, 1, n, side, side, d), axes...)
	x = b.Reshape(name+".lines", x, side, n*side, d)
	x = b.MatMul(name+".products", x, b.Reshape(name+".table", table, side, keys, d), true)
	x = b.Permute(name+".back", b.Reshape(name+".back.apart", x, 1, side, n, side, keys), back...)
	return b.Reshape(name+".scores", x, n, side*side, keys)
}

// onePerAxis has for each token of a square a 1 in the column of its row, and one in that of its column: [1,1,elements
// of side²×2·side].
func onePerAxis(side int) op.Tensor {
	m := op.New(op.T(op.Float64, 1, 1, side*side*2*side))
	for i := range side * side {
		m.Data.([]float64)[i*2*side+i/side] = 1
		m.Data.([]float64)[i*2*side+side+i%side] = 1
	}
	return m
}
