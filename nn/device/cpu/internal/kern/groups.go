package kern

import "onlinerna/internal/simd"

// GroupArgs are the operands of the kernels of Groups. Steps and offsets are in bytes. The assembly knows the order of
// the fields.
type GroupArgs struct {
	Dst, Src, Weights *float32
	Init              *float32 // of products: Lanes numbers
	Offs              *int     // of each tap, from Src
	Taps              int      // of products
	Depth             int      // of products: channels of a tap, a multiple of GroupDepth
	Runs              *[2]int  // of each run of pixels, from Src, and from Dst or, in sums, from Weights
	Count             int      // of runs: even for products
	Pixels            int      // of a run, for sums
	StepSrc           int      // from a pixel to the next
	StepDst           int      // of products from a pixel to the next, of sums from a channel to the next
	StepWeights       int      // of sums, from a pixel to the next
	StepTap           int      // of sums, from a tap of Dst to the next
	From              *float32 // added to products, with the steps of Dst, or nil; it must not overlap Dst
	ReLU              int      // 1 to write 0 instead of negative products
	Add               int      // 1 to add sums to Dst, 0 to overwrite it
}

// GroupDepth is the number of channels that the kernels of Groups multiply at a time.
const GroupDepth = 4

// Groups are kernels for convolutions in groups of a few channels. They compute one vector of results: those of one
// group or, with Quads, of Lanes/4 groups of four channels. Lane i multiplies channel c of its group: element c of a
// pixel or, with Quads, i/4·4 + c.
type Groups struct {
	Lanes int
	Quads bool
	// Products set each pixel p of each run of Dst to
	//	Init + From[p] + Σ over taps t and channels c of Weights[t, c] · channel c of Src[p + Offs[t]]
	// where Weights is Taps × Depth × Lanes.
	Products []GroupProducts
	// Sums are by the number of taps. They add to Dst[t, c], for GroupDepth channels, or with Add 0 write there,
	//	Σ over pixels p of all runs of Weights[p] · channel c of Src[p + Offs[t]]
	Sums []func(*GroupArgs)
	// SumsAlong are Sums[AlongTaps] for taps side by side in a line, by the columns of the source from one pixel to
	// the next, 1 or 2; none where they would not be faster. They need runs of at least AlongPixels.
	SumsAlong []func(*GroupArgs)
}

// GroupProducts is a kernel for runs of Pixels pixels. It may change GroupArgs.Count. With Along, each AlongTaps
// taps lie side by side in a line, and StepSrc is one pixel.
type GroupProducts struct {
	Pixels int
	Along  bool
	Run    func(*GroupArgs)
}

// AlongTaps is the number of taps of a line for kernels along lines.
const AlongTaps = 3

// AlongPixels is the least number of pixels of a run for SumsAlong.
const AlongPixels = 2

// GroupsFor returns the kernels of a level with the widest vectors for groups of the given channels and rows of
// results, or nil.
func GroupsFor(l simd.Level, groups, channels, rows int) *Groups {
	for _, k := range groupKernels[l.Vectors()] {
		if k.Quads && channels == 4 && rows == 4 && groups*rows%k.Lanes == 0 ||
			!k.Quads && channels%GroupDepth == 0 && rows%k.Lanes == 0 {
			return k
		}
	}
	return nil
}
