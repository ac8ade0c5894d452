package zoo

import (
	"math"
	"testing"

	"onlinerna/nn/op/expr"
)

// Sines and cosines of angles up to 100 err little more than rounding of the angle does.
func TestTurn(t *testing.T) {
	var angles []float64
	for x := -100.; x <= 100; x += .47 {
		angles = append(angles, x)
	}
	sine, versine := turn(expr.Arg(0))
	e := expr.NewEvaluator(false, sine, versine)
	versines := e.Run(len(angles), [][]float64{angles}, nil)
	sines := e.Result(0)
	for i, x := range angles {
		sin, cos := math.Sincos(x)
		if off := math.Abs(sines[i]-sin) + math.Abs(1-versines[i]-cos); !(off < 1e-12) {
			t.Errorf("the angle %g has the sine %g and the cosine %g: off by %g", x, sines[i], 1-versines[i], off)
		}
	}
}
