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

func TestBytes(t *testing.T) {
	x := T(Float32, 2, 6, 9, 8)
	shortcut := Shortcut{Stride: 2, Channels: 10}
	pixels := []Type{T(Uint8, 2, 20, 10, 3), T(Int32, 2, 3)}
	images := Images{DType: Float32, Height: 16, Width: 12, Mean: make([]float64, 3), Std: []float64{1, 1, 1}}
	for _, c := range []struct {
		op   Op
		in   []Type
		want int64
	}{
		{Add{}, []Type{x, x}, 3 * 4 * 864},
		{Linear{}, []Type{T(Float64, 8, 5), T(Float64, 7, 5), T(Float64, 7)}, 8 * (40 + 35 + 7 + 56)},
		{Row{1}, []Type{T(Float32, 2, 5)}, 2 * 4 * 5},
		{shortcut, []Type{x}, 4 * (2*6*5*4 + 2*10*5*4)},
		{ShortcutGrad{shortcut, x.Shape}, []Type{T(Float32, 2, 10, 5, 4)}, 4 * (2*6*5*4 + 864)},
		{images, pixels, 2*16*10*3 + 4*6 + 4*2*3*16*12},
	} {
		got, err := Bytes(c.op, c.in...)
		if err != nil || got != c.want {
			t.Errorf("%v of %v: %d, %v; want %d", c.op, c.in, got, err, c.want)
		}
	}
	if n, err := Bytes(Add{}, x); err == nil {
		t.Errorf("an addition of one operand moves %d bytes", n)
	}
}
