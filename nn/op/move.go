package op

// Mover is an op whose result consists of boxes of elements of its operands; the rest of the result is 0.
type Mover interface {
	Op
	// Moves lists the boxes, for operands of types that fit. They do not overlap in the result.
	Moves(in ...Type) []Move
}

// Move is a box of elements of an operand and its place in the result. The element at index i of the box is the one at
// index To+i of the result, and that at index From[Dims[k]]+i[k] along dimension Dims[k] of the operand for all k.
// Along dimensions of the result where Dims is −1 the operand is repeated.
type Move struct {
	Operand int
	Extent  Shape // of the box, one for each dimension of the result
	To      []int // in the result, by its dimension
	From    []int // in the operand, by its dimension
	Dims    []int // the dimension of the operand that runs along each dimension of the result
}

// Strides are the distances between neighbours along each dimension of a row-major tensor.
func (s Shape) Strides() []int {
	strides, n := make([]int, len(s)), 1
	for i := len(s) - 1; i >= 0; i-- {
		strides[i] = n
		n *= s[i]
	}
	return strides
}

// Along gives, for storage of operand and result with the given strides, the offset of the box in both and the distance
// between neighbours along each dimension of the result.
func (m Move) Along(operand, result []int) (from, to int, src, dst []int) {
	src = make([]int, len(m.Extent))
	for k, d := range m.Dims {
		to += m.To[k] * result[k]
		if d >= 0 {
			src[k] = operand[d]
		}
	}
	for d, at := range m.From {
		from += at * operand[d]
	}
	return from, to, src, result
}

// whole is the box of all elements of operand i, which has the result's rank, at the index to.
func whole(i int, x Shape, to []int) Move {
	return Move{Operand: i, Extent: x, To: to, From: make([]int, len(x)), Dims: dims(len(x))}
}

// dims counts from 0 to n−1.
func dims(n int) []int {
	d := make([]int, n)
	for i := range d {
		d[i] = i
	}
	return d
}

// walk calls f for each element of a tensor of shape s in row-major order with its place from + Σ index·stride.
func walk(s Shape, from int, stride []int, f func(at int)) {
	if len(s) == 0 {
		f(from)
		return
	}
	for i := range s[0] {
		walk(s[1:], from+i*stride[0], stride[1:], f)
	}
}

func runMove[O Mover](o O, out Tensor, in []Tensor) error {
	return run(o, out, in, moved[float32, O], moved[float64, O])
}

func moved[T element, O Mover](o O, out Tensor, in []Tensor) {
	types := make([]Type, len(in))
	for i, t := range in {
		types[i] = t.Type()
	}
	y := vec[T](out)
	clear(y)
	for _, m := range o.Moves(types...) {
		x := vec[T](in[m.Operand])
		from, to, src, dst := m.Along(in[m.Operand].Shape.Strides(), out.Shape.Strides())
		var places []int
		walk(m.Extent, from, src, func(at int) { places = append(places, at) })
		i := 0
		walk(m.Extent, to, dst, func(at int) {
			y[at] = x[places[i]]
			i++
		})
	}
}
