package product

import (
	"testing"

	"onlinerna/nn/device/cpu/internal/kern"
)

// The columns are divided so that workers have about equal shares, in few parts if each copies the source.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		rows, extents, most, workers int
		direct                       bool
		want                         int
	}{
		{rows: 192, extents: 1, most: 6, workers: 2, want: 2},               // 3 panels each, and not 2, 2 and 2
		{rows: 256, extents: 1, most: 8, workers: 2, direct: true, want: 4}, // as even as 2 parts
		{rows: 672, extents: 1, most: 8, workers: 2, want: 2},
		{rows: 80, extents: 1, most: 3, workers: 2, want: 2}, // the last panel is half as wide: 32 beside 48
		{rows: 1152, extents: 1, most: 36, workers: 64, want: 36},
		{rows: 96, extents: 3, most: 3, workers: 2, want: 3}, // 9 blocks, not 3
		{rows: 96, extents: 16, most: 1, workers: 2, want: 1},
		{rows: 64, extents: 1, most: 2, workers: 1, want: 1},
	} {
		set := &kern.Set{Lanes: 16}
		x := &tiled{product: &product{rows: c.rows}, set: set, targets: []tiledTarget{{to: &target{}}}}
		x.targets[0].grid, x.targets[0].direct = &grid{}, c.direct
		x.panels = (c.rows + set.Columns() - 1) / set.Columns()
		if got := x.parts(c.extents, c.most, c.workers); got != c.want {
			t.Errorf("%+v: %d parts", c, got)
		}
		end := 0
		for i := range c.want {
			first, e := x.part(i, c.want)
			if first != end || e <= first {
				t.Errorf("%+v: part %d has the panels from %d to %d, after %d", c, i, first, e, end)
			}
			end = e
		}
		if end != x.panels {
			t.Errorf("%+v: %d panels of %d", c, end, x.panels)
		}
	}
}
