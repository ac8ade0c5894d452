//go:build gpu && cgo

package dnn

// #include <cudnn.h>
//
// // The three convolutions in one form: the operands and the result in the order of cuDNN's functions.
// enum { FORWARD, GRAD_INPUT, GRAD_WEIGHT };
// typedef struct {
//	int kind, algo, math;
//	cudnnTensorDescriptor_t x, y;
//	cudnnFilterDescriptor_t w;
//	cudnnConvolutionDescriptor_t conv;
// } convolution;
//
// static cudnnStatus_t conv_algorithms(cudnnHandle_t h, const convolution *v, int asked, int *given,
//	struct cudnnConvolutionAlgoPerf *out) {
//	switch (v->kind) {
//	case FORWARD: return cudnnGetConvolutionForwardAlgorithm_v7(h, v->x, v->w, v->conv, v->y, asked, given, out);
//	case GRAD_INPUT: return cudnnGetConvolutionBackwardDataAlgorithm_v7(h, v->w, v->y, v->conv, v->x, asked, given, out);
//	default: return cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, v->x, v->y, v->conv, v->w, asked, given, out);
//	}
// }
//
// static cudnnStatus_t conv_workspace(cudnnHandle_t h, const convolution *v, size_t *bytes) {
//	switch (v->kind) {
//	case FORWARD: return cudnnGetConvolutionForwardWorkspaceSize(h, v->x, v->w, v->conv, v->y, v->algo, bytes);
//	case GRAD_INPUT: return cudnnGetConvolutionBackwardDataWorkspaceSize(h, v->w, v->y, v->conv, v->x, v->algo, bytes);
//	default: return cudnnGetConvolutionBackwardFilterWorkspaceSize(h, v->x, v->y, v->conv, v->w, v->algo, bytes);
//	}
// }
//
// // Addresses are numbers: they are the GPU's.
// static cudnnStatus_t conv_run(cudnnHandle_t h, const convolution *v, CUdeviceptr a, CUdeviceptr b, CUdeviceptr space,
//	size_t bytes, CUdeviceptr to) {
//	const float one = 1, zero = 0;
//	const void *p = (const void *)a, *q = (const void *)b;
//	void *s = (void *)space, *r = (void *)to;
//	switch (v->kind) {
//	case FORWARD: return cudnnConvolutionForward(h, &one, v->x, p, v->w, q, v->conv, v->algo, s, bytes, &zero, v->y, r);
//	case GRAD_INPUT: return cudnnConvolutionBackwardData(h, &one, v->w, p, v->y, q, v->conv, v->algo, s, bytes, &zero,
//		v->x, r);
//	default: return cudnnConvolutionBackwardFilter(h, &one, v->x, p, v->y, q, v->conv, v->algo, s, bytes, &zero,
//		v->w, r);
//	}
// }
import "C"

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// Kind is the quantity that a convolution computes.
type Kind int

// The kinds of convolutions, with their operands and result.
const (
	Forward    Kind = C.FORWARD     // x, w to y
	GradInput  Kind = C.GRAD_INPUT  // w, dy to dx
	GradWeight Kind = C.GRAD_WEIGHT // x, dy to dw
)

func (k Kind) String() string {
	return [...]string{"Forward", "BackwardData", "BackwardFilter"}[k]
}

// Shape is the shape of a cross-correlation of channels-last tensors: x [N,H,W,C], w [O,KH,KW,C/Groups], y [N,H',W',O].
type Shape struct {
	N, C, H, W, O, KH, KW int
	Stride, Pad, Dilation [2]int // vertical, horizontal
	Groups                int
}

func (s Shape) String() string {
	return fmt.Sprintf("x %d×%d×%d×%d, w %d×%d×%d×%d, stride %v, pad %v, dilation %v, groups %d",
		s.N, s.C, s.H, s.W, s.O, s.C/s.Groups, s.KH, s.KW, s.Stride, s.Pad, s.Dilation, s.Groups)
}

// out is the output's height H' and width W'.
func (s Shape) out() [2]int {
	at := func(d, in, taps int) int { return (in+2*s.Pad[d]-s.Dilation[d]*(taps-1)-1)/s.Stride[d] + 1 }
	return [2]int{at(0, s.H, s.KH), at(1, s.W, s.KW)}
}

// elements counts the elements of x, w and y.
func (s Shape) elements() (x, w, y int64) {
	out := s.out()
	return int64(s.N) * int64(s.C) * int64(s.H) * int64(s.W),
		int64(s.O) * int64(s.C/s.Groups) * int64(s.KH) * int64(s.KW),
		int64(s.N) * int64(s.O) * int64(out[0]) * int64(out[1])
}

// Options are a convolution's precision and the rules for choosing its algorithm.
type Options struct {
	Precision     number.Precision // of all three tensors; sums are float32
	Deterministic bool             // only algorithms that give equal bits in each run
	Workspace     int64            // limit for scratch in bytes, if there is a choice
	// Later leaves all plans of a graph to [Plans.Settle], because making them may compile kernels.
	Later bool
	// Tried, unless nil, gets the result of each plan and algorithm that was tried on the card.
	Tried func(Tried)
	// Measure makes [Convolution.Settle] time the algorithms if there are several and take the fastest, which is kept
	// in [Options].KernelCache for later runs with the same card and cuDNN. Without it, and with Deterministic, the
	// first one of cuDNN's heuristics is taken. The fastest may differ between measurements and give other bits.
	Measure bool
}

// A Convolution is one of the three convolutions for tensors of one shape. It runs a plan of cuDNN's graph API or, if
// no plan runs, an algorithm of the older functions.
type Convolution struct {
	*driver.Resource // of the algorithm
	d                *Handle
	o                Options
	plans            *Plans // nil for an algorithm
	v                C.convolution
	shape            Shape
	graph            *Graph      // the same convolution as a graph
	work             driver.Work // of one run
	precision        number.Precision
	workspace        int64
	own              *driver.Memory // workspace of an algorithm for which none was planned

	unsettled []algorithm // candidates among which Settle chooses
	settled   bool        // the algorithm has run
	others    []algorithm // replacements for the chosen one
	short     bool        // an algorithm had too little memory to be timed
	math      C.int       // cuDNN's math type for the precision
	key       string      // of the choice in the cache
}

// Align is the alignment in bytes of tensors for cuDNN's fast kernels.
const Align = 16

// ErrNoAlgorithm reports that cuDNN has no algorithm for a convolution.
var ErrNoAlgorithm = errors.New("cuDNN has no algorithm")

// NewConvolution describes a convolution and chooses its plan or algorithm, unless Settle must measure first.
func (d *Handle) NewConvolution(kind Kind, shape Shape, o Options) (*Convolution, error) {
	v := &Convolution{d: d, o: o, shape: shape, precision: o.Precision, v: C.convolution{kind: C.int(kind)}}
	v.graph = shape.graph(kind, ElementOf(o.Precision))
	plans, err := d.NewPlans(v.graph, o)
	if err == nil {
		v.plans = plans
		return v, nil
	}
	if d.Described() && errors.Is(err, ErrNoPlan) {
		return nil, fmt.Errorf("%w: %w", ErrNoAlgorithm, err)
	}
	if errors.Is(err, ErrNoPlan) {
		err = v.legacy(o)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// legacy chooses an algorithm.
func (v *Convolution) legacy(o Options) error {
	d := v.d
	v.work = v.graph.work()
	return d.do(func() error {
		err := v.describe()
		if err == nil {
			err = v.choose(o)
		}
		if err != nil {
			_ = v.destroy() // err is the cause
			return err
		}
		v.Resource = d.adopt("convolution", v.destroy)
		return nil
	})
}

// Close frees the convolution.
func (v *Convolution) Close() error {
	switch {
	case v.plans != nil:
		return v.plans.Close()
	case v.Resource == nil: // there is no algorithm in use, either
		return nil
	case v.own != nil:
		return errors.Join(v.Resource.Close(), v.own.Close())
	}
	return v.Resource.Close()
}

// Short reports whether a plan or algorithm that may be faster was skipped for lack of memory.
func (v *Convolution) Short() bool { return v.short || v.plans != nil && v.plans.Short() }

// Plans are the convolution's plans, nil if it runs an algorithm.
func (v *Convolution) Plans() *Plans { return v.plans }

// describe makes the descriptors.
func (v *Convolution) describe() error {
	s, out := v.shape, v.shape.out()
	typ := [...]C.cudnnDataType_t{number.Float32: C.CUDNN_DATA_FLOAT, number.TF32: C.CUDNN_DATA_FLOAT,
		number.BFloat16: C.CUDNN_DATA_BFLOAT16, number.Float16: C.CUDNN_DATA_HALF}[v.precision]
	v.v.math = [...]C.int{number.Float32: C.CUDNN_FMA_MATH, number.TF32: C.CUDNN_DEFAULT_MATH,
		number.BFloat16: C.CUDNN_TENSOR_OP_MATH, number.Float16: C.CUDNN_TENSOR_OP_MATH}[v.precision]
	v.math = v.v.math
	for _, step := range []struct {
		call string
		run  func() C.cudnnStatus_t
	}{
		{"cudnnCreateTensorDescriptor", func() C.cudnnStatus_t { return C.cudnnCreateTensorDescriptor(&v.v.x) }},
		{"cudnnCreateTensorDescriptor", func() C.cudnnStatus_t { return C.cudnnCreateTensorDescriptor(&v.v.y) }},
		{"cudnnCreateFilterDescriptor", func() C.cudnnStatus_t { return C.cudnnCreateFilterDescriptor(&v.v.w) }},
		{"cudnnCreateConvolutionDescriptor",
			func() C.cudnnStatus_t { return C.cudnnCreateConvolutionDescriptor(&v.v.conv) }},
		{"cudnnSetTensor4dDescriptor", func() C.cudnnStatus_t {
			return C.cudnnSetTensor4dDescriptor(v.v.x, C.CUDNN_TENSOR_NHWC, typ, C.int(s.N), C.int(s.C), C.int(s.H),
				C.int(s.W))
		}},
		{"cudnnSetTensor4dDescriptor", func() C.cudnnStatus_t {
			return C.cudnnSetTensor4dDescriptor(v.v.y, C.CUDNN_TENSOR_NHWC, typ, C.int(s.N), C.int(s.O), C.int(out[0]),
				C.int(out[1]))
		}},
		{"cudnnSetFilter4dDescriptor", func() C.cudnnStatus_t {
			return C.cudnnSetFilter4dDescriptor(v.v.w, typ, C.CUDNN_TENSOR_NHWC, C.int(s.O), C.int(s.C/s.Groups),
				C.int(s.KH), C.int(s.KW))
		}},
		{"cudnnSetConvolution2dDescriptor", func() C.cudnnStatus_t {
			return C.cudnnSetConvolution2dDescriptor(v.v.conv, C.int(s.Pad[0]), C.int(s.Pad[1]), C.int(s.Stride[0]),
				C.int(s.Stride[1]),
				C.int(s.Dilation[0]), C.int(s.Dilation[1]), C.CUDNN_CROSS_CORRELATION, C.CUDNN_DATA_FLOAT)
		}},
		{"cudnnSetConvolutionGroupCount", func() C.cudnnStatus_t {
			return C.cudnnSetConvolutionGroupCount(v.v.conv,
				C.int(s.Groups))
		}},
		{"cudnnSetConvolutionMathType", v.setMath},
	} {
		if err := v.d.check(step.call, step.run(), s.String()); err != nil {
			return err
		}
	}
	return nil
}

func (v *Convolution) setMath() C.cudnnStatus_t {
	return C.cudnnSetConvolutionMathType(v.v.conv, C.cudnnMathType_t(v.v.math))
}

// suits reports whether an algorithm and its math type are as exact as the precision. Winograd transforms are inexact
// in 16 bits.
func (v *Convolution) suits(algo int, math C.cudnnMathType_t) bool {
	winograd := [...]int{Forward: 6, GradInput: 4, GradWeight: 4}[v.kindOf()] // and the next number
	if math == C.CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION || v.precision.Bytes() == 2 &&
		(algo == winograd || algo == winograd+1) {
		return false
	}
	return v.precision != number.Float32 || math != C.CUDNN_TENSOR_OP_MATH
}

// algorithms lists the algorithms within the options except for scratch, each once, with the scratch that cuDNN reports
// for it: those of cuDNN's heuristics, best first, or all if cuDNN refuses to name any.
func (v *Convolution) algorithms(o Options) ([]algorithm, error) {
	var all [16]C.struct_cudnnConvolutionAlgoPerf
	var n C.int
	call := fmt.Sprintf("cudnnGetConvolution%vAlgorithm_v7", v.kindOf())
	refused := v.d.check(call, C.conv_algorithms(v.d.h, &v.v, C.int(len(all)), &n, &all[0]), v.shape.String())
	if ends(refused) {
		return nil, refused
	}
	var list []algorithm
	if refused != nil {
		list = v.numbered(o)
	} else {
		for _, a := range all[:n] {
			if a.status == C.CUDNN_STATUS_SUCCESS && v.suits(int(a.algo), a.mathType) &&
				(!o.Deterministic || a.determinism == C.CUDNN_DETERMINISTIC) {
				list = append(list, algorithm{int(a.algo), int(a.mathType), 0})
			}
		}
	}
	var real []algorithm
	for _, a := range list {
		err := v.use(a)
		if ends(err) {
			return nil, err
		}
		if a.Bytes = v.workspace; err == nil && !slices.Contains(real, a) {
			real = append(real, a)
		}
	}
	if len(real) == 0 {
		return nil, errors.Join(fmt.Errorf("cuda: %w for %v of %v in %v", ErrNoAlgorithm, v.kindOf(), v.shape,
			v.precision), refused)
	}
	return real, nil
}

// numbered lists all algorithms by number, starting with those that cuDNN's manual calls general.
func (v *Convolution) numbered(o Options) (list []algorithm) {
	count := [...]int{Forward: 8, GradInput: 6, GradWeight: 7}[v.kindOf()]
	atomic := [...][]int{Forward: nil, GradInput: {0}, GradWeight: {0, 3}}[v.kindOf()]
	for i := range count {
		i = (i + 1) % count
		if v.suits(i, C.cudnnMathType_t(v.math)) && (!o.Deterministic || !slices.Contains(atomic, i)) {
			list = append(list, algorithm{i, int(v.math), 0})
		}
	}
	return list
}

// use makes a the chosen algorithm.
func (v *Convolution) use(a algorithm) error {
	v.v.algo = C.int(a.Number)
	if v.precision != number.Float32 { // otherwise the description asks for float32 products
		v.v.math = C.int(a.Math)
		if err := v.d.check("cudnnSetConvolutionMathType", v.setMath(), v.shape.String()); err != nil {
			return err
		}
	}
	var bytes C.size_t
	call := fmt.Sprintf("cudnnGetConvolution%vWorkspaceSize", v.kindOf())
	err := v.d.check(call, C.conv_workspace(v.d.h, &v.v, &bytes), v.shape.String())
	v.workspace = int64(bytes)
	return err
}

func (v *Convolution) kindOf() Kind { return Kind(v.v.kind) }

// Kind is the quantity that is computed.
func (v *Convolution) Kind() Kind { return v.kindOf() }

// Shape is the convolution's shape.
func (v *Convolution) Shape() Shape { return v.shape }

// Operands are the sizes of the operands and the result in bytes, in the order of the kind.
func (v *Convolution) Operands() [3]int64 {
	x, w, y := v.shape.elements()
	n := int64(v.precision.Bytes())
	return [...][3]int64{Forward: {n * x, n * w, n * y}, GradInput: {n * w, n * y, n * x},
		GradWeight: {n * x, n * y, n * w}}[v.kindOf()]
}

// Precision is the precision of the tensors.
func (v *Convolution) Precision() number.Precision { return v.precision }

// Workspace is the scratch in bytes that Run needs.
func (v *Convolution) Workspace() int64 {
	if v.plans != nil {
		return v.plans.Workspace()
	}
	return v.workspace
}

// Run computes the result `to` from the operands a and b, in the order of the kind. All spans start at multiples of 16
// bytes. The content of the workspace is lost.
func (v *Convolution) Run(a, b, to, workspace driver.Span) error {
	if v.plans != nil {
		return v.plans.Run([]driver.Span{a, b, to}, workspace)
	}
	return v.d.do(func() error {
		if err := v.Check(); err != nil {
			return err
		}
		return v.launch(a, b, to, workspace)
	})
}

// launch is Run, called on the owner thread.
func (v *Convolution) launch(a, b, to, workspace driver.Span) error {
	call := fmt.Sprintf("cudnnConvolution%v", v.kindOf())
	want := v.Operands()
	if v.own != nil {
		workspace = v.own.All()
	}
	var at [4]C.CUdeviceptr
	for i, s := range [4]driver.Span{a, b, to, workspace} {
		if i < 3 && s.Bytes() != want[i] || i == 3 && s.Bytes() < v.workspace {
			return fmt.Errorf("cuda: %s of %v: spans of %d, %d, %d and %d bytes, want %d, %d, %d and at least %d",
				call, v.shape, a.Bytes(), b.Bytes(), to.Bytes(), workspace.Bytes(), want[0], want[1], want[2],
				v.workspace)
		}
		p, err := s.Address(v.d.c)
		if err != nil {
			return err
		}
		if p%Align != 0 {
			return fmt.Errorf("cuda: %s of %v: a span does not start at a multiple of %d bytes", call, v.shape, Align)
		}
		at[i] = C.CUdeviceptr(p)
	}
	for {
		err := v.d.s.Give(v.work, func() error {
			return v.d.run(call, func() C.cudnnStatus_t {
				return C.conv_run(v.d.h, &v.v, at[0], at[1], at[3], C.size_t(workspace.Bytes()), at[2])
			}, v.shape)
		})
		if err == nil || ends(err) || len(v.others) == 0 || len(v.unsettled) > 0 || v.d.c.Capturing() {
			return err
		}
		next := v.others[0]
		v.others = v.others[1:]
		if err := v.use(next); err != nil {
			return err
		}
	}
}

// destroy destroys the descriptors, which lie in host memory.
func (v *Convolution) destroy() error {
	var first error
	note := func(call string, code C.cudnnStatus_t) {
		if first == nil {
			first = failure(call, code, v.shape.String())
		}
	}
	for _, t := range []C.cudnnTensorDescriptor_t{v.v.x, v.v.y} {
		if t != nil {
			note("cudnnDestroyTensorDescriptor", C.cudnnDestroyTensorDescriptor(t))
		}
	}
	if v.v.w != nil {
		note("cudnnDestroyFilterDescriptor", C.cudnnDestroyFilterDescriptor(v.v.w))
	}
	if v.v.conv != nil {
		note("cudnnDestroyConvolutionDescriptor", C.cudnnDestroyConvolutionDescriptor(v.v.conv))
	}
	return first
}
