//go:build gpu && cgo

package net

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/number"
	"onlinerna/data/random"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// stemOf runs a convolution of four-channel images on a device and the gradient of its weights.
func stemOf(t *testing.T, d device.Device) (y, dw []float64) {
	t.Helper()
	const n, size, c, out = 2, 5, 4, 8
	g := G.NewGraph()
	input := func(name string, typ tensor.Dtype, shape ...int) *G.Node {
		return G.NewTensor(g, typ, len(shape), G.WithName(name), G.WithShape(shape...))
	}
	apply := func(o op.Op, in ...*G.Node) *G.Node {
		x, err := nn.Apply("stem", o, in...)
		check(t, err)
		return x
	}
	pixels, crops := input("pixels", tensor.Uint8, n, size, size, c), input("crops", tensor.Int32, n, 3)
	w, dy := input("w", tensor.Float32, out, c, 3, 3), input("dy", tensor.Float32, n, out, size, size)
	conv := op.Conv2D{Pad: [2]int{1, 1}}
	x := apply(op.Images{DType: op.Float32, Height: size, Width: size, Mean: []float64{.1, .2, .3, .4},
		Std: []float64{.5, .6, .7, .8}}, pixels, crops)
	results := G.Nodes{apply(conv, x, w), apply(op.Conv2DGradWeight{Conv2D: conv, Weight: op.Shape{out, c, 3, 3}}, x,
		dy)}
	m, err := machine.New(g, machine.Config{Device: d, Keep: results})
	check(t, err)
	defer func() { check(t, m.Close()) }()

	r := random.New(3)
	bytes := make([]uint8, n*size*size*c)
	for i := range bytes {
		bytes[i] = uint8(r.Uint64())
	}
	check(t, m.Write(pixels, op.Tensor{Shape: op.Shape{n, size, size, c}, Data: bytes}))
	check(t, m.Write(crops, op.Tensor{Shape: op.Shape{n, 3}, Data: []int32{0, 0, 1, 0, 0, 0}}))
	for _, x := range []*G.Node{w, dy} {
		v := op.New(op.T(op.Float32, x.Shape()...))
		for i := range v.Data.([]float32) {
			v.Data.([]float32)[i] = float32(r.Uint64()%1000)/500 - 1
		}
		check(t, m.Write(x, v))
	}
	check(t, m.Run())
	read := func(x *G.Node) (all []float64) {
		v := op.New(op.T(op.Float32, x.Shape()...))
		check(t, m.Read(v, x))
		for _, e := range v.Data.([]float32) {
			all = append(all, float64(e))
		}
		return all
	}
	return read(results[0]), read(results[1])
}

// Padding the channels of images changes neither their convolution nor the gradient of its weights.
func TestStem(t *testing.T) {
	gputest.NeedDNN(t)
	y, dw := stemOf(t, device.NewReference(op.Float32))
	for p, most := range map[number.Precision]float64{number.Float32: .001, number.BFloat16: .01,
		number.Float16: .001} {
		dev := opened(t, Options{Precision: p})
		gotY, gotW := stemOf(t, dev)
		if a, b := offBy(gotY, y), offBy(gotW, dw); !(a < most) || !(b < most) {
			t.Errorf("%v: the convolution is off by %.2g, the gradient of its weights by %.2g", p, a, b)
		}
		want := 4
		if p.Bytes() == 2 {
			want = stemChannels
		}
		convs := dev.(*Device).convs
		for k := range convs {
			if k.shape.C != want {
				t.Errorf("%v: %v of %v, want %d channels", p, k.kind, k.shape, want)
			}
		}
		if len(convs) != 2 {
			t.Errorf("%v: %d convolutions, want 2", p, len(convs))
		}
	}
}
