package product

import (
	"testing"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/op"
)

// Products run in parts where the rates say so: with enough channels and pixels, and more of them with three terms.
func TestPartsChoice(t *testing.T) {
	for _, c := range []struct {
		n, channels, size, rows, kernel, stride int
		forward, weight, three                  bool // by six terms the output and the gradient of weights; by three the output
	}{
		{16, 64, 56, 64, 3, 1, true, false, true}, {16, 128, 28, 128, 3, 1, true, true, true},
		{16, 256, 14, 256, 3, 1, true, true, true}, {16, 512, 7, 512, 3, 1, true, true, true},
		{16, 64, 56, 256, 1, 1, false, false, false}, {16, 256, 56, 64, 1, 1, true, false, true},
		{16, 512, 28, 128, 1, 1, true, true, true}, {16, 256, 14, 1024, 1, 1, true, true, true},
		{16, 128, 56, 128, 3, 2, true, true, true}, {128, 16, 32, 16, 3, 1, false, false, false},
		{1, 512, 7, 512, 3, 1, false, true, false}, {1, 2048, 1, 1000, 1, 1, false, false, false},
	} {
		pad := c.kernel / 2
		out := (c.size+2*pad-c.kernel)/c.stride + 1
		w := window{kernel: [2]int{c.kernel, c.kernel}, stride: [2]int{c.stride, c.stride}, pad: [2]int{pad, pad},
			dilation: [2]int{1, 1}, groups: 1}
		g := w.forwardGrid(op.Shape{c.n, c.channels, c.size, c.size}, op.Shape{c.n, c.rows, out, out})
		p := &product{grids: []target{{grid: g, stepH: 1, stepW: 1}}, groups: 1, rows: c.rows, weightRow: 1,
			dstH: out, dstW: out, dstC: c.rows}
		o := &outer{grid: g, groups: 1, rows: c.rows, columns: c.rows}
		d := Options{Winograd: true, Tiles: kern.PlainTiles().InParts(3)}
		if got := d.tileable(p); got != c.forward {
			t.Errorf("%+v: output by six terms: %v", c, got)
		}
		if got, _ := d.inTiles(o); (got != nil) != c.weight {
			t.Errorf("%+v: gradient of weights by six terms: %v", c, got != nil)
		}
		d.Tiles = kern.PlainTiles().InParts(2)
		if got := d.tileable(p); got != c.three {
			t.Errorf("%+v: output by three terms: %v", c, got)
		}
	}
}
