package product

import (
	"testing"

	"onlinerna/internal/simd"
)

// Groups of a few channels run as larger ones, of the fewest groups that fill a vector, or half of a vector of 16;
// others stay as they are.
func TestMergedGroups(t *testing.T) {
	for _, c := range []struct{ groups, channels, rows, want, wide int }{ // wide: with vectors of 16
		{32, 4, 4, 2, 4}, {6, 4, 4, 2, 2}, {16, 2, 4, 4, 4}, {8, 1, 3, 8, 8}, {9, 3, 3, 3, 3}, {6, 6, 12, 2, 2},
		{1, 4, 4, 0, 0}, {8, 8, 8, 0, 2}, {9, 8, 8, 0, 0}, {8, 8, 12, 0, 0}, {7, 4, 4, 7, 7}, {11, 4, 4, 0, 0},
		{3, 2, 2, 3, 3}, {32, 1, 1, 0, 0},
	} {
		for _, l := range simd.All() {
			got := 0
			if m := (Options{Level: l}).mergedGroups(c.groups, c.channels, c.rows); m != nil {
				got = m.count
			}
			want := c.want
			if set := (Options{Level: l}).set(); set == nil {
				want = 0
			} else if set.Lanes == 16 {
				want = c.wide
			}
			if got != want {
				t.Errorf("%v: %d groups of %d channels and %d rows are merged by %d, want %d", l, c.groups, c.channels, c.rows, got, want)
			}
			if (Options{Level: l, BFloat16: true}).mergedGroups(c.groups, c.channels, c.rows) != nil {
				t.Errorf("%v: groups are merged in bfloat16", l)
			}
		}
	}
}
