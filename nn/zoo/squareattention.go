package zoo

import (
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// squares are the heights and widths of an image's queries and of its keys, in tokens. With class, a class token is
// before the queries and the keys.
type squares struct {
	queries, keys int
	class         bool
	row           func(query, key int) int // of a table, for lines of queries and keys; nil: that of strided ones
}

// strided is the row for a line of queries and one of keys that are every few lines of an image.
func (s squares) strided(query, key int) int {
	q, k := max(float64(s.keys)/float64(s.queries), 1), max(float64(s.queries)/float64(s.keys), 1)
	return int(float64(query)*q - float64(key)*k + float64(s.keys-1)*k)
}

// distanceTables adds tables of distances down and across, with a row for each, for heads of d elements. exempt says
// whether they are without weight decay.
func (b layer) distanceTables(name string, rows, d int, init nn.Init, exempt bool) (tables [2]*G.Node) {
	for i, axis := range []string{".rel_pos_h", ".rel_pos_w"} {
		tables[i] = b.AddParam(nn.Param{Name: name + axis, Shape: op.Shape{rows, d}, BiasOrNorm: exempt, Init: init})
	}
	return tables
}

// squareAttention is attention of queries to keys and values, the parts [n,tokens,d], as many for each of some images.
// Scores have a summand for the distance down and one for that across, both products with the query and a row of a
// table; those of class tokens have none.
func (b layer) squareAttention(name string, parts [3]*G.Node, tables [2]*G.Node, images int, s squares) *G.Node {
	if b.Err() != nil {
		return nil
	}
	queries, keys, values := parts[0], parts[1], parts[2]
	// Products with distances are appended to queries, and a 1 for each row and column to keys.
	n, d := queries.Shape()[0], queries.Shape()[2]
	scaled := b.Map(name+".scaled", expr.Arg(0).Scale(1/math.Sqrt(float64(d))), queries)
	down := b.axisScores(name+".rel_pos_h", queries, tables[0], s, true)
	across := b.axisScores(name+".rel_pos_w", queries, tables[1], s, false)
	place := onePerAxis(s)
	ones := b.Expand(name+".all_places", b.Constant(name+".place", place), images, n/images, place.Shape.Size())
	ones = b.Reshape(name+".places", ones, n, place.Shape.Size()/(2*s.keys), 2*s.keys)
	return b.Apply(name+".attention", op.Attention{Scale: 1}, b.Concat(name+".queries", 2, scaled, down, across),
		b.Concat(name+".keys", 2, keys, ones), values)
}

// axisScores are the products of queries [n,tokens,d] with those rows of a table that belong to the distances of rows,
// or columns, of queries and keys: [n,tokens,rows].
func (b layer) axisScores(name string, queries, table *G.Node, s squares, down bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, d, side := queries.Shape()[0], queries.Shape()[2], s.queries
	if s.class {
		queries = b.Slice(name+".patches", queries, 1, 1, 1+side*side)
	}
	if s.row == nil {
		s.row = s.strided
	}
	index := make([]int32, 0, side*s.keys)
	for i := range side {
		for j := range s.keys {
			index = append(index, int32(s.row(i, j)))
		}
	}
	pairs := b.Constant(name+".pairs", op.Tensor{Shape: op.Shape{len(index)}, Data: index})
	table = b.Gather(name+".by_pair", table, 0, pairs)
	// Five dimensions: devices keep values of four as images.
	there, back := []int{0, 2, 1, 3, 4}, []int{0, 2, 1, 3, 4} // rows first
	if !down {
		there, back = []int{0, 3, 1, 2, 4}, []int{0, 2, 3, 1, 4}
	}
	x := b.Permute(name+".there", b.Reshape(name+".there.apart", queries, 1, n, side, side, d), there...)
	x = b.Reshape(name+".lines", x, side, n*side, d)
	x = b.MatMul(name+".products", x, b.Reshape(name+".table", table, side, s.keys, d), true)
	x = b.Permute(name+".back", b.Reshape(name+".back.apart", x, 1, side, n, side, s.keys), back...)
	x = b.Reshape(name+".scores", x, n, side*side, s.keys)
	if s.class {
		x = b.Pad(name+".padded", x, []int{0, 1, 0}, []int{0, 0, 0})
	}
	return x
}

// onePerAxis has for each key 2·side numbers: a 1 in the column of its row, and one in that of its column. A class
// token has none.
func onePerAxis(s squares) op.Tensor {
	first := 0
	if s.class {
		first = 1
	}
	m := op.New(op.T(op.Float64, 1, 1, (first+s.keys*s.keys)*2*s.keys))
	for i := range s.keys * s.keys {
		row := m.Data.([]float64)[(first+i)*2*s.keys:]
		row[i/s.keys], row[s.keys+i%s.keys] = 1, 1
	}
	return m
}
