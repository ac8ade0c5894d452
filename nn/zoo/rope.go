package zoo

import (
	"cmp"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// rope are the angles by which attention rotates pairs of elements of queries and keys (Heo et al. 2024): half of the
// pairs by the patch's row, the others by its column. Tokens before those of patches are not rotated.
type rope struct {
	height, width int // patches
	first         int // tokens before them
	heads, head   int // number of heads, and the elements of one

	// Centred angles are DINOv3's: 2π times the place of the patch's centre, from −1 to 1, over the period. Other angles
	// are the number of the row or column over the period. A grid above 0 scales the numbers of an image such that they
	// reach from 0 to below grid.
	centred bool
	grid    int

	apart int // distance of the elements of a pair; 0 means 1

	temperature  float64 // base of the periods; 0 means 100 if centred, else 10,000
	offset       float64 // is added to the numbers of rows and columns
	columnsFirst bool    // the column rotates the first half of the pairs

	cos, sin *G.Node // [1, tokens, elements of query, key and value]
}

// angles are those of the pairs of a head in a patch.
func (r rope) angles(row, column int) []float64 {
	temperature := cmp.Or(r.temperature, 10_000)
	if r.centred {
		temperature = cmp.Or(r.temperature, 100)
	}
	at := func(i, n int) float64 {
		switch {
		case r.centred:
			return 2 * math.Pi * ((2*float64(i)+1)/float64(n) - 1)
		case r.grid > 0:
			return (float64(i) + r.offset) / float64(n) * float64(r.grid)
		}
		return float64(i) + r.offset
	}
	first, second := at(row, r.height), at(column, r.width)
	if r.columnsFirst {
		first, second = second, first
	}
	n := r.head / 4
	a := make([]float64, 2*n)
	for k := range n {
		period := math.Pow(temperature, float64(k)/float64(n))
		a[k], a[n+k] = first/period, second/period
	}
	return a
}

// tables adds the cosines of the angles, and their sines with the sign of the pair's other element. Values, and tokens
// that are not rotated, have 1 and 0.
func (r *rope) tables(b layer) {
	tokens := r.first + r.height*r.width
	apart := cmp.Or(r.apart, 1)
	cos, sin := slices.Repeat([]float64{1}, tokens*r.head), make([]float64, tokens*r.head)
	for t := r.first; t < tokens; t++ {
		angles := r.angles((t-r.first)/r.width, (t-r.first)%r.width)
		for i := range r.head {
			angle, k := angles[i/(2*apart)*apart+i%apart], t*r.head+i
			cos[k], sin[k] = math.Cos(angle), math.Sin(angle)
			if i/apart%2 == 0 {
				sin[k] = -sin[k]
			}
		}
	}
	of := func(name string, table []float64, values float64) *G.Node {
		x := b.Constant(name+".head", op.Tensor{Shape: op.Shape{tokens, 1, r.head}, Data: table})
		x = b.Expand(name+".queries_keys", x, tokens, 2*r.heads, r.head)
		v := b.Constant(name+".value", op.Tensor{Shape: op.Shape{1, 1, 1}, Data: []float64{values}})
		x = b.Concat(name+".all", 1, x, b.Expand(name+".values", v, tokens, r.heads, r.head))
		return b.Reshape(name, x, 1, tokens, 3*r.heads*r.head)
	}
	r.cos, r.sin = of("rope.cos", cos, 1), of("rope.sin", sin, 0)
}

// mixed adds the tables of a block whose rows of frequencies, by the column and by the row, are trained: two matrices
// [blocks,pairs of all heads], one after the other. Pairs are neighbours.
func (r *rope) mixed(b layer, name string, frequencies *G.Node, block, blocks int) {
	if b.Err() != nil {
		return
	}
	tokens, width := r.first+r.height*r.width, r.heads*r.head
	places := func(name string, at func(patch int) int) *G.Node {
		x := make([]float64, tokens) // those before patches are not rotated
		for i := range r.height * r.width {
			x[r.first+i] = float64(at(i))
		}
		return b.Constant(name, op.Tensor{Shape: op.Shape{tokens, 1}, Data: x})
	}
	columns := places(name+".columns", func(i int) int { return i % r.width })
	rows := places(name+".rows", func(i int) int { return i / r.width })
	x := b.Slice(name+".by_column", frequencies, 0, block, block+1)
	y := b.Slice(name+".by_row", frequencies, 0, blocks+block, blocks+block+1)
	sine, versine := turn(expr.Arg(0).Mul(expr.Arg(1)).Add(expr.Arg(2).Mul(expr.Arg(3))))
	cos := b.Map(name+".cosines", expr.Const(1).Sub(versine), columns, x, rows, y)
	sin := b.Map(name+".sines", sine, columns, x, rows, y)
	table := func(name string, first, second *G.Node, values float64) *G.Node {
		n := tokens * width / 2
		x := b.Concat(name+".both", 1, b.Reshape(name+".first", first, n, 1), b.Reshape(name+".second", second, n, 1))
		x = b.Reshape(name+".pairs", x, tokens, width)
		v := b.Constant(name+".value", op.Tensor{Shape: op.Shape{1, 1}, Data: []float64{values}})
		x = b.Concat(name+".all", 1, x, x, b.Expand(name+".values", v, tokens, width))
		return b.Reshape(name, x, 1, tokens, 3*width)
	}
	r.cos = table(name+".cos", cos, cos, 1)
	r.sin = table(name+".sin", b.Map(name+".negative", expr.Arg(0).Neg(), sin), sin, 0)
}

// turn is the sine of an angle and 1 less its cosine, of angles up to 100: those of a small part, which is doubled.
// Errors are about as large as those of the angle's rounding.
func turn(angle expr.Expr) (sine, versine expr.Expr) {
	const doublings, terms = 6, 10
	part := angle.Scale(math.Pow(2, -doublings))
	square := part.Square()
	series := func(first int) expr.Expr { // of Taylor, from the factorial of first on
		x := expr.Const(1)
		for k := terms - 1; k > 0; k-- {
			x = expr.Const(1).Sub(x.Mul(square).Scale(1 / float64((first+2*k)*(first+2*k-1))))
		}
		return x
	}
	sine, versine = part.Mul(series(1)), square.Scale(.5).Mul(series(2))
	for range doublings {
		sine, versine = sine.Mul(expr.Const(1).Sub(versine)).Scale(2), sine.Square().Scale(2)
	}
	return sine, versine
}

// rotate rotates queries and keys in the rows x of n images.
func (r rope) rotate(b layer, name string, x *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	tokens, apart := s[0]/n, cmp.Or(r.apart, 1)
	other := b.Reshape(name+".pairs", x, s.TotalSize()/(2*apart), 2, apart)
	other = b.Reshape(name+".other", b.Roll(name+".exchange", other, 0, 1, 0), n, tokens, s[1])
	y := b.Map(name, expr.Arg(0).Mul(expr.Arg(1)).Add(expr.Arg(2).Mul(expr.Arg(3))),
		b.Reshape(name+".images", x, n, tokens, s[1]), r.cos, other, r.sin)
	return b.Reshape(name+".rows", y, s...)
}
