package resize

import (
	"math"
	"testing"
)

// TestWeights has what PyTorch's interpolate makes of the columns of identity matrices.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		by   Line
		want [][]float64
	}{
		{Line{}, [][]float64{{1, 0}, {.75, .25}, {.25, .75}, {0, 1}}},
		{Line{Corners: true}, [][]float64{{1, 0, 0}, {.5, .5, 0}, {0, 1, 0}, {0, .5, .5}, {0, 0, 1}}},
		{Line{Cubic: true}, [][]float64{{1.071777, -.071777, 0}, {.360352, .749512, -.109863},
			{-.109863, .749512, .360352}, {0, -.071777, 1.071777}}},
		{Line{Cubic: true, Antialias: true}, [][]float64{{.458678, .458678, .119835, -.03719},
			{-.03719, .119835, .458678, .458678}}},
		{Line{Antialias: true}, [][]float64{{.318182, .409091, .227273, .045455, 0}, {0, .045455, .227273, .409091, .318182}}},
	} {
		got := c.by.Weights(len(c.want[0]), len(c.want))
		for i, row := range c.want {
			for k, want := range row {
				if math.Abs(got[i][k]-want) > 1e-6 {
					t.Errorf("%+v: weight of point %d for point %d is %g, want %g", c.by, k, i, got[i][k], want)
				}
			}
		}
	}
}
