//go:build gpu && cgo

package dnn

// #include <cudnn_backend.h>
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// backend makes descriptors of cuDNN's backend API and keeps them until they are released. After the first failure,
// which it keeps, its methods do nothing. It is used on one thread.
type backend struct {
	made []C.cudnnBackendDescriptor_t
	err  error
}

// check keeps a failure, with cuDNN's own message.
func (b *backend) check(code C.cudnnStatus_t, call, detail string) bool {
	if code != C.CUDNN_STATUS_SUCCESS && b.err == nil {
		var words [1024]C.char
		C.cudnnGetLastErrorString(&words[0], C.size_t(len(words)))
		if w := C.GoString(&words[0]); w != "" {
			detail += ": " + w
		}
		b.err = failure(call, code, detail)
	}
	return b.err == nil
}

// make makes a descriptor of this kind.
func (b *backend) make(kind C.cudnnBackendDescriptorType_t) (d C.cudnnBackendDescriptor_t) {
	if b.err == nil && b.check(C.cudnnBackendCreateDescriptor(kind, &d), "cudnnBackendCreateDescriptor",
		fmt.Sprintf("type %d", kind)) {
		b.made = append(b.made, d)
	}
	return d
}

// finalize ends the description of d, which messages call by the given name.
func (b *backend) finalize(d C.cudnnBackendDescriptor_t, what string) C.cudnnBackendDescriptor_t {
	if b.err == nil {
		b.check(C.cudnnBackendFinalize(d), "cudnnBackendFinalize", what)
	}
	return d
}

// release destroys the descriptors after the first n.
func (b *backend) release(n int) error {
	var errs []error
	for i := len(b.made) - 1; i >= n; i-- {
		errs = append(errs, failure("cudnnBackendDestroyDescriptor", C.cudnnBackendDestroyDescriptor(b.made[i]), ""))
	}
	b.made = b.made[:min(n, len(b.made))]
	return errors.Join(errs...)
}

// set sets an attribute of d to values.
func set[T any](b *backend, d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t,
	kind C.cudnnBackendAttributeType_t, values ...T) {
	if b.err == nil {
		code := C.cudnnBackendSetAttribute(d, name, kind, C.int64_t(len(values)),
			unsafe.Pointer(unsafe.SliceData(values)))
		b.check(code, "cudnnBackendSetAttribute", fmt.Sprintf("attribute %d", name))
	}
}

func (b *backend) setInts(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t, values ...int64) {
	set(b, d, name, C.CUDNN_TYPE_INT64, values...)
}
func (b *backend) setOne(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t,
	kind C.cudnnBackendAttributeType_t, value int32) {
	set(b, d, name, kind, value)
}
func (b *backend) setType(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t, e Element) {
	b.setOne(d, name, C.CUDNN_TYPE_DATA_TYPE, int32(e))
}
func (b *backend) link(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t,
	to ...C.cudnnBackendDescriptor_t) {
	set(b, d, name, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, to...)
}
func (b *backend) setText(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t, text string) {
	set(b, d, name, C.CUDNN_TYPE_CHAR, append([]byte(text), 0)...)
}

// get reads an attribute of d into values and returns the attribute's length.
func get[T any](b *backend, d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t,
	kind C.cudnnBackendAttributeType_t, values []T) int {
	if b.err != nil {
		return 0
	}
	var n C.int64_t
	code := C.cudnnBackendGetAttribute(d, name, kind, C.int64_t(len(values)), &n,
		unsafe.Pointer(unsafe.SliceData(values)))
	if !b.check(code, "cudnnBackendGetAttribute", fmt.Sprintf("attribute %d", name)) {
		return 0
	}
	return int(n)
}

func (b *backend) getInt(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t) int64 {
	value := make([]int64, 1)
	get(b, d, name, C.CUDNN_TYPE_INT64, value)
	return value[0]
}

// getText reads a text attribute.
func (b *backend) getText(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t) string {
	text := make([]byte, get[byte](b, d, name, C.CUDNN_TYPE_CHAR, nil))
	text = text[:min(get(b, d, name, C.CUDNN_TYPE_CHAR, text), len(text))]
	for len(text) > 0 && text[len(text)-1] == 0 {
		text = text[:len(text)-1]
	}
	return string(text)
}

// getBits reads a list of numbers below 64 as the set bits of one number.
func (b *backend) getBits(d C.cudnnBackendDescriptor_t, name C.cudnnBackendAttributeName_t,
	kind C.cudnnBackendAttributeType_t) (bits uint64) {
	notes := make([]int32, 64)
	for _, n := range notes[:min(get(b, d, name, kind, notes), len(notes))] {
		bits |= 1 << uint(n)
	}
	return bits
}

// tensor describes tensor t, number i of the graph.
func (b *backend) tensor(i int, t tensor) C.cudnnBackendDescriptor_t {
	n, c, h, w, steps := int64(t.dims[0]), int64(t.dims[1]), int64(t.dims[2]), int64(t.dims[3]), t.steps()
	d := b.make(C.CUDNN_BACKEND_TENSOR_DESCRIPTOR)
	b.setType(d, C.CUDNN_ATTR_TENSOR_DATA_TYPE, t.element)
	b.setInts(d, C.CUDNN_ATTR_TENSOR_DIMENSIONS, n, c, h, w)
	b.setInts(d, C.CUDNN_ATTR_TENSOR_STRIDES, steps[:]...)
	b.setInts(d, C.CUDNN_ATTR_TENSOR_UNIQUE_ID, uid(i))
	b.setInts(d, C.CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Align)
	if t.between {
		set(b, d, C.CUDNN_ATTR_TENSOR_IS_VIRTUAL, C.CUDNN_TYPE_BOOLEAN, true)
	}
	if t.scalar {
		set(b, d, C.CUDNN_ATTR_TENSOR_IS_BY_VALUE, C.CUDNN_TYPE_BOOLEAN, true)
	}
	return b.finalize(d, fmt.Sprintf("tensor %d", i))
}

// uid is cuDNN's number for tensor i.
func uid(i int) int64 { return int64(i) + 1 }

// operation describes an operation on tensors.
func (b *backend) operation(o operation, tensors []C.cudnnBackendDescriptor_t) C.cudnnBackendDescriptor_t {
	x, to := tensors[o.a], tensors[o.c]
	switch o.action {
	case opConvolve:
		return b.convolution(o, x, tensors[o.b], to)
	case opMatMul:
		m := b.make(C.CUDNN_BACKEND_MATMUL_DESCRIPTOR)
		b.setType(m, C.CUDNN_ATTR_MATMUL_COMP_TYPE, Float32)
		b.finalize(m, "matmul")
		d := b.make(C.CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
		b.link(d, C.CUDNN_ATTR_OPERATION_MATMUL_DESC, m)
		b.link(d, C.CUDNN_ATTR_OPERATION_MATMUL_ADESC, x)
		b.link(d, C.CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors[o.b])
		b.link(d, C.CUDNN_ATTR_OPERATION_MATMUL_CDESC, to)
		return b.finalize(d, "matmul")
	case opTranspose:
		d := b.make(C.CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
		b.link(d, C.CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x)
		b.link(d, C.CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to)
		return b.finalize(d, "transpose")
	case opSum, opMax:
		r := b.make(C.CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
		by := int32(C.CUDNN_REDUCE_TENSOR_ADD)
		if o.action == opMax {
			by = C.CUDNN_REDUCE_TENSOR_MAX
		}
		b.setOne(r, C.CUDNN_ATTR_REDUCTION_OPERATOR, C.CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, by)
		b.setType(r, C.CUDNN_ATTR_REDUCTION_COMP_TYPE, Float32)
		b.finalize(r, "sum")
		d := b.make(C.CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
		b.link(d, C.CUDNN_ATTR_OPERATION_REDUCTION_DESC, r)
		b.link(d, C.CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
		b.link(d, C.CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to)
		return b.finalize(d, "sum")
	}
	mode := map[action]int32{opMultiply: C.CUDNN_POINTWISE_MUL, opAdd: C.CUDNN_POINTWISE_ADD,
		opReLU: C.CUDNN_POINTWISE_RELU_FWD, opReLUGrad: C.CUDNN_POINTWISE_RELU_BWD, opSubtract: C.CUDNN_POINTWISE_SUB,
		opDivide: C.CUDNN_POINTWISE_DIV, opExp: C.CUDNN_POINTWISE_EXP, opLog: C.CUDNN_POINTWISE_LOG,
		opCopy: C.CUDNN_POINTWISE_IDENTITY}
	p := b.make(C.CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
	b.setOne(p, C.CUDNN_ATTR_POINTWISE_MODE, C.CUDNN_TYPE_POINTWISE_MODE, mode[o.action])
	b.setType(p, C.CUDNN_ATTR_POINTWISE_MATH_PREC, Float32)
	if o.action == opReLU { // by default a NaN may become 0
		b.setOne(p, C.CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, C.CUDNN_TYPE_NAN_PROPOGATION, C.CUDNN_PROPAGATE_NAN)
	}
	b.finalize(p, o.action.String())
	d := b.make(C.CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
	b.link(d, C.CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p)
	b.link(d, C.CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
	if o.action == opReLUGrad {
		b.link(d, C.CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, tensors[o.b])
		b.link(d, C.CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, to)
	} else {
		if o.b >= 0 {
			b.link(d, C.CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors[o.b])
		}
		b.link(d, C.CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to)
	}
	return b.finalize(d, o.action.String())
}

// convolution describes a convolution of x, w and y.
func (b *backend) convolution(o operation, x, w, y C.cudnnBackendDescriptor_t) C.cudnnBackendDescriptor_t {
	pair := func(a [2]int) []int64 { return []int64{int64(a[0]), int64(a[1])} }
	v := b.make(C.CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
	b.setType(v, C.CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Float32)
	b.setOne(v, C.CUDNN_ATTR_CONVOLUTION_CONV_MODE, C.CUDNN_TYPE_CONVOLUTION_MODE, C.CUDNN_CROSS_CORRELATION)
	b.setInts(v, C.CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2)
	b.setInts(v, C.CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pair(o.shape.Pad)...)
	b.setInts(v, C.CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pair(o.shape.Pad)...)
	b.setInts(v, C.CUDNN_ATTR_CONVOLUTION_DILATIONS, pair(o.shape.Dilation)...)
	b.setInts(v, C.CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, pair(o.shape.Stride)...)
	b.finalize(v, "convolution")
	type attribute = C.cudnnBackendAttributeName_t
	of := [...]struct {
		kind                       C.cudnnBackendDescriptorType_t
		alpha, beta, conv, w, x, y attribute
	}{
		Forward: {C.CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, C.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, C.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, C.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
		GradInput: {C.CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
		GradWeight: {C.CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
			C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, C.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
	}[o.kind]
	d := b.make(of.kind)
	set(b, d, of.alpha, C.CUDNN_TYPE_FLOAT, float32(1))
	set(b, d, of.beta, C.CUDNN_TYPE_FLOAT, float32(0))
	b.link(d, of.conv, v)
	b.link(d, of.w, w)
	b.link(d, of.x, x)
	b.link(d, of.y, y)
	return b.finalize(d, o.kind.String())
}

// onThread runs f on one thread, because cuDNN keeps error messages by thread.
func onThread(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}
