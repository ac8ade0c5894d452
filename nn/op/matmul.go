package op

import "fmt"

// MatMul multiplies matrices: the last two dimensions of its operands are A [M,K] and B [K,N], or, where TransA or
// TransB says so, Aᵀ [K,M] and Bᵀ [N,K]. The dimensions before them count pairs of matrices and are equal.
type MatMul struct {
	TransA, TransB bool
}

var _ Product = MatMul{}

// Kind is "matmul".
func (MatMul) Kind() string { return "matmul" }

func (o MatMul) String() string { return fmt.Sprintf("matmul{transposed %t, %t}", o.TransA, o.TransB) }

// Infer gives [...,M,N].
func (o MatMul) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"first operand", -1, float}, operand{"second operand", -1, float})
	if err != nil {
		return Type{}, err
	}
	a, b := in[0].Shape, in[1].Shape
	n := len(a) - 2
	if n < 0 || len(b) != len(a) || !a[:n].Equal(b[:n]) {
		return Type{}, wrong(o, in, "operands must have 2 dimensions or more, and the same but for the last two")
	}
	rows, inner, columns := o.Extents(a, b)
	if other := b[n:].Size() / columns; inner != other {
		return Type{}, wrong(o, in, "rows of %d elements, columns of %d", inner, other)
	}
	return Type{dt, append(append(Shape{}, a[:n]...), rows, columns)}, nil
}

// Extents are M, K and N for operands of shapes a and b.
func (o MatMul) Extents(a, b Shape) (rows, inner, columns int) {
	n := len(a) - 2
	rows, inner, columns = a[n], a[n+1], b[n+1]
	if o.TransA {
		rows, inner = inner, rows
	}
	if o.TransB {
		columns = b[n]
	}
	return rows, inner, columns
}

// Gradients are products, too: for A B they are dY Bᵀ and Aᵀ dY.
func (o MatMul) Gradients(in ...Type) ([]*Term, error) {
	if _, err := o.Infer(in...); err != nil {
		return nil, err
	}
	a, b, dy := Leaf(0), Leaf(1), Leaf(ResultGrad)
	da, db := Apply(MatMul{false, !o.TransB}, dy, b), Apply(MatMul{!o.TransA, false}, a, dy)
	if o.TransA {
		da = Apply(MatMul{o.TransB, true}, b, dy)
	}
	if o.TransB {
		db = Apply(MatMul{true, o.TransA}, dy, a)
	}
	return []*Term{da, db}, nil
}

// FLOPs counts every element of A for every column of B.
func (o MatMul) FLOPs(in ...Type) int64 {
	_, _, columns := o.Extents(in[0].Shape, in[1].Shape)
	return 2 * int64(in[0].Shape.Size()) * int64(columns)
}

// Run sums in float64.
func (o MatMul) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, matMul[float32], matMul[float64])
}

func matMul[T element](o MatMul, out Tensor, in []Tensor) {
	a, b, y := vec[T](in[0]), vec[T](in[1]), vec[T](out)
	rows, inner, columns := o.Extents(in[0].Shape, in[1].Shape)
	aRow, aCol, bRow, bCol := inner, 1, columns, 1
	if o.TransA {
		aRow, aCol = 1, rows
	}
	if o.TransB {
		bRow, bCol = 1, inner
	}
	for n := 0; len(y) > 0; n++ {
		for i := range rows {
			for j := range columns {
				sum := 0.0
				for k := range inner {
					sum += float64(a[n*rows*inner+i*aRow+k*aCol]) * float64(b[n*inner*columns+k*bRow+j*bCol])
				}
				y[i*columns+j] = T(sum)
			}
		}
		y = y[rows*columns:]
	}
}
