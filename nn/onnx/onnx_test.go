package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/graph"
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
	_ "onlinerna/nn/zoo"
)

// weights draws those of an entry: parameters whose products keep their size, statistics that are neither 0 nor 1.
func weights(e nn.Entry) ([]float32, error) {
	h := fnv.New64a()
	io.WriteString(h, e.Name)
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	v := make([]float32, e.Shape.Size())
	for i := range v {
		switch {
		case e.Kind == nn.RunningVar:
			v[i] = float32(.5 + r.Float64())
		case e.Kind == nn.RunningMean:
			v[i] = float32(r.NormFloat64() / 4)
		case len(e.Shape) < 2:
			v[i] = float32(.75 + r.Float64()/2)
		default:
			v[i] = float32(r.NormFloat64() * math.Sqrt(2/float64(e.Shape[1:].Size())))
		}
	}
	return v, nil
}

// everything has each op and each broadcast that can be exported.
var everything = nn.Architecture{
	Name: "everything", Size: 13, Channels: 3, Classes: 5,
	Build: func(b *nn.Builder, x *G.Node) *G.Node {
		a0, a1 := expr.Arg(0), expr.Arg(1)
		x = b.Conv("stem", x, nn.Conv{Filters: 16, Kernel: 3, Width: 5, Pad: 2, PadWidth: 4, Dilation: 2, Bias: true})
		x = b.Hardswish("act", b.BatchNorm("bn", x, 1))
		x = b.Conv("depthwise", x, nn.Conv{Filters: 16, Kernel: 3, Stride: 2, Pad: 1, Groups: 16})
		x = b.SqueezeExcite("se", x, 4, (*nn.Builder).SiLU, (*nn.Builder).HardSigmoid)
		x = b.Map("perchannel", a0.Mul(a1).Exp().Shift(1).Log(), x, b.Param("scale", nn.Init{}, 16))
		x = b.Map("scaled", a0.Mul(a1), x, b.Param("layer_scale", nn.Init{}, 16, 1, 1))
		x = b.Map("scalar", expr.If(a0.Less(a1), a1.Neg(), a0.Square().Sqrt()), x, b.Param("threshold", nn.Init{}, 1))
		x = b.Map("percell", expr.If(a0.LessEqual(a1), a0.Sub(a1), a0.Div(a1.Abs().Shift(1))), x,
			b.GlobalAvgPool("mean", x))
		x = b.Add("add", b.Shortcut("shortcut", x, 2, 19), b.Shortcut("same", b.AvgPool("avg", x, 3, 2, 1), 1, 19))
		x = b.GELUTanh("gelutanh", b.GELU("gelu", b.Map("same2", a0, x)))
		x = b.MaxPool("max", x, 3, 1, 1)
		w := b.Param("gate", nn.Init{}, 16, 19)
		x = b.Apply("gated", op.Map{Expr: a0.Mul(a1)}, x, b.Apply("view", op.Reshape{Shape: op.Shape{1, 19, 4, 4}}, w))
		x = b.Flatten("flatten", b.Apply("flat", op.Reshape{Shape: op.Shape{b.Config().Batch, 38, 8}}, x))
		x = b.Map("rows", expr.If(a0.Equal(a1), a0, a0.Tanh().Add(a1.Sigmoid())), x, b.Param("row", nn.Init{}, 304))
		return b.Linear("fc", x, b.Config().Classes)
	},
}

// general has the ops of any rank.
var general = nn.Architecture{
	Name: "general", Size: 8, Channels: 3, Classes: 5,
	Build: func(b *nn.Builder, x *G.Node) *G.Node {
		n := b.Config().Batch
		x = b.Conv("conv", x, nn.Conv{Filters: 12, Kernel: 3})
		x = b.GroupNorm("group", x, 3, 1e-3)
		x = b.Pad("pad", x, []int{0, 0, 1, 0}, []int{0, 0, 0, 2}) // 7×8
		x = b.Concat("concat", 1, x, b.Slice("slice", x, 1, 3, 5))
		y := b.RMSNorm("rms", b.Apply("tokens", op.Tokens{}, x), 1e-3) // n×56×14
		pairs := b.Constant("pairs", op.Tensor{Shape: op.Shape{2 * 56}, Data: slices.Repeat([]int32{1, 0, 2, 1}, 28)})
		bias := b.Gather("picked", b.Param("table", nn.Init{}, 3, 56), 0, pairs)
		bias = b.Roll("rolled", b.Reshape("bias", bias, 2, 56, 56), 0, 3, -1)
		flags := b.Constant("flags", op.Tensor{Shape: op.Shape{1, 56, 56}, Data: slices.Repeat([]float64{.5, -1}, 28*56)})
		bias = b.Map("flagged", expr.Arg(0).Add(expr.Arg(1)), bias, flags)
		heads := b.Reshape("heads", b.Permute("split", b.Reshape("parts", y, n, 56, 2, 7, 1), 0, 2, 1, 3, 4), 2*n, 56, 7)
		heads = b.Apply("attention", op.Attention{Scale: .5}, heads, heads, heads, bias)
		z := b.MatMul("products", heads, heads, true)
		z = b.Reduce("largest", b.Reduce("sum", z, op.Sum, 1), op.Max, 2)
		x = b.Apply("planes", op.Planes{Height: 7, Width: 8}, b.LayerNorm("layer", y, 1e-3))
		x = b.Reduce("mean", x, op.Mean, 2, 3)
		z = b.Expand("expand", b.Reshape("one", z, n, 2, 1, 1), n, 2, 1, 7)
		x = b.Add("add", b.Reshape("flat", x, n, 14), b.Reshape("wide", z, n, 14))
		x = b.Add("more", b.Softmax("softmax", x), b.Reshape("row", b.Input("further", 2, 7), n, 14))
		return b.Linear("fc", x, b.Config().Classes)
	},
}

func lookup(t *testing.T, name string) nn.Architecture {
	t.Helper()
	a, err := nn.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestWrite runs the written file and compares it with the graph of the model, computed by the reference kernels.
func TestWrite(t *testing.T) {
	for _, c := range []struct {
		arch nn.Architecture
		cfg  nn.Config
	}{
		{everything, nn.Config{}},
		{everything, nn.Config{BlurPool: true, Mean: []float64{.5, .4, .3}, Std: []float64{.25}}},
		{general, nn.Config{}},
		{lookup(t, "vit_tiny_patch4_32"), nn.Config{Size: 8}},
		{lookup(t, "lenet"), nn.Config{Mean: []float64{.25}}},
		{lookup(t, "conv6"), nn.Config{Std: []float64{.25}, Classes: 3}},
		{lookup(t, "resnet20"), nn.Config{Size: 16, Mean: []float64{.5, .4, .3}, Std: []float64{.25, .2, .3}}},
	} {
		for _, batch := range []int{0, 3} {
			if batch > 0 && c.arch.Name != everything.Name && c.arch.Name != general.Name {
				continue
			}
			t.Run(fmt.Sprint(c.arch.Name, "/", batch), func(t *testing.T) {
				var b bytes.Buffer
				if err := Write(&b, c.arch, c.cfg, weights,
					Options{Batch: batch, Metadata: map[string]string{"b": "2", "a": ""}}); err != nil {
					t.Fatal(err)
				}
				m := decode(t, b.Bytes())
				if m.ir != 8 || m.opset != 17 || m.name != c.arch.Name ||
					!reflect.DeepEqual(m.metadata, map[string]string{"b": "2", "a": ""}) {
					t.Errorf("version %d, operators %d, name %s, metadata %v", m.ir, m.opset, m.name, m.metadata)
				}
				c.cfg.Batch, c.cfg.Mode, c.cfg.FloatInput = 3, nn.Eval, true
				model, err := c.arch.Model(c.cfg)
				if err != nil {
					t.Fatal(err)
				}
				n, k := any("batch"), model.Config
				if batch > 0 {
					n = batch
				}
				want := []valueInfo{{"input", []any{n, k.Channels, k.Size, k.Size}}}
				if len(model.Own) > 0 {
					want = append(want, valueInfo{"further", []any{n, 2, 7}})
				}
				if !reflect.DeepEqual(m.inputs, want) {
					t.Errorf("inputs %v, want %v", m.inputs, want)
				}
				if want := (valueInfo{"logits", []any{n, k.Classes}}); !reflect.DeepEqual(m.output, want) {
					t.Errorf("output %v, want %v", m.output, want)
				}
				for _, e := range model.StateDict() {
					w, _ := weights(e)
					if got := m.tensors[e.Name]; e.Kind != nn.BatchesTracked &&
						(!got.Shape.Equal(e.Shape) || !reflect.DeepEqual(got.Data, w)) {
						t.Errorf("%s is %v and differs", e.Name, got.Shape)
					}
				}
				names := slices.Collect(maps.Keys(m.tensors)) // onnxruntime warns of others than nodes take
				for _, name := range slices.AppendSeq(names, maps.Keys(m.integers)) {
					if !slices.ContainsFunc(m.nodes, func(n node) bool { return slices.Contains(n.in, name) }) {
						t.Errorf("no node takes %s", name)
					}
				}
				var x []op.Tensor
				r := rand.New(rand.NewPCG(1, 2))
				for _, in := range append(G.Nodes{model.Input}, model.Own...) {
					v := op.New(op.T(op.Float32, in.Shape()...))
					for i := range v.Data.([]float32) {
						v.Data.([]float32)[i] = r.Float32()
					}
					x = append(x, v)
				}
				compare(t, m.run(t, x...), evaluate(t, model, x...))
			})
		}
	}
}

// compare allows for other roundings.
func compare(t *testing.T, got, want op.Tensor) {
	t.Helper()
	if !got.Shape.Equal(want.Shape) {
		t.Fatalf("shape %v, want %v", got.Shape, want.Shape)
	}
	w, worst, size := want.Data.([]float32), 0., 0.
	for i, g := range got.Data.([]float32) {
		worst, size = max(worst, math.Abs(float64(g-w[i]))), max(size, math.Abs(float64(w[i])))
	}
	if !(worst <= 1e-5*size) || size == 0 {
		t.Errorf("differs by %g of %g", worst, size)
	}
}

// evaluate computes the logits of a model by the reference kernels, for images from 0 to 1 and its further inputs.
func evaluate(t *testing.T, m *nn.Model, all ...op.Tensor) op.Tensor {
	t.Helper()
	x := all[0]
	in := op.New(x.Type())
	plane := x.Shape[2] * x.Shape[3]
	for i, v := range x.Data.([]float32) {
		c := i / plane % x.Shape[1]
		in.Data.([]float32)[i] = float32((float64(v) - m.Config.Mean[c]) / m.Config.Std[c])
	}
	values := map[*G.Node]op.Tensor{m.Input: in}
	for i, node := range m.Own {
		values[node] = all[i+1]
	}
	for _, e := range m.StateDict() {
		w, _ := weights(e)
		switch e.Kind {
		case nn.Parameter:
			values[m.Params[e.Index].Node] = op.Tensor{Shape: e.Shape, Data: w}
		case nn.RunningMean:
			values[m.Stats[e.Index].Node] = op.Tensor{Shape: op.Shape{2, len(w)}, Data: w}
		case nn.RunningVar:
			s := values[m.Stats[e.Index].Node]
			values[m.Stats[e.Index].Node] = op.Tensor{Shape: s.Shape, Data: append(s.Data.([]float32), w...)}
		}
	}
	var value func(n *G.Node) op.Tensor
	value = func(n *G.Node) op.Tensor {
		if v, ok := values[n]; ok {
			return v
		}
		if nn.IsConstant(n) {
			return op.Tensor{Shape: op.Shape(n.Shape()), Data: n.Value().Data()}
		}
		var args []op.Tensor
		for _, c := range graph.NodesOf(m.Graph.From(n.ID())) {
			args = append(args, value(c.(*G.Node)))
		}
		o := n.Op().(*nn.Op)
		y := op.New(o.Out())
		if err := o.Op().Run(y, args...); err != nil {
			t.Fatal(err)
		}
		values[n] = y
		return y
	}
	return value(m.Logits)
}

// TestArchitectures exports all architectures except the largest.
func TestArchitectures(t *testing.T) {
	zero := make([]float32, 1<<22)
	for _, a := range nn.Architectures() {
		if m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval}); err != nil || m.NumParams() > 12e6 {
			continue
		}
		var n counter
		err := Write(&n, a, nn.Config{BlurPool: true},
			func(e nn.Entry) ([]float32, error) { return zero[:e.Shape.Size()], nil }, Options{})
		m, err2 := a.Model(nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil || err2 != nil || int(n) < 4*m.NumParams() {
			t.Errorf("%s: %d bytes, %v, %v", a.Name, n, err, err2)
		}
	}
}

type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func TestErrors(t *testing.T) {
	bad := errors.New("bad sector")
	net := func(build func(b *nn.Builder, x *G.Node) *G.Node) nn.Architecture {
		return nn.Architecture{Name: "own", Size: 4, Channels: 2, Classes: 2, Build: build}
	}
	good := net(func(b *nn.Builder, x *G.Node) *G.Node { return b.GlobalAvgPool("pool", x) })
	for _, c := range []struct {
		arch  nn.Architecture
		batch int
		err   error
		want  string
	}{
		{arch: good},
		{arch: good, batch: -1, want: "batch size -1"},
		{arch: lookup(t, "lenet"), err: bad, want: "onnx: lenet: bad sector"},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node {
			return b.Apply("sum", op.SumTo{Shape: op.Shape{b.Config().Batch, 2}}, x)
		}),
			want: "onnx: own: layer sum: there is no operator of ONNX for sum_to"},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node { return G.Must(G.Square(b.GlobalAvgPool("pool", x))) }),
			want: "Gorgonia's own"},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node {
			n := b.Config().Batch
			x = b.Apply("mix", op.Reshape{Shape: op.Shape{1, 2 * n, 4, 4}}, x)
			return b.Apply("back", op.Reshape{Shape: op.Shape{n, 2}}, b.GlobalAvgPool("pool", x))
		})},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node {
			k := b.Constant("k", op.Tensor{Shape: op.Shape{2}, Data: []int32{0, 2}})
			return b.Gather("pick", b.GlobalAvgPool("pool", x), 1, k)
		}), want: "layer pick: gather{axis 1} picks element 2 of 2, which is 0 here and an error in ONNX"},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.GlobalAvgPool("pool", x)
			return b.Slice("cut", b.Concat("twice", 0, x, x), 0, 0, b.Config().Batch)
		}), want: "layer cut: slice{[0 0] to [7919 2]} cuts images of a batch, whose size is open"},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node {
			n := b.Config().Batch
			x = b.Apply("mix", op.Reshape{Shape: op.Shape{1, 2 * n, 4, 4}}, x)
			return b.Apply("back", op.Reshape{Shape: op.Shape{n, 2}}, b.GlobalAvgPool("pool", x))
		}), batch: 3},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node {
			s := b.Param("one", nn.Init{}, 2)
			x = b.Apply("bn", op.BatchNorm{Fixed: true, Eps: 1}, x, b.Apply("stats", op.BatchNormStats{}, x), s, s)
			return b.GlobalAvgPool("pool", x)
		}), want: "layer bn: batch_norm{eps 1, fixed true} takes statistics that are not the running ones"},
		{arch: net(func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.Conv("wide", x, nn.Conv{Filters: 1 << 28, Kernel: 1})
			return b.GlobalAvgPool("pool", b.Conv("narrow", x, nn.Conv{Filters: 2, Kernel: 1}))
		}), want: "2 GiB"},
	} {
		var b bytes.Buffer
		err := Write(&b, c.arch, nn.Config{}, func(e nn.Entry) ([]float32, error) {
			if c.err != nil {
				return nil, c.err
			}
			return weights(e)
		}, Options{Batch: c.batch})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		if c.want != "" && c.err == nil && b.Len() > 0 {
			t.Errorf("%v: %d bytes are written", err, b.Len())
		}
	}
}
