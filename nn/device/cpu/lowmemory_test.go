package cpu

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// Layers that are made again to save memory, factors behind them and activations have the bits of the first time.
func TestLowMemoryKeepsBits(t *testing.T) {
	const images, channels, size, classes = 8, 32, 24, 10
	d := open(t, 2)
	results := func(low bool) (all [][]float32) {
		g := G.NewGraph()
		in := func(name string, shape ...int) *G.Node {
			return G.NewTensor(g, tensor.Float32, len(shape), G.WithName(name), G.WithShape(shape...))
		}
		apply := func(name string, o op.Op, in ...*G.Node) *G.Node {
			n, err := nn.Apply(name, o, in...)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		x, w, s := in("x", images, channels, size, size), in("w", channels, channels, 1, 1), in("s", channels)
		deep, last, bias := in("deep", channels, channels, 3, 3), in("last", classes, channels), in("bias", channels)
		labels := G.NewVector(g, tensor.Int32, G.WithName("labels"), G.WithShape(images))
		y := apply("scaled", op.Map{Expr: x0.Mul(x1)}, apply("y", op.Conv2D{}, x, w), s)
		y = apply("z", op.Conv2D{Pad: [2]int{1, 1}}, y, deep)
		y = apply("normed", op.BatchNorm{Eps: 1e-3}, y, apply("stats", op.BatchNormStats{}, y), s, bias)
		y = apply("silu", op.Map{Expr: silu}, y)
		for i := range 2 { // the first is made again, and only then read by one op alone
			y = apply("gelu"+string(rune('a'+i)), op.Map{Expr: gelu}, y)
		}
		for i := range 20 { // so that it pays to make y again
			y = apply("tanh"+string(rune('a'+i)), op.Map{Expr: x0.Tanh()}, y)
		}
		loss := apply("loss", op.SoftmaxCrossEntropy{}, apply("fc", op.Linear{}, apply("pool", op.GlobalAvgPool{}, y), last),
			labels)
		grads, err := nn.Grad(loss, w, s, deep, last, bias)
		if err != nil {
			t.Fatal(err)
		}
		m, err := machine.New(g, machine.Config{Device: d, Keep: append(G.Nodes{loss}, grads...), LowMemory: low})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if again := m.Stats().Again; low != (again > 0) {
			t.Errorf("low memory %t: %d results are made again", low, again)
		}
		for seed, n := range []*G.Node{x, w, s, deep, last, bias} {
			v := make([]float32, n.Shape().TotalSize())
			for i := range v {
				v[i] = float32((i*7919+seed*104729)%1009)/1009 - .5
			}
			if err := m.Write(n, op.Tensor{Shape: op.Shape(n.Shape()), Data: v}); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Write(labels, op.Tensor{Shape: op.Shape{images}, Data: []int32{0, 1, 2, 3, 4, 5, 6, 7}}); err != nil {
			t.Fatal(err)
		}
		if err := m.Run(); err != nil {
			t.Fatal(err)
		}
		for _, n := range grads {
			y := op.New(op.T(op.Float32, n.Shape()...))
			if err := m.Read(y, n); err != nil {
				t.Fatal(err)
			}
			all = append(all, y.Data.([]float32))
		}
		return all
	}
	low := results(true)
	for i, want := range results(false) {
		if !slices.Equal(low[i], want) {
			t.Errorf("gradient %d has other bits in low memory", i)
		}
	}
}
