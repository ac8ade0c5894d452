package product

import (
	"testing"

	"onlinerna/nn/op"
)

// A product uses Winograd's algorithm if the user allows it and it is faster.
func TestWinogradChoice(t *testing.T) {
	var d Options
	for _, c := range []struct {
		shape [4]int // n, c, h, o
		want  bool
	}{
		{[4]int{128, 16, 32, 16}, true}, {[4]int{16, 512, 7, 512}, true}, {[4]int{1, 128, 28, 128}, true},
		{[4]int{128, 3, 32, 16}, false}, {[4]int{1, 256, 14, 256}, false}, {[4]int{64, 64, 5, 64}, false},
	} {
		n, ch, h, o := c.shape[0], c.shape[1], c.shape[2], c.shape[3]
		g := window{kernel: [2]int{3, 3}, stride: [2]int{1, 1}, pad: [2]int{1, 1}, dilation: [2]int{1, 1}, groups: 1}.
			forwardGrid(op.Shape{n, ch, h, h}, op.Shape{n, o, h, h})
		for _, d.Winograd = range []bool{false, true} {
			if got := d.prefersWinograd(&g, o, 16); got != (c.want && d.Winograd) {
				t.Errorf("%v: %v where the user says %v", c.shape, got, d.Winograd)
			}
		}
	}
	square := []tap{}
	for i := range 9 {
		square = append(square, tap{i/3 - 1, i%3 - 1, i})
	}
	for _, g := range []grid{
		{rowStep: 2, colStep: 2, taps: square}, {rowStep: 1, colStep: 1, taps: square[:3]},
		{rowStep: 1, colStep: 1, taps: append(append([]tap(nil), square[:8]...), tap{2, 2, 8})},
	} {
		if g.square() {
			t.Errorf("%+v is no square of taps", g)
		}
	}
}
