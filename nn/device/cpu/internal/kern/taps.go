package kern

import (
	"unsafe"

	"onlinerna/internal/simd"
)

// TapArgs are the operands of the kernels of Taps. Steps and offsets are in bytes. The assembly knows the order of the
// fields.
type TapArgs struct {
	Dst, Src, Weights *float32
	Init              *float32 // for products, one number per channel
	Offs              *[2]int  // of each tap, from Src, and from Weights or, in sums, from Dst
	Taps              int      // at least 1
	Pixels, Channels  int
	StepDst, StepSrc  int // from a pixel to the next, of Dst (in sums of Weights) and of Src
	At                int // added to Src
	// Offsets to prefetch: in products Nexts, from Src; in sums two, from Src and from Weights.
	Next  *int
	Nexts int
	save  int // of a kernel
}

// Taps are kernels along rows of pixels whose channels do not mix: those of depthwise convolutions. A multiply-add may
// round once or twice.
type Taps struct {
	// Products sets Dst[p, c] = Init[c] + Σ over taps t of Weights[t, c] · Src[t, p, c] for each pixel p and channel c.
	Products func(*TapArgs)
	// Sums are kernels, by the number of taps, that add Σ over pixels p of Src[t, p, c] · Weights[p, c] to Dst[t, c].
	Sums []func(*TapArgs)
	// Along[step][lines] are Sums for whole lines of at least AlongPixels and for lines·AlongTaps taps; some are nil. The
	// middle tap of pixel p lies on pixel p·step of the source, whose lines have step·Pixels pixels. Taps outside of a line
	// are skipped.
	Along [][]func(*TapArgs)
}

// TapsFor returns the kernels of a level.
func TapsFor(l simd.Level) *Taps {
	if t := tapKernels[l.Vectors()]; t != nil {
		return t
	}
	return &plainTaps
}

// plainTaps are the definition of the others.
var plainTaps = Taps{
	Products: func(a *TapArgs) {
		init, offs := unsafe.Slice(a.Init, a.Channels), unsafe.Slice(a.Offs, a.Taps)
		for p := range a.Pixels {
			dst := unsafe.Slice(at(a.Dst, p*a.StepDst), a.Channels)
			copy(dst, init)
			for _, o := range offs {
				x, w := unsafe.Slice(at(a.Src, a.At+o[0]+p*a.StepSrc), a.Channels), unsafe.Slice(at(a.Weights, o[1]), a.Channels)
				for c, v := range x {
					dst[c] += v * w[c]
				}
			}
		}
	},
	Sums: func() []func(*TapArgs) {
		run := func(a *TapArgs) {
			for _, o := range unsafe.Slice(a.Offs, a.Taps) {
				dst := unsafe.Slice(at(a.Dst, o[1]), a.Channels)
				for p := range a.Pixels {
					x, y := unsafe.Slice(at(a.Src, a.At+o[0]+p*a.StepSrc), a.Channels), unsafe.Slice(at(a.Weights, p*a.StepDst), a.Channels)
					for c, v := range x {
						dst[c] += v * y[c]
					}
				}
			}
		}
		return []func(*TapArgs){nil, run, run, run, run, run, run, run, run, run}
	}(),
}
