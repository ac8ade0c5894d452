//go:build gpu && cgo

package dnn

import (
	"fmt"

	"onlinerna/cuda/number"
)

// Kind is the quantity that a convolution computes.
type Kind int

// The kinds of convolutions, with their operands and result.
const (
	Forward    Kind = iota // x, w to y
	GradInput              // w, dy to dx
	GradWeight             // x, dy to dw
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

// Dims are the extents of x, w and y.
func (s Shape) Dims() (x, w, y Dims) {
	out := s.out()
	return Dims{s.N, s.C, s.H, s.W}, Dims{s.O, s.C / s.Groups, s.KH, s.KW}, Dims{s.N, s.O, out[0], out[1]}
}

// Graph is the graph of one convolution of tensors in a precision, which lie in the order of the kind.
func (s Shape) Graph(kind Kind, p number.Precision) *Graph {
	g := &Graph{Name: [...]string{Forward: "forward", GradInput: "input gradient", GradWeight: "weight gradient"}[kind]}
	xd, wd, yd := s.Dims()
	e := ElementOf(p)
	var x, w, y Tensor
	switch kind {
	case Forward:
		x, w, y = g.Tensor(e, xd), g.Tensor(e, wd), g.Tensor(e, yd)
	case GradInput:
		w, y, x = g.Tensor(e, wd), g.Tensor(e, yd), g.Tensor(e, xd)
	case GradWeight:
		x, y, w = g.Tensor(e, xd), g.Tensor(e, yd), g.Tensor(e, wd)
	}
	g.Convolve(kind, s, x, w, y)
	return g
}

// Options are a graph's precision and the rules for choosing its plan.
type Options struct {
	Precision     number.Precision // of the tensors; sums are float32
	Deterministic bool             // only engines that give equal bits in each run
	Workspace     int64            // limit for scratch in bytes, if there is a choice
	// Later leaves all plans of a graph to [Plans.Settle], because making them may compile kernels.
	Later bool
	// Ahead lists folders with plans made by [MakeAhead].
	Ahead []string
	// Tried, unless nil, gets the result of each plan that was tried on the card.
	Tried func(Tried)
	// Measure makes [Plans.Settle] time the plans if there are several and take the fastest, which is kept in
	// [driver.Options].KernelCache for later runs with the same card and cuDNN. Without it, and with Deterministic, the
	// first one of cuDNN's heuristics is taken. The fastest may differ between measurements and give other bits.
	Measure bool
}

// measures reports whether plans are timed.
func (o Options) measures() bool { return o.Measure && !o.Deterministic }

// Align is the alignment in bytes of tensors for cuDNN's fast kernels.
const Align = 16
