// Package resize resizes lines of points as PyTorch's interpolate does.
package resize

import "math"

// Line is a way to resize a line, linearly by default.
type Line struct {
	Cubic     bool // by cubic polynomials
	Antialias bool // points outside are left out, not the last ones again; PyTorch's cubics differ, too
	Corners   bool // the first and the last points stay there: align_corners
}

// Weights are those of from points, for each of to points.
func (l Line) Weights(from, to int) [][]float64 {
	weights := make([][]float64, to)
	scale, stretch := float64(from)/float64(to), 1.
	if l.Antialias {
		stretch = max(scale, 1)
	}
	for i := range weights {
		at := scale*(float64(i)+.5) - .5
		if l.Corners {
			at = float64(i*(from-1)) / float64(max(to-1, 1))
		}
		row, all := make([]float64, from), 0.
		for k := int(math.Floor(at - 2*stretch)); float64(k) <= at+2*stretch; k++ {
			near := min(max(k, 0), from-1)
			if l.Antialias && near != k {
				continue
			}
			v := l.weight(math.Abs(float64(k)-at) / stretch)
			row[near] += v
			all += v
		}
		for k := range row {
			row[k] /= all
		}
		weights[i] = row
	}
	return weights
}

// weight is that of a point at a distance of x.
func (l Line) weight(x float64) float64 {
	a := -.75
	if l.Antialias {
		a = -.5
	}
	switch {
	case !l.Cubic:
		return max(1-x, 0)
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}
