package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/internal/simd"
)

// TestGroups compares the kernels of all levels with their definition, on operands between guard bands.
func TestGroups(t *testing.T) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) {
			for _, k := range groupKernels[l.Vectors()] {
				depths := []int{4, 8, 12, 16}
				if k.Quads {
					depths = depths[:1]
				}
				for _, depth := range depths {
					for _, stride := range []int{1, 2} {
						checkGroupProducts(t, groupCheck{kernels: k, depth: depth, stride: stride})
						checkGroupSums(t, groupCheck{kernels: k, depth: depth, stride: stride})
					}
				}
			}
		})
	}
}

func checkGroupProducts(t *testing.T, c groupCheck) {
	for _, kernel := range c.kernels.Products {
		c.size = kernel.Pixels
		for _, c.count = range []int{2, 6} {
			for _, c.taps = range []int{1, 2, 3, 9} {
				if kernel.Along && (c.taps%AlongTaps > 0 || c.stride > 1) {
					continue
				}
				for ending := range 4 {
					if err := c.products(t, kernel.Run, ending%2, ending/2 == 1); err != nil {
						t.Fatalf("products %+v, along %t, ending %d: %v", c, kernel.Along, ending, err)
					}
				}
			}
		}
	}
}

func checkGroupSums(t *testing.T, c groupCheck) {
	for c.taps = 1; c.taps < len(c.kernels.Sums); c.taps++ {
		for _, c.size = range []int{1, 2, 3, 13} {
			for _, c.count = range []int{1, 3} {
				for add := range 2 {
					if err := c.sums(t, c.kernels.Sums[c.taps], add); err != nil {
						t.Fatalf("sums %+v, add %d: %v", c, add, err)
					}
					if c.taps == AlongTaps && c.size >= AlongPixels && len(c.kernels.SumsAlong) > 0 {
						if err := c.sums(t, c.kernels.SumsAlong[c.stride], add); err != nil {
							t.Fatalf("sums along a line %+v, add %d: %v", c, add, err)
						}
					}
				}
			}
		}
	}
}

type groupCheck struct {
	kernels                          *Groups
	depth, stride, size, count, taps int
}

// read is channel c for lane i of the pixel at element at.
func (c groupCheck) read(src []float32, at, channel, lane int) float64 {
	if c.kernels.Quads {
		at += lane / 4 * 4
	}
	return float64(src[at+channel])
}

// source returns the source, whose pixels are wide elements, and the offsets of the taps in elements: each begins a
// pixel behind the one before. Runs of pixels lie behind each other, with a pixel between them.
func (c groupCheck) source(r *rand.Rand, tb testing.TB) (src []float32, wide int, taps []int) {
	wide = c.depth
	if c.kernels.Quads {
		wide = c.kernels.Lanes
	}
	for t := range c.taps {
		taps = append(taps, t*wide)
	}
	return ending(tb)(r, (c.run(c.count-1)+(c.size-1)*c.stride+c.taps)*wide), wide, taps
}

// run is the first pixel of a run in the source.
func (c groupCheck) run(i int) int { return i * (c.size*c.stride + 1) }

func inBytes(elements []int) (list []int) {
	for _, n := range elements {
		list = append(list, 4*n)
	}
	return list
}

func (c groupCheck) products(tb testing.TB, kernel func(*GroupArgs), relu int, add bool) error {
	r := rand.New(rand.NewPCG(1, 2))
	lanes := c.kernels.Lanes
	src, wide, taps := c.source(r, tb)
	weights, init := ending(tb)(r, c.taps*c.depth*lanes), ending(tb)(r, lanes)
	if relu == 1 && !add {
		init[lanes-1] = math.Float32frombits(0xffc00000) // the NaN that x86 makes: ReLU keeps it
	}
	step := lanes + 3
	dst := ending(tb)(r, (c.count*c.size-1)*step+lanes)
	want, other := slices.Clone(dst), ending(tb)(r, len(dst))
	var from *float32
	if add {
		from = &other[0]
	}
	var runs [][2]int
	for i := range c.count {
		to := c.count - 1 - i // the runs of Dst are in another order
		runs = append(runs, [2]int{4 * c.run(i) * wide, 4 * to * c.size * step})
		for p := range c.size {
			for lane := range lanes {
				sum := float64(init[lane])
				for t, off := range taps {
					for channel := range c.depth {
						sum += float64(weights[(t*c.depth+channel)*lanes+lane]) *
							c.read(src, (c.run(i)+p*c.stride)*wide+off, channel, lane)
					}
				}
				if add {
					sum += float64(other[(to*c.size+p)*step+lane])
				}
				if relu == 1 {
					sum = max(sum, 0)
				}
				want[(to*c.size+p)*step+lane] = float32(sum)
			}
		}
	}
	offs := inBytes(taps)
	kernel(&GroupArgs{Dst: &dst[0], Src: &src[0], Weights: &weights[0], Init: &init[0], Offs: &offs[0],
		Taps: c.taps, Depth: c.depth, Runs: &runs[0], Count: c.count, StepSrc: 4 * c.stride * wide, StepDst: 4 * step,
		From: from, ReLU: relu})
	return alike(dst, want)
}

func (c groupCheck) sums(tb testing.TB, kernel func(*GroupArgs), add int) error {
	r := rand.New(rand.NewPCG(3, 4))
	lanes := c.kernels.Lanes
	src, wide, taps := c.source(r, tb)
	stepY, step := lanes+2, lanes+3
	stepTap := (c.depth + 1) * step
	dy := ending(tb)(r, (c.count*c.size-1)*stepY+lanes)
	dst := ending(tb)(r, (c.taps-1)*stepTap+(GroupDepth-1)*step+lanes)
	want := slices.Clone(dst)
	first := c.depth - GroupDepth // of the channels
	var runs [][2]int
	for i := range c.count {
		runs = append(runs, [2]int{4 * (c.run(i)*wide + first), 4 * i * c.size * stepY})
	}
	for t, off := range taps {
		for channel := range GroupDepth {
			for lane := range lanes {
				to := &want[t*stepTap+channel*step+lane]
				sum := float64(*to) * float64(add)
				for i := range c.count {
					for p := range c.size {
						sum += float64(dy[(i*c.size+p)*stepY+lane]) *
							c.read(src, (c.run(i)+p*c.stride)*wide+off, first+channel, lane)
					}
				}
				*to = float32(sum)
			}
		}
	}
	offs := inBytes(taps)
	kernel(&GroupArgs{Dst: &dst[0], Src: &src[0], Weights: &dy[0], Offs: &offs[0], Runs: &runs[0], Count: c.count,
		Pixels: c.size, StepSrc: 4 * c.stride * wide, StepDst: 4 * step, StepWeights: 4 * stepY,
		StepTap: 4 * stepTap, Add: add})
	return alike(dst, want)
}
