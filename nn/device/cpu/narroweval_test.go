package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"onlinerna/nn/op"
)

// Evaluation in bfloat16, a normalisation by constants, an addition and a ReLU behind a convolution, is close at all
// levels, and has equal bits on AMX and by its definition.
func TestNarrowEvaluation(t *testing.T) {
	for _, c := range []struct{ in, out, kernel, stride, groups int }{
		{3, 48, 7, 2, 1}, {16, 33, 1, 1, 1}, {70, 40, 3, 2, 1}, {32, 48, 3, 1, 2}, {600, 64, 1, 1, 1},
	} {
		for _, add := range []bool{false, true} {
			for _, relu := range []bool{false, true} {
				t.Run(fmt.Sprintf("%+v, add %v, relu %v", c, add, relu), func(t *testing.T) {
					const n, h = 3, 12
					b := &builder{tb: t}
					o := op.Conv2D{Stride: [2]int{c.stride, c.stride}, Pad: [2]int{c.kernel / 2, c.kernel / 2}, Groups: c.groups}
					stored := func(shape ...int) int { return b.apply(op.Add{}, b.data(shape...), b.data(shape...)) }
					x := stored(n, c.in, h, h)
					out := (h+2*(c.kernel/2)-c.kernel)/c.stride + 1
					other := stored(n, c.out, out, out)
					y := b.apply(o, x, b.weight(c.out, c.in/c.groups, c.kernel, c.kernel), b.weight(c.out))
					stats := b.weight(2, c.out)
					y = b.apply(op.BatchNorm{Eps: 1e-5, Fixed: true}, y, stats, b.weight(c.out), b.weight(c.out))
					if add {
						y = b.apply(op.Add{}, other, y)
					}
					if relu {
						y = b.apply(op.ReLU{}, y)
					}
					b.Keep = append(b.Keep, y, other)
					results := map[string][]float32{}
					narrowWays(t, func(name string, d *Device) {
						k := bind(t, d, &b.Program, b.weights, b.grouped(d))
						for i, v := range k.floats(t, stats)[c.out:] {
							k.floats(t, stats)[c.out+i] = .5 + v*v
						}
						k.run(t)
						results[name] = k.numbers(t, d, b.Values[y], y)
					})
					want := results["go"]
					largest := 0.
					for _, v := range want {
						largest = max(largest, math.Abs(float64(v)))
					}
					for name, got := range results {
						for i, v := range want {
							if e := math.Abs(float64(got[i] - v)); !(e <= 0x1p-6*largest) {
								t.Fatalf("%s: element %d is %v, want about %v", name, i, got[i], v)
							}
						}
					}
					for _, name := range []string{"amx", "tiles by vectors"} {
						if got := results[name]; got != nil && !slices.Equal(got, results["tiles by definition"]) {
							t.Errorf("%s has other bits than tiles by definition", name)
						}
					}
				})
			}
		}
	}
}
