package cpu

import (
	"fmt"
	"math"
	"testing"

	"onlinerna/nn/op"
)

// TestManyWorkers: results of products of few pixels, which are cut into more blocks for more workers than 16, have the bits of
// one worker.
func TestManyWorkers(t *testing.T) {
	for _, c := range []struct{ n, channels, size, others, kernel int }{{5, 40, 7, 600, 1}, {5, 300, 7, 330, 3}, {5, 200, 14, 230, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			var want [][]float32
			for _, workers := range []int{1, 48} {
				b := &builder{tb: t}
				v := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{c.kernel / 2, c.kernel / 2}}
				x, w := b.data(c.n, c.channels, c.size, c.size), b.weight(c.others, c.channels, c.kernel, c.kernel)
				dy := b.data(c.n, c.others, c.size, c.size)
				b.apply(v, x, w)
				b.apply(op.Conv2DGradInput{Conv2D: v, Input: b.Values[x].Type.Shape}, w, dy)
				b.apply(op.Conv2DGradWeight{Conv2D: v, Weight: b.Values[w].Type.Shape}, x, dy)
				k := bind(t, open(t, workers), &b.Program, b.weights, b.alone())
				k.run(t)
				for i, s := range b.Steps {
					got := k.floats(t, s.Out)
					if workers == 1 {
						want = append(want, got)
						continue
					}
					for j := range got {
						if math.Float32bits(got[j]) != math.Float32bits(want[i][j]) {
							t.Fatalf("%v: element %d is %v with %d workers, %v with one", s.Op, j, got[j], workers, want[i][j])
						}
					}
				}
			}
		})
	}
}
