package product

import (
	"slices"
	"testing"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/op"
)

// The phases of a gradient whose pixels lie alike are computed from the same tiles.
func TestFamilies(t *testing.T) {
	for _, c := range []struct {
		height, width, stride, kernel int
		want                          []int // targets of each family
	}{
		{8, 8, 2, 3, []int{4}}, {9, 8, 2, 3, []int{2, 2}}, {9, 7, 2, 3, []int{1, 1, 1, 1}}, {8, 8, 1, 3, []int{1}},
		{8, 8, 2, 1, []int{1, 3}}, // the pixels without taps apart
	} {
		o := op.Conv2D{Stride: [2]int{c.stride, c.stride}, Pad: [2]int{c.kernel / 2, c.kernel / 2}}
		x, weight := op.Shape{2, 80, c.height, c.width}, op.Shape{70, 80, c.kernel, c.kernel}
		y, err := o.Infer(op.T(op.Float32, x...), op.T(op.Float32, weight...))
		if err != nil {
			t.Fatal(err)
		}
		p := &product{groups: 1, rows: 80, dstH: c.height, dstW: c.width, dstC: 80}
		p.grids = convWindow(o, weight).backwardGrids(x, y.Shape)
		for _, stored := range []bool{false, true} {
			tiled := newTiled(p, kern.PlainNarrow(1), 1, stored)
			var got []int
			for _, f := range tiled.families {
				got = append(got, len(f.targets))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v: families of %v targets", c, got)
			}
		}
	}
}
