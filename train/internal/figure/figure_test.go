package figure

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi, unit float64
		want         string
	}{
		{1, 15, 1, "2 4 6 8 10 12 14"},
		{1, 2, 1, "1 2"},
		{1, 10, 1, "1 2 3 4 5 6 7 8 9 10"},
		{1, 90, 1, "10 20 30 40 50 60 70 80 90"},
		{0.31, 0.62, 0, "0.35 0.40 0.45 0.50 0.55 0.60"},
		{0, 1, 0, "0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0"},
		{0.001, 0.0021, 0, "0.0010 0.0012 0.0014 0.0016 0.0018 0.0020"},
		{50, math.Nextafter(50, 51), 0, "50"},
		{-1e-3, math.Nextafter(-1e-3, 0), 0, "-0.001"},
		{0, 0, 1, "0"},
		{0, 100, 0, "0 10 20 30 40 50 60 70 80 90 100"},
	} {
		var got []string
		for _, k := range Ticks(c.lo, c.hi, c.unit) {
			got = append(got, k.Label)
			if v := fmt.Sprintf("%.4f", k.Value); !strings.HasPrefix(v, k.Label) {
				t.Errorf("label %s at %s", k.Label, v)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%g to %g: %s, want %s", c.lo, c.hi, s, c.want)
		}
	}
}
