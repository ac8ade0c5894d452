package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"onlinerna/nn/op"
)

// storedGroup is a program with one group around a product.
type storedGroup struct {
	*builder
	outside bool // activations are float32 inputs, not bfloat16 results of another step
	made    []int
}

func (b *storedGroup) data(c int) int {
	x := b.builder.data(2, c, 8, 9)
	if b.outside {
		return x
	}
	return b.apply(op.MaxPool{Kernel: [2]int{1, 1}}, x)
}

// storedGroups are programs for convolutions with in input channels and out result channels, by kind of group.
var storedGroups = map[string]func(b *storedGroup, conv op.Conv2D, in, out, kernel int){
	"conv2d batch_norm_stats": func(b *storedGroup, conv op.Conv2D, in, out, kernel int) {
		y := b.apply(conv, b.data(in), b.weight(out, in, kernel, kernel))
		b.made = []int{y, b.apply(op.BatchNormStats{}, y)}
	},
	"conv2d_grad_input add relu_grad batch_norm_grad_sums": func(b *storedGroup, conv op.Conv2D, in, out, kernel int) {
		x, y := b.data(in), b.data(in)
		g := b.apply(op.Conv2DGradInput{Conv2D: conv, Input: b.Values[x].Type.Shape}, b.weight(out, in, kernel, kernel),
			b.data(out))
		g = b.apply(op.ReLUGrad{}, y, b.apply(op.Add{}, b.data(in), g))
		b.made = []int{g, b.apply(op.BatchNormGradSums{Eps: 2}, x, b.weight(2, in), g)}
	},
	"conv2d batch_norm add relu": func(b *storedGroup, conv op.Conv2D, in, out, kernel int) {
		y := b.apply(conv, b.data(in), b.weight(out, in, kernel, kernel))
		y = b.apply(op.BatchNorm{Eps: 2, Fixed: true}, y, b.weight(2, out), b.weight(out), b.weight(out))
		b.made = []int{b.apply(op.ReLU{}, b.apply(op.Add{}, b.data(out), y))}
	},
}

// Groups around a product whose results are stored as bfloat16 have the bits of the definition at all levels. They
// differ from single steps only by the rounding of the values between those steps.
func TestStoredGroups(t *testing.T) {
	for kinds, build := range storedGroups {
		for _, c := range [][2]int{{16, 16}, {5, 33}, {130, 70}, {3, 5}, {600, 40}, {40, 600}} {
			for _, kernel := range []int{1, 3} {
				if size := kernel * max(c[0], c[1]); size > 1000 || testing.Short() && size > 100 {
					continue // slow
				}
				for _, outside := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%v, %d×%[3]d, outside: %v", kinds, c, kernel, outside), func(t *testing.T) {
						b := &storedGroup{builder: &builder{tb: t}, outside: outside}
						build(b, op.Conv2D{Pad: [2]int{kernel / 2, kernel / 2}}, c[0], c[1], kernel)
						b.Keep = b.made
						ways := map[string][][]float32{}
						narrowWays(t, func(name string, d *Device) {
							groups := b.grouped(d)
							if got := groupedKinds(b.builder, groups); name != "go" && !slices.Contains(got, kinds) {
								t.Fatalf("%s: groups %q", name, got)
							}
							alone := b.numbers(d, b.alone())
							ways[name] = b.numbers(d, groups)
							for i, want := range alone {
								if e := distance(ways[name][i], want); !(e < .02) {
									t.Errorf("%s: result %d differs by %.3g of the largest element", name, i, e)
								}
							}
						})
						for name, got := range ways {
							want := ways["definition"]
							switch name {
							case "go":
								continue
							case "amx", "tiles by vectors", "tiles by definition":
								want = ways["tiles by definition"]
							}
							if !slices.EqualFunc(got, want, slices.Equal) {
								t.Errorf("%s has other bits than the definition", name)
							}
						}
					})
				}
			}
		}
	}
}

// numbers is the result of the program, run in groups.
func (b *storedGroup) numbers(d *Device, groups [][]int) (list [][]float32) {
	k := bind(b.tb, d, &b.Program, b.weights, groups)
	k.run(b.tb)
	for _, v := range b.made {
		list = append(list, k.numbers(b.tb, d, b.Values[v], v))
	}
	return list
}

// distance is the largest difference of two lists, relative to the largest element.
func distance(x, y []float32) float64 {
	largest, most := 0., 0.
	for i, v := range y {
		largest, most = max(largest, math.Abs(float64(v))), max(most, math.Abs(float64(x[i]-v)))
	}
	return most / largest
}
