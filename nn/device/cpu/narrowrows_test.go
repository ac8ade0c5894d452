package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/internal/simd"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// tiledDevice opens a device that multiplies bfloat16 in tiles: by AMX or AVX-512, or else as the definition does.
func tiledDevice(t *testing.T, threads int) *Device {
	t.Helper()
	l := simd.Best()
	if simd.LacksAMX() == nil {
		l = simd.AMX
	}
	d, err := New(Options{Threads: threads, Level: l.String(), BFloat16: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	switch {
	case d.tiles != nil:
	case l == simd.AVX512:
		ByVectorTiles(d)
	default:
		ByTiles(d)
	}
	return d
}

// Rows are stored as bfloat16 where products, attention and elementwise ops read them; sums along a net, results that
// are kept or that other ops read, and weights stay float32.
func TestRowsThatAreNarrow(t *testing.T) {
	const rows, width = 20, 32
	b := &builder{tb: t}
	w, wide, scale := b.weight(width, width), b.weight(3*width, width), b.weight(width)
	named := map[int]bool{}
	expect := func(narrow bool, v int) int {
		named[v] = narrow
		return v
	}
	image := b.data(2, width, 5, 2)
	row := func(narrow bool, image int) int {
		x := expect(narrow, b.apply(op.Tokens{}, image))
		return expect(narrow, b.apply(op.Reshape{Shape: op.Shape{rows, width}}, x))
	}
	x, tokens := row(false, image), row(true, b.apply(op.ReLU{}, image)) // the first is as exact as the image
	normed := expect(true, b.apply(op.LayerNorm{Eps: 1e-6}, tokens, scale, scale))
	qkv := expect(true, b.apply(op.Linear{}, normed, wide))
	attended := expect(true, b.apply(op.SelfAttention{Tokens: 10, Heads: 2, Scale: 1}, qkv))
	sum := expect(false, b.apply(op.Add{}, expect(false, b.apply(op.Linear{}, attended, w)), x))
	normed = expect(false, b.apply(op.LayerNorm{Eps: 1e-6}, sum, scale, scale)) // read by an expression too
	hidden := expect(true, b.apply(op.Linear{}, normed, w))
	active := expect(true, b.apply(op.Map{Expr: gelu}, hidden))
	expect(false, b.apply(op.Softmax{}, expect(false, b.apply(op.Map{Expr: gelu}, normed))))
	shaped := expect(true, b.apply(op.Reshape{Shape: op.Shape{2, 10, width}}, active))
	flat := expect(true, b.apply(op.Reshape{Shape: op.Shape{rows, width}}, shaped))
	standard := expect(false, b.apply(op.Map{Expr: x0.Tanh()}, w)) // a weight
	y := expect(false, b.apply(op.Linear{}, flat, standard))
	b.Keep = []int{y}
	kept := expect(false, b.apply(op.Linear{}, flat, w))
	expect(false, b.apply(op.Map{Expr: gelu}, kept)) // nothing reads it
	b.Keep = append(b.Keep, kept)
	viewed := expect(false, b.apply(op.Linear{}, flat, w))
	view := expect(false, b.apply(op.Reshape{Shape: op.Shape{2, 10, width}}, viewed))
	b.Keep = append(b.Keep, view)
	b.apply(op.Linear{}, expect(false, b.apply(op.Reshape{Shape: op.Shape{rows, width}}, view)), w)
	bias := expect(false, b.apply(op.Map{Expr: x0.Mul(x1)}, b.data(2, 10, 10), b.data(2, 10, 10)))
	more := expect(true, b.apply(op.Linear{}, flat, wide))
	dy := expect(true, b.apply(op.Linear{}, flat, w))
	b.apply(op.SelfAttention{Tokens: 10, Heads: 2, Scale: 1}, more, bias)
	b.apply(op.SelfAttentionGrad{Tokens: 10, Heads: 2, Scale: 1}, more, bias, dy)
	placed := expect(false, b.apply(op.Map{Expr: x0.Add(x1)}, flat, x)) // a sum along the net
	b.apply(op.Linear{}, placed, w)
	last := expect(true, b.apply(op.Linear{}, flat, w))
	b.apply(op.Planes{Height: 5, Width: 2}, expect(true, b.apply(op.Reshape{Shape: op.Shape{2, 10, width}}, last)))

	d := tiledDevice(t, 1)
	got := d.Narrow(&b.Program)
	for v, narrow := range named {
		if slices.Contains(got, v) != narrow {
			i := slices.IndexFunc(b.Steps, func(s device.Step) bool { return s.Out == v })
			t.Errorf("step %d, %v: narrow is %v", i, b.Steps[i].Op, !narrow)
		}
	}
	exact, err := New(Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Close()
	if list := exact.Narrow(&b.Program); len(list) > 0 {
		t.Errorf("in float32 values %v are narrow", list)
	}
}

// A block of a transformer has gradients close to those of float32, with the same bits for any number of threads and in
// low memory.
func TestTransformerInTiles(t *testing.T) {
	const images, tokens, width, heads, classes = 3, 37, 48, 3, 5
	gradients := func(d *Device, low bool) (all [][]float32) {
		g := G.NewGraph()
		var params G.Nodes
		in := func(shape ...int) *G.Node {
			n := G.NewTensor(g, tensor.Float32, len(shape), G.WithName(fmt.Sprint("in", len(params))), G.WithShape(shape...))
			params = append(params, n)
			return n
		}
		names := 0
		apply := func(o op.Op, in ...*G.Node) *G.Node {
			names++
			n, err := nn.Apply(fmt.Sprint(o.Kind(), names), o, in...)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		x := in(images*tokens, width)
		linear := func(x *G.Node, out int) *G.Node { return apply(op.Linear{}, x, in(out, x.Shape()[1]), in(out)) }
		norm := func(x *G.Node) *G.Node { return apply(op.LayerNorm{Eps: 1e-6}, x, in(width), in(width)) }
		for range 2 {
			a := apply(op.SelfAttention{Tokens: tokens, Heads: heads, Scale: .25}, linear(norm(x), 3*width))
			x = apply(op.Add{}, x, linear(a, width))
			x = apply(op.Add{}, x, linear(apply(op.Map{Expr: gelu}, linear(norm(x), 4*width)), width))
		}
		x = apply(op.Reshape{Shape: op.Shape{images, tokens * width}}, x)
		labels := G.NewVector(g, tensor.Int32, G.WithName("labels"), G.WithShape(images))
		loss := apply(op.SoftmaxCrossEntropy{}, linear(x, classes), labels)
		grads, err := nn.Grad(loss, params...)
		if err != nil {
			t.Fatal(err)
		}
		m, err := machine.New(g, machine.Config{Device: d, Keep: append(G.Nodes{loss}, grads...), LowMemory: low})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for seed, n := range params {
			v := make([]float32, n.Shape().TotalSize())
			for i := range v {
				v[i] = (float32((i*7919+seed*104729)%1009)/1009 - .5) / 2
			}
			if err := m.Write(n, op.Tensor{Shape: op.Shape(n.Shape()), Data: v}); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Write(labels, op.Tensor{Shape: op.Shape{images}, Data: []int32{0, 4, 2}}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second run finds the memory as the first has left it
			if err := m.Run(); err != nil {
				t.Fatal(err)
			}
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
	exact, err := New(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Close()
	got := gradients(tiledDevice(t, 1), false)
	for i, want := range gradients(exact, false) {
		size, off := 0., 0.
		for j, v := range want {
			size += float64(v) * float64(v)
			off += math.Pow(float64(got[i][j]-v), 2)
		}
		if !(off <= .03*.03*size) {
			t.Errorf("gradient %d: differs by %.3g of its norm", i, math.Sqrt(off/size))
		}
	}
	for i, x := range gradients(tiledDevice(t, 3), false) {
		if !slices.Equal(x, got[i]) {
			t.Errorf("gradient %d: three threads give other bits", i)
		}
	}
	for i, x := range gradients(tiledDevice(t, 2), true) {
		if !slices.Equal(x, got[i]) {
			t.Errorf("gradient %d: low memory gives other bits", i)
		}
	}
}

// Attention in tiles whose queries are cut into blocks is close to that of float32.
func TestAttentionInBlocksOfTiles(t *testing.T) {
	const matrices, queries, keys, width, wide = 5, 290, 300, 24, 40
	exact, err := New(Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Close()
	for _, self := range []bool{false, true} {
		b := &builder{tb: t}
		var in []int
		ops := []op.Op{op.Attention{Scale: .4}, op.AttentionGrad{Scale: .4}, op.AttentionGrad{Scale: .4, By: 1},
			op.AttentionGrad{Scale: .4, By: 2}}
		if self {
			s := op.SelfAttention{Tokens: queries, Heads: 2, Scale: .4}
			in = []int{b.data(3*queries, 3*2*width), b.data(3*queries, 2*width)}
			ops = []op.Op{s, op.SelfAttentionGrad(s)}
		} else {
			in = []int{b.data(matrices, queries, width), b.data(matrices, keys, width), b.data(matrices, keys, wide),
				b.data(matrices, queries, wide)}
		}
		var made []int
		for i, o := range ops {
			operands := in
			if i == 0 {
				operands = in[:len(in)-1]
			}
			made = append(made, b.apply(o, operands...))
		}
		var results [2][][]float32
		for i, d := range []*Device{exact, tiledDevice(t, 1)} {
			k := bind(t, d, &b.Program, b.weights, b.alone())
			k.run(t)
			for _, v := range made {
				results[i] = append(results[i], k.numbers(t, d, b.Values[v], v))
			}
		}
		for i, want := range results[0] {
			size, off := 0., 0.
			for j, v := range want {
				size += float64(v) * float64(v)
				off += math.Pow(float64(results[1][i][j]-v), 2)
			}
			if !(off <= .02*.02*size) {
				t.Errorf("%v: differs by %.3g of its norm", ops[i], math.Sqrt(off/size))
			}
		}
	}
}

// Sums over more rows than a worker takes at a time are whole.
func TestLayerNormGradOfManyRows(t *testing.T) {
	const rows, width = 70_000, 16
	b := &builder{tb: t}
	x, dy := b.data(rows, width), b.data(rows, width)
	b.apply(op.LayerNormGradScale{Eps: 1e-5}, x, dy)
	d := open(t, 2)
	k := bind(t, d, &b.Program, b.weights, b.alone())
	k.run(t)
	if e := b.errors(d, k)["layer_norm_grad_scale"]; !(e <= 1e-5) {
		t.Errorf("error %.3g of the largest element", e)
	}
}

// An expression behind a convolution reads results rounded as if they were stored, in all ways to multiply.
func TestExpressionsReadRoundedResults(t *testing.T) {
	for _, c := range []struct {
		o    op.Conv2D
		x, w op.Shape
	}{
		{op.Conv2D{}, op.Shape{3, 40, 7, 7}, op.Shape{150, 40, 1, 1}},
		{op.Conv2D{Pad: [2]int{1, 1}}, op.Shape{2, 24, 9, 8}, op.Shape{90, 24, 3, 3}},
	} {
		b := &builder{tb: t}
		y := b.apply(c.o, b.apply(op.ReLU{}, b.data(c.x...)), b.weight(c.w...), b.weight(c.w[0]))
		b.Keep = []int{b.apply(op.Map{Expr: gelu}, y)}
		fused := 0
		narrowWays(t, func(name string, d *Device) {
			groups := b.grouped(d)
			if len(groups) < len(b.Steps) {
				fused++
			}
			var got [2][]float32
			for i, g := range [][][]int{b.alone(), groups} {
				k := bind(t, d, &b.Program, b.weights, g)
				k.run(t)
				got[i] = k.numbers(t, d, b.Values[b.Keep[0]], b.Keep[0])
			}
			if !slices.Equal(got[0], got[1]) {
				t.Errorf("%v, %s: a group gives other bits than its ops", c.w, name)
			}
		})
		if fused == 0 {
			t.Errorf("%v: nothing runs as a group", c.w)
		}
	}
}
