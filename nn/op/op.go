package op

import (
	"fmt"
	"slices"
	"strings"
)

// DType is the element type of a tensor.
type DType uint8

// The element types.
const (
	Float32 DType = iota + 1
	Float64
	Int32 // labels and crop offsets
	Uint8 // pixels
)

// Size is the number of bytes of an element.
func (d DType) Size() int {
	switch d {
	case Float32, Int32:
		return 4
	case Float64:
		return 8
	case Uint8:
		return 1
	}
	return 0
}

// Float reports whether d is a floating-point type.
func (d DType) Float() bool { return d == Float32 || d == Float64 }

func (d DType) String() string {
	switch d {
	case Float32:
		return "float32"
	case Float64:
		return "float64"
	case Int32:
		return "int32"
	case Uint8:
		return "uint8"
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Shape is the extent of a tensor in each dimension. The empty shape is a scalar's.
type Shape []int

// Size is the number of elements.
func (s Shape) Size() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal reports whether s and t have the same dimensions.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s, t) }

// String writes the shape as [2 3 4].
func (s Shape) String() string { return fmt.Sprint([]int(s)) }

// Type is the element type and shape of a tensor.
type Type struct {
	DType DType
	Shape Shape
}

// T is short for a Type.
func T(d DType, shape ...int) Type { return Type{d, shape} }

// Bytes is the size of the tensor's elements.
func (t Type) Bytes() int { return t.Shape.Size() * t.DType.Size() }

// Equal reports whether t and u agree in element type and shape.
func (t Type) Equal(u Type) bool { return t.DType == u.DType && t.Shape.Equal(u.Shape) }

func (t Type) String() string { return t.DType.String() + t.Shape.String() }

// Tensor is a row-major array on the host. Data is a []float32, []float64, []int32 or []uint8 of
// Shape.Size() elements; images are laid out NCHW and convolution weights OIHW.
type Tensor struct {
	Shape Shape
	Data  any
}

// New allocates a zero tensor of type t.
func New(t Type) Tensor {
	n := t.Shape.Size()
	x := Tensor{Shape: slices.Clone(t.Shape)}
	switch t.DType {
	case Float32:
		x.Data = make([]float32, n)
	case Float64:
		x.Data = make([]float64, n)
	case Int32:
		x.Data = make([]int32, n)
	case Uint8:
		x.Data = make([]uint8, n)
	}
	return x
}

// DType is the element type of t's data, 0 for data of any other type.
func (t Tensor) DType() DType {
	switch t.Data.(type) {
	case []float32:
		return Float32
	case []float64:
		return Float64
	case []int32:
		return Int32
	case []uint8:
		return Uint8
	}
	return 0
}

// Type is t's element type and shape.
func (t Tensor) Type() Type { return Type{t.DType(), t.Shape} }

// Op is one operation: its attributes, its shape rule and its reference kernel. Ops are values: they
// hold attributes only and may be copied, compared by String and used from several goroutines.
type Op interface {
	// Kind is the name of the operation, as "conv2d".
	Kind() string
	// String is the kind with every attribute. Ops with equal strings compute the same function.
	String() string
	// Infer returns the type of the result, or an error with the op and all shapes.
	Infer(in ...Type) (Type, error)
	// Run computes the result into out, whose type is Infer's. It is the definition of the op: simple and
	// sequential, with sums in float64 that are rounded once to the element type of the result. It never
	// changes its operands, except an InPlace op's first.
	Run(out Tensor, in ...Tensor) error
}

// InPlace is an op whose result overwrites its first operand, as the update of running statistics does.
type InPlace interface {
	Op
	// OverwritesFirst marks the op; out and in[0] of Run share their data.
	OverwritesFirst()
}

// View is an op whose result is a contiguous part of its first operand in row-major order: Run copies
// it, and a device that keeps the operand row-major need not.
type View interface {
	Op
	// ViewOffset is the element of the operand, of type in, at which the result starts.
	ViewOffset(in Type) int
}

// Overwriter is an op whose result may take the storage of an operand that nobody reads later. Its kernels read an
// element of the operand before they write the one of the result that lies there, and not again.
type Overwriter interface {
	Op
	// Overwrites lists such operands, for operands of types that fit.
	Overwrites(in ...Type) []int
}

// Weighted is an op some of whose operands last from step to step: parameters and statistics.
type Weighted interface {
	Op
	// Weights lists them. An optional operand is listed, too.
	Weights() []int
}

// Product is an op whose multiplications determine its time: a convolution, a linear layer or the gradient of one.
type Product interface {
	Op
	// FLOPs counts multiplications and additions, for operands of types that fit.
	FLOPs(in ...Type) int64
}

// Sparing is an op that does not need all of its operands.
type Sparing interface {
	Op
	// Reads counts the elements that it needs of each operand, for operands of types that fit.
	Reads(in ...Type) []int
}

// Differentiable is an op that knows its gradients.
type Differentiable interface {
	Op
	// Gradients gives, for each operand, the formula of the gradient of a scalar with respect to that
	// operand, given the gradient with respect to the result. It is nil for operands without a gradient
	// (labels, pixels, statistics that are held fixed). Formulas may share terms.
	Gradients(in ...Type) ([]*Term, error)
}

// Operand is a leaf of a gradient formula: 0, 1, … are the op's operands.
type Operand int

// The other leaves of a gradient formula.
const (
	Result     Operand = -1 // the op's result
	ResultGrad Operand = -2 // the gradient with respect to the result
)

// Term is a gradient formula: a leaf if Op is nil, otherwise Op applied to Args. A term that appears
// twice is computed once.
type Term struct {
	Op   Op
	Args []*Term
	Leaf Operand
}

// Leaf makes the term that stands for an operand.
func Leaf(o Operand) *Term { return &Term{Leaf: o} }

// Apply makes the term that applies o.
func Apply(o Op, args ...*Term) *Term { return &Term{Op: o, Args: args} }

// wrong makes an error that names the op, its operands and the mismatch.
func wrong(o Op, in []Type, format string, args ...any) error {
	of := make([]string, len(in))
	for i, t := range in {
		of[i] = t.String()
	}
	if len(of) == 0 {
		of = []string{"nothing"}
	}
	return fmt.Errorf("%v of %s: %s", o, strings.Join(of, ", "), fmt.Sprintf(format, args...))
}

// operand is an op's requirement on an operand: a name for messages and a rank. Ranks below 0 mean any.
type operand struct {
	name string
	rank int
	kind operandKind
}

type operandKind uint8

const (
	float operandKind = iota // of the floating-point type that the op's operands share
	integer
	pixels
)

// check compares operands with an op's requirements, and returns the floating-point type that they share.
func check(o Op, in []Type, want ...operand) (DType, error) {
	if len(in) != len(want) {
		names := make([]string, len(want))
		for i, w := range want {
			names[i] = w.name
		}
		return 0, wrong(o, in, "wants %d operands (%s), not %d", len(want), strings.Join(names, ", "), len(in))
	}
	var shared DType
	for i, w := range want {
		t := in[i]
		if !positive(t.Shape) {
			return 0, wrong(o, in, "%s has an extent below 1", w.name)
		}
		if w.rank >= 0 && len(t.Shape) != w.rank {
			return 0, wrong(o, in, "%s must have %d dimensions", w.name, w.rank)
		}
		switch {
		case w.kind == integer && t.DType != Int32:
			return 0, wrong(o, in, "%s must be int32", w.name)
		case w.kind == pixels && t.DType != Uint8:
			return 0, wrong(o, in, "%s must be uint8", w.name)
		case w.kind == float && !t.DType.Float():
			return 0, wrong(o, in, "%s must be float32 or float64", w.name)
		case w.kind == float && shared != 0 && t.DType != shared:
			return 0, wrong(o, in, "%s must be %v like the operands before it", w.name, shared)
		case w.kind == float:
			shared = t.DType
		}
	}
	return shared, nil
}

// positive reports whether all extents are 1 or more.
func positive(s Shape) bool {
	return !slices.ContainsFunc(s, func(d int) bool { return d < 1 })
}

// checkShape compares the shape attribute of a gradient op with the rank of its result.
func checkShape(o Op, in []Type, name string, s Shape, rank int) error {
	if len(s) != rank || !positive(s) {
		return wrong(o, in, "the %s %v must have %d dimensions of 1 or more", name, s, rank)
	}
	return nil
}

// typed is the result of Infer: the type, or only the error.
func typed(d DType, s Shape, err error) (Type, error) {
	if err != nil {
		return Type{}, err
	}
	return Type{d, s}, nil
}

// checkEps requires a small constant that keeps 1/√(var+eps) finite.
func checkEps(o Op, in []Type, eps float64) error {
	if !(eps >= 0) {
		return wrong(o, in, "eps must not be negative")
	}
	return nil
}

// element is the constraint of kernels, which are written once for both floating-point types. They add up in
// float64 and round once.
type element interface{ float32 | float64 }

// vec is the data of a tensor whose elements are T.
func vec[T any](t Tensor) []T { return t.Data.([]T) }

// run checks the tensors of o.Run and calls the kernel for the element type of the result.
func run[O Op](o O, out Tensor, in []Tensor, f32, f64 func(o O, out Tensor, in []Tensor)) error {
	types := make([]Type, len(in))
	for i, t := range in {
		types[i] = t.Type()
	}
	want, err := o.Infer(types...)
	if err != nil {
		return err
	}
	if !out.Type().Equal(want) {
		return wrong(o, types, "the result is %v, not %v", want, out.Type())
	}
	if n := length(out); n != want.Shape.Size() {
		return wrong(o, types, "the result holds %d elements", n)
	}
	for i, t := range in {
		if n := length(t); n != t.Shape.Size() {
			return wrong(o, types, "operand %d holds %d elements", i, n)
		}
	}
	switch want.DType {
	case Float32:
		f32(o, out, in)
	case Float64:
		f64(o, out, in)
	default:
		return fmt.Errorf("%v: no kernel for results of type %v", o, want.DType)
	}
	return nil
}

// length is the number of elements that t holds.
func length(t Tensor) int {
	switch d := t.Data.(type) {
	case []float32:
		return len(d)
	case []float64:
		return len(d)
	case []int32:
		return len(d)
	case []uint8:
		return len(d)
	}
	return 0
}
