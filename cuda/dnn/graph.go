//go:build gpu && cgo

package dnn

// #include <cudnn_backend.h>
import "C"

import (
	"fmt"
	"strings"

	"onlinerna/cuda/number"
)

// Element is the type of a tensor's elements.
type Element int

// The types of elements.
const (
	Float32  Element = C.CUDNN_DATA_FLOAT
	Float16  Element = C.CUDNN_DATA_HALF
	BFloat16 Element = C.CUDNN_DATA_BFLOAT16
)

func (e Element) String() string {
	return map[Element]string{Float32: "f32", Float16: "f16", BFloat16: "bf16"}[e]
}

// bytes is the size of an element.
func (e Element) bytes() int64 {
	if e == Float32 {
		return 4
	}
	return 2
}

// ElementOf is the element type of tensors in a precision.
func ElementOf(p number.Precision) Element {
	return map[number.Precision]Element{number.BFloat16: BFloat16, number.Float16: Float16}[p] // otherwise Float32
}

// Tensor is the number of one of a graph's tensors.
type Tensor int

// Dims are the extents of a tensor: images, channels, rows and columns, stored channels-last. Filters have outputs in
// place of images, and the channels of one group.
type Dims [4]int

// Channels are the dims of a tensor with one value for each channel.
func Channels(c int) Dims { return Dims{1, c, 1, 1} }

func (d Dims) elements() int64 { return int64(d[0]) * int64(d[1]) * int64(d[2]) * int64(d[3]) }

// tensor describes a tensor. Tensors between operations are not stored in memory, and neither are constants.
type tensor struct {
	element Element
	dims    Dims
	strides Dims // zero for channels-last
	between bool
	scalar  bool // a constant of one element
	value   float32
}

func (t tensor) bytes() int64 { return t.element.bytes() * t.dims.elements() }

// stored reports whether the tensor lies in memory.
func (t tensor) stored() bool { return !t.between && !t.scalar }

// place is the size in bytes from a tensor's first element to the end of its last.
func (t tensor) place() int64 {
	if t.strides == (Dims{}) {
		return t.bytes()
	}
	last := int64(1)
	for i, n := range t.dims {
		last += int64(n-1) * int64(t.strides[i])
	}
	return t.element.bytes() * last
}

// steps are the distances between neighbours along the dimensions.
func (t tensor) steps() (all [4]int64) {
	c, h, w := int64(t.dims[1]), int64(t.dims[2]), int64(t.dims[3])
	all = [4]int64{c * h * w, 1, c * w, c}
	if t.strides != (Dims{}) {
		for i, n := range t.strides {
			all[i] = int64(n)
		}
	}
	return all
}

// action is the function of an operation.
type action int

const (
	opConvolve action = iota
	opMultiply
	opAdd
	opReLU
	opReLUGrad
	opSum
	opSubtract
	opDivide
	opExp
	opLog
	opCopy
	opMax
	opMatMul
	opTranspose
)

func (a action) String() string {
	return [...]string{"convolve", "multiply", "add", "relu of NaN, too", "relu'", "sum", "subtract", "divide", "exp", "log",
		"copy", "max", "matmul", "transpose"}[a]
}

// operation computes tensor c from tensor a and, if it takes two, b. A convolution has x, w and y in a, b and c, or
// their gradients, whichever of them it computes.
type operation struct {
	action  action
	kind    Kind  // of a convolution
	shape   Shape // of a convolution
	a, b, c Tensor
}

// A Graph is a list of operations on tensors that run as one plan of cuDNN. All compute in float32.
type Graph struct {
	// Name describes the graph in a few words.
	Name      string
	tensors   []tensor
	ops       []operation
	attention Attention // of graphs of Attention
}

// Tensor adds a tensor in memory. Run takes the tensors' places in the order in which they were added.
func (g *Graph) Tensor(e Element, d Dims) Tensor { return g.tensor(tensor{element: e, dims: d}) }

// Between adds a tensor that passes from one operation to another without being stored.
func (g *Graph) Between(e Element, d Dims) Tensor {
	return g.tensor(tensor{element: e, dims: d, between: true})
}

func (g *Graph) tensor(t tensor) Tensor {
	g.tensors = append(g.tensors, t)
	return Tensor(len(g.tensors) - 1)
}

// Convolve adds a convolution of x, w and y. kind chooses the one that is computed; the others may be gradients.
func (g *Graph) Convolve(kind Kind, s Shape, x, w, y Tensor) {
	g.ops = append(g.ops, operation{action: opConvolve, kind: kind, shape: s, a: x, b: w, c: y})
}

// Multiply adds to = a · b, where b may have one element for each channel.
func (g *Graph) Multiply(a, b, to Tensor) { g.pointwise(opMultiply, a, b, to) }

// Add adds to = a + b, where b may have one element for each channel.
func (g *Graph) Add(a, b, to Tensor) { g.pointwise(opAdd, a, b, to) }

// ReLU adds to = max(a, 0), which keeps NaN.
func (g *Graph) ReLU(a, to Tensor) { g.pointwise(opReLU, a, -1, to) }

// ReLUGrad adds to = dy where x > 0, else 0.
func (g *Graph) ReLUGrad(x, dy, to Tensor) { g.pointwise(opReLUGrad, x, dy, to) }

// Sum adds the sums of a over each channel.
func (g *Graph) Sum(a, to Tensor) { g.pointwise(opSum, a, -1, to) }

func (g *Graph) pointwise(what action, a, b, to Tensor) {
	g.ops = append(g.ops, operation{action: what, a: a, b: b, c: to})
}

// Places are the sizes in bytes of the tensors in memory, in the order in which they were added.
func (g *Graph) Places() (bytes []int64) {
	for _, t := range g.tensors {
		if t.stored() {
			bytes = append(bytes, t.place())
		}
	}
	return bytes
}

// inputs lists the tensors in memory in the order in which they were added: those that are only read, and nil for
// others.
func (g *Graph) inputs() (all []*tensor) {
	made := map[Tensor]bool{}
	for _, o := range g.ops {
		made[o.result()] = true
	}
	for i := range g.tensors {
		if t := &g.tensors[i]; made[Tensor(i)] && t.stored() {
			all = append(all, nil)
		} else if t.stored() {
			all = append(all, t)
		}
	}
	return all
}

// result is the tensor that the operation computes.
func (o operation) result() Tensor {
	switch {
	case o.action == opConvolve && o.kind == GradInput:
		return o.a
	case o.action == opConvolve && o.kind == GradWeight:
		return o.b
	}
	return o.c
}

// convolution is the graph's convolution.
func (g *Graph) convolution() operation {
	for _, o := range g.ops {
		if o.action == opConvolve {
			return o
		}
	}
	return operation{}
}

// Kind is the kind of the graph's convolution.
func (g *Graph) Kind() Kind { return g.convolution().kind }

// Shape is the shape of the graph's convolution.
func (g *Graph) Shape() Shape { return g.convolution().shape }

// String writes everything about the graph except its name.
func (g *Graph) String() string {
	var b strings.Builder
	for i, t := range g.tensors {
		kind := ""
		if t.strides != (Dims{}) {
			kind = fmt.Sprintf(" by %v", t.strides)
		}
		if t.between {
			kind += " between"
		}
		if t.scalar {
			kind = fmt.Sprintf(" = %v", t.value)
		}
		fmt.Fprintf(&b, "%d: %v %d×%d×%d×%d%s; ", i, t.element, t.dims[0], t.dims[1], t.dims[2], t.dims[3], kind)
	}
	for i, o := range g.ops {
		if i > 0 {
			b.WriteString("; ")
		}
		switch {
		case o.action == opConvolve:
			fmt.Fprintf(&b, "%v %v, %d %d %d", o.kind, o.shape, o.a, o.b, o.c)
		case o.b < 0:
			fmt.Fprintf(&b, "%v %d to %d", o.action, o.a, o.c)
		default:
			fmt.Fprintf(&b, "%v %d %d to %d", o.action, o.a, o.b, o.c)
		}
	}
	return b.String()
}

// deterministic reports whether the graph allows equal bits in all runs: sums over channels, and those of an attention's
// gradient in float32, are added in the order in which blocks end.
func (g *Graph) deterministic() bool {
	for _, o := range g.ops {
		if o.action == opSum && g.attention == (Attention{}) || o.action == opCopy {
			return false
		}
	}
	return true
}
