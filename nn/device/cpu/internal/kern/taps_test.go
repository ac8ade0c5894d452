package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
)

// TestTaps compares the kernels of all levels with their definition, on operands between guard bands.
func TestTaps(t *testing.T) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) {
			for _, channels := range []int{1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 48, 67, 96} {
				for _, stride := range []int{1, 2} {
					for _, pixels := range []int{1, 2, 3, 4, 7, 11, 15} {
						for _, taps := range []int{1, 2, 9} {
							c := tapCheck{TapsFor(l), channels, pixels, taps, stride}
							if err := c.products(t); err != nil {
								t.Fatalf("products %+v: %v", c, err)
							}
						}
					}
					for _, pixels := range []int{1, 2, 5} {
						for taps := 1; taps < len(TapsFor(l).Sums); taps++ {
							c := tapCheck{TapsFor(l), channels, pixels, taps, stride}
							if err := c.sums(t); err != nil {
								t.Fatalf("sums %+v: %v", c, err)
							}
						}
					}
				}
			}
		})
	}
}

// TestTapsAlong compares the kernels along lines with their definition, on operands between guard bands.
func TestTapsAlong(t *testing.T) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) {
			for step, kernels := range TapsFor(l).Along {
				for lines, kernel := range kernels {
					for _, channels := range []int{1, 7, 8, 16, 23, 33} {
						for _, pixels := range []int{2, 3, 4, 9} {
							if kernel != nil {
								if err := tapsAlong(t, kernel, step, lines, channels, pixels); err != nil {
									t.Fatalf("step %d, %d lines, %d channels, %d pixels: %v", step, lines, channels, pixels, err)
								}
							}
						}
					}
				}
			}
		})
	}
}

func tapsAlong(tb testing.TB, kernel func(*TapArgs), step, lines, channels, pixels int) error {
	r := rand.New(rand.NewPCG(5, 6))
	width := step * pixels
	src, dy := ending(tb)(r, lines*width*channels), ending(tb)(r, pixels*channels)
	dst := ending(tb)(r, lines*AlongTaps*channels)
	want := append([]float32(nil), dst...)
	var offs [][2]int
	for line := range lines {
		for tap := range AlongTaps {
			to := (AlongTaps-1-tap)*lines + line
			offs = append(offs, [2]int{4 * (line*width + tap - 1) * channels, 4 * to * channels})
			for c := range channels {
				sum := float64(want[to*channels+c])
				for p := range pixels {
					if at := p*step + tap - 1; at >= 0 && at < width {
						sum += float64(src[(line*width+at)*channels+c]) * float64(dy[p*channels+c])
					}
				}
				want[to*channels+c] = float32(sum)
			}
		}
	}
	kernel(&TapArgs{Dst: &dst[0], Src: &src[0], Weights: &dy[0], Offs: &offs[0], At: shift(offs), Pixels: pixels,
		Channels: channels, StepDst: 4 * channels, StepSrc: 4 * step * channels, Next: &[]int{8, 12}[0]})
	return alike(dst, want)
}

type tapCheck struct {
	kernels                        *Taps
	channels, pixels, taps, stride int
}

// operands returns a source in which each tap begins one pixel behind the one before, and the other operand's rows.
func (c tapCheck) operands(r *rand.Rand, tb testing.TB) (src, rows []float32, offs [][2]int) {
	src = ending(tb)(r, ((c.pixels-1)*c.stride+c.taps)*c.channels)
	rows = ending(tb)(r, c.taps*c.channels)
	for t := range c.taps {
		offs = append(offs, [2]int{4 * t * c.channels, 4 * (c.taps - 1 - t) * c.channels})
	}
	return src, rows, offs
}

func (c tapCheck) products(tb testing.TB) error {
	r := rand.New(rand.NewPCG(1, 2))
	src, weights, offs := c.operands(r, tb)
	init := ending(tb)(r, c.channels)
	gap := 3 // elements between pixels of dst
	n := c.pixels*(c.channels+gap) - gap
	dst := ending(tb)(r, n)
	want := append([]float32(nil), dst...)
	next := []int{4, 4 * c.stride * c.channels}
	a := &TapArgs{Src: &src[0], Weights: &weights[0], Init: &init[0], Offs: &offs[0], Taps: c.taps, Pixels: c.pixels,
		At: shift(offs), Next: &next[0], Nexts: c.taps % 3, Channels: c.channels, StepDst: 4 * (c.channels + gap), StepSrc: 4 * c.stride * c.channels}
	a.Dst = &dst[0]
	c.kernels.Products(a)
	a.Dst = &want[0]
	plainTaps.Products(a)
	return alike(dst, want)
}

func (c tapCheck) sums(tb testing.TB) error {
	r := rand.New(rand.NewPCG(3, 4))
	src, dst, offs := c.operands(r, tb)
	dy := ending(tb)(r, c.pixels*c.channels)
	want := append([]float32(nil), dst...)
	a := &TapArgs{Src: &src[0], Weights: &dy[0], Offs: &offs[0], Taps: c.taps, Pixels: c.pixels,
		At: shift(offs), Next: &[]int{8, 12}[0], Channels: c.channels, StepDst: 4 * c.channels, StepSrc: 4 * c.stride * c.channels}
	a.Dst = &dst[0]
	c.kernels.Sums[c.taps](a)
	a.Dst = &want[0]
	plainTaps.Sums[c.taps](a)
	return alike(dst, want)
}

// shift moves a part of the offsets from the source to At.
func shift(offs [][2]int) int {
	for i := range offs {
		offs[i][0] -= 64
	}
	return 64
}

// alike reports where numbers differ by more than a rounding; NaN is like NaN.
func alike(got, want []float32) error {
	for i, w := range want {
		if d := math.Abs(float64(got[i] - w)); !(d <= 1e-5) && (w == w || got[i] == got[i]) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], w)
		}
	}
	return nil
}
