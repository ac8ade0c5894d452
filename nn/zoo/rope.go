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

	// Centred angles are DINOv3's: 2π times the place of the patch's centre, from −1 to 1, over the period. The elements
	// of a pair are half a head apart. Other angles are the number of the row or column over the period, and pairs are
	// neighbours. A grid above 0 scales the numbers of an image such that they reach from 0 to below grid.
	centred bool
	grid    int

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

// apart is the distance of the two elements of a pair.
func (r rope) apart() int {
	if r.centred {
		return r.head / 2
	}
	return 1
}

// tables adds the cosines of the angles, and their sines with the sign of the pair's other element. Values, and tokens
// that are not rotated, have 1 and 0.
func (r *rope) tables(b layer) {
	tokens := r.first + r.height*r.width
	cos, sin := slices.Repeat([]float64{1}, tokens*r.head), make([]float64, tokens*r.head)
	for t := r.first; t < tokens; t++ {
		angles, apart := r.angles((t-r.first)/r.width, (t-r.first)%r.width), r.apart()
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

// rotate rotates queries and keys in the rows x of n images.
func (r rope) rotate(b layer, name string, x *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	tokens, apart := s[0]/n, r.apart()
	other := b.Reshape(name+".pairs", x, s.TotalSize()/(2*apart), 2, apart)
	other = b.Reshape(name+".other", b.Roll(name+".exchange", other, 0, 1, 0), n, tokens, s[1])
	y := b.Map(name, expr.Arg(0).Mul(expr.Arg(1)).Add(expr.Arg(2).Mul(expr.Arg(3))),
		b.Reshape(name+".images", x, n, tokens, s[1]), r.cos, other, r.sin)
	return b.Reshape(name+".rows", y, s...)
}
