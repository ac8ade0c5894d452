package nn

import (
	"math"
	"testing"

	"onlinerna/nn/op"
)

// Two means of two in each direction are FFCV's filter: 1 2 1 by 1 2 1, over 16, with zeros around.
func TestBlurIsItsFilter(t *testing.T) {
	x := op.New(op.T(op.Float64, 1, 1, 5, 4))
	v := x.Data.([]float64)
	for i := range v {
		v[i] = math.Sin(float64(i * i))
	}
	first, got := op.New(op.T(op.Float64, 1, 1, 6, 5)), op.New(op.T(op.Float64, 1, 1, 5, 4))
	if err := (op.AvgPool{Kernel: square(2), Stride: square(1), Pad: square(1)}).Run(first, x); err != nil {
		t.Fatal(err)
	}
	if err := (op.AvgPool{Kernel: square(2), Stride: square(1)}).Run(got, first); err != nil {
		t.Fatal(err)
	}
	taps := [3]float64{1, 2, 1}
	for y := range 5 {
		for c := range 4 {
			want := 0.
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					if y+dy >= 0 && y+dy < 5 && c+dx >= 0 && c+dx < 4 {
						want += taps[dy+1] * taps[dx+1] / 16 * v[(y+dy)*4+c+dx]
					}
				}
			}
			if g := got.Data.([]float64)[y*4+c]; math.Abs(g-want) > 1e-15 {
				t.Errorf("(%d, %d) is %g, want %g", y, c, g, want)
			}
		}
	}
	for blur, want := range map[bool]int{false: 0, true: 12} { // two for each of the six convolutions of stride 2
		m, err := Build("resnet18", Config{Batch: 1, Mode: Eval, Size: 64, BlurPool: blur})
		if err != nil {
			t.Fatal(err)
		}
		pools := 0
		for _, n := range m.Graph.AllNodes() {
			if o, ok := n.Op().(*Op); ok && o.Op().Kind() == "avg_pool" {
				pools++
			}
		}
		if pools != want {
			t.Errorf("blurpool %v: %d means, want %d", blur, pools, want)
		}
	}
}
