package op

import "testing"

func TestFLOPs(t *testing.T) {
	x, w, y := T(Float32, 2, 6, 9, 9), T(Float32, 4, 3, 3, 5), T(Float32, 2, 4, 4, 3)
	conv := Conv2D{Stride: [2]int{2, 2}, Groups: 2}
	const convolution = 2 * 2 * 4 * 4 * 3 * 3 * 3 * 5
	features, matrix, product := T(Float64, 8, 5), T(Float64, 7, 5), T(Float64, 8, 7)
	const linear = 2 * 8 * 7 * 5
	for _, c := range []struct {
		op   Op
		in   []Type
		want int64
	}{
		{conv, []Type{x, w}, convolution},
		{conv, []Type{x, w, T(Float32, 4)}, convolution},
		{Conv2DGradInput{conv, x.Shape}, []Type{w, y}, convolution},
		{Conv2DGradWeight{conv, w.Shape}, []Type{x, y}, convolution},
		{Linear{}, []Type{features, matrix}, linear},
		{LinearGradInput{}, []Type{matrix, product}, linear},
		{LinearGradWeight{}, []Type{features, product}, linear},
		{ReLU{}, []Type{x}, 0},
		{BatchNormStats{}, []Type{x}, 0},
	} {
		got, err := FLOPs(c.op, c.in...)
		if err != nil || got != c.want {
			t.Errorf("%v of %v: %d, %v; want %d", c.op, c.in, got, err, c.want)
		}
	}
	if n, err := FLOPs(conv, x, T(Float32, 4, 6, 3, 5)); err == nil {
		t.Errorf("a weight of too many channels: %d and no error", n)
	}
}
