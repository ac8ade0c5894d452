package nn

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func TestNodesKeepApart(t *testing.T) {
	m, err := Build("resnet152", Config{Batch: 2, Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	nodes, codes := 0, map[uint32]*Op{}
	for _, n := range m.Graph.AllNodes() {
		o, ok := n.Op().(*Op)
		if !ok {
			continue
		}
		nodes++
		if p := codes[o.Hashcode()]; p != nil {
			t.Errorf("%v and %v have the same hash", o, p)
		}
		codes[o.Hashcode()] = o
	}
	if nodes < 1900 {
		t.Errorf("only %d ops", nodes)
	}
}

func TestEqualNodesAreOne(t *testing.T) {
	g := G.NewGraph()
	x := newInput(g, "x", op.T(op.Float32, 2, 3))
	y := newInput(g, "y", op.T(op.Float32, 2, 3))
	relu := func(name string, x *G.Node) *G.Node {
		n, err := Apply(name, op.ReLU{}, x)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	a := relu("a", x)
	if relu("a", x) != a {
		t.Error("the same op of the same node is a second node")
	}
	if relu("a", y) == a || relu("b", x) == a {
		t.Error("different nodes became one")
	}
	b, err := Apply("a", op.MaxPool{Kernel: [2]int{1, 1}}, x)
	if err == nil {
		t.Errorf("pooling of a matrix gives %v", b)
	}
}

func TestErrorsNameLayerOpAndShapes(t *testing.T) {
	g := G.NewGraph()
	x := newInput(g, "x", op.T(op.Float32, 2, 3, 8, 8))
	w := newInput(g, "w", op.T(op.Float32, 4, 5, 3, 3))
	long := G.NewVector(g, tensor.Int64, G.WithShape(2), G.WithName("long"))
	for _, c := range []struct {
		op   op.Op
		in   []*G.Node
		want []string
	}{
		{op.Conv2D{}, []*G.Node{x, w}, []string{"layer1.0.conv1", "conv2d", "[2 3 8 8]", "[4 5 3 3]"}},
		{op.Add{}, []*G.Node{x, w}, []string{"layer1.0.conv1", "add", "[2 3 8 8]", "[4 5 3 3]"}},
		{op.Add{}, []*G.Node{x}, []string{"layer1.0.conv1", "add", "[2 3 8 8]"}},
		{op.Add{}, []*G.Node{x, nil}, []string{"layer1.0.conv1", "add", "operand 1", "nil"}},
		{op.Add{}, nil, []string{"layer1.0.conv1", "add", "without operands"}},
		{op.ReLU{}, []*G.Node{long}, []string{"layer1.0.conv1", "relu", "operand 0", "int64"}},
	} {
		_, err := Apply("layer1.0.conv1", c.op, c.in...)
		if err == nil {
			t.Errorf("%v of %v is no error", c.op, c.in)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q lacks %q", err, want)
			}
		}
	}
}

func TestBuilderErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *Builder, x *G.Node) *G.Node
		want  []string
	}{
		{"two layers", func(b *Builder, x *G.Node) *G.Node {
			x = b.ReLU("relu", x)
			return b.ReLU("relu", x)
		}, []string{`"relu"`}},
		{"layer and input", func(b *Builder, x *G.Node) *G.Node { return b.ReLU("labels", x) }, []string{`"labels"`}},
		{"two parameters", func(b *Builder, x *G.Node) *G.Node {
			b.Param("p", Init{}, 2)
			return b.Param("p", Init{}, 2)
		}, []string{`"p"`}},
		{"no name", func(b *Builder, x *G.Node) *G.Node { return b.ReLU("", x) }, []string{"no name"}},
		{"empty parameter", func(b *Builder, x *G.Node) *G.Node {
			return b.Param("p", Init{}, 2, 0)
		}, []string{"p", "[2 0]"}},
		{"groups", func(b *Builder, x *G.Node) *G.Node {
			return b.Conv("c", x, Conv{Filters: 4, Kernel: 1, Groups: 2})
		}, []string{"layer c", "2 groups", "3 channels"}},
		{"kernel", func(b *Builder, x *G.Node) *G.Node {
			return b.Conv("c", x, Conv{Filters: 4})
		}, []string{"layer c", "Kernel:0"}},
		{"columns of zeros", func(b *Builder, x *G.Node) *G.Node {
			return b.Conv("c", x, Conv{Filters: 4, Kernel: 3, PadWidth: 1})
		}, []string{"layer c", "PadWidth:1"}},
		{"width", func(b *Builder, x *G.Node) *G.Node {
			return b.Conv("c", x, Conv{Filters: 4, Kernel: 3, Width: -1})
		}, []string{"layer c", "Width:-1"}},
		{"large kernel", func(b *Builder, x *G.Node) *G.Node {
			return b.Conv("c", x, Conv{Filters: 4, Kernel: 9})
		}, []string{"layer c", "conv2d", "[2 3 8 8]", "[4 3 9 9]"}},
		{"rank", func(b *Builder, x *G.Node) *G.Node {
			return b.Linear("fc", x, 4)
		}, []string{"layer fc", "[2 3 8 8]", "2 dimensions"}},
		{"logits", func(b *Builder, x *G.Node) *G.Node {
			return b.Linear("fc", b.Flatten("flatten", x), 4)
		}, []string{"logits", "[2 4]", "[2 10]"}},
		{"nothing", func(b *Builder, x *G.Node) *G.Node { return nil }, []string{"loss", "no operand"}},
		{"own", func(b *Builder, x *G.Node) *G.Node {
			b.Fail(fmt.Errorf("first"))
			b.Fail(fmt.Errorf("second"))
			return b.ReLU("relu", x)
		}, []string{"first"}},
	} {
		a := Architecture{Name: "tiny", Size: 8, Channels: 3, Classes: 10, Build: c.build}
		_, err := a.Model(Config{Batch: 2})
		for _, want := range append(c.want, "tiny") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v lacks %q", c.name, err, want)
			}
		}
	}
}

func TestConcurrentBuilds(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			m, err := Build("resnet20", Config{Batch: 1, Size: 8})
			if err != nil {
				t.Error(err)
				return
			}
			if n := len(m.Params); n != 59 || m.Params[0].Grad == nil {
				t.Errorf("%d parameters", n)
			}
		})
	}
	wg.Wait()
}

func TestGradOfWhatHasNone(t *testing.T) {
	g := G.NewGraph()
	x := newInput(g, "x", op.T(op.Float64, 2, 3))
	labels := newInput(g, "labels", op.T(op.Int32, 2))
	if _, err := Grad(x, x); err == nil {
		t.Error("the gradient of a matrix is no error")
	}
	score, err := Apply("score", op.Score{}, x, labels)
	if err != nil {
		t.Fatal(err)
	}
	total := G.Must(G.Sum(score))
	if _, err := Grad(total, x); err == nil {
		t.Error("the gradient of the score is no error")
	}
}

func TestValues(t *testing.T) {
	back := []float64{1, 2, 3, 4, 5, 6}
	d := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking(back))
	if err := d.T(); err != nil {
		t.Fatal(err)
	}
	column, err := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking(back)).Slice(nil, tensor.S(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		v    G.Value
		want string
	}{
		{G.NewF32(2), "float32[] [2]"},
		{G.NewF64(3), "float64[] [3]"},
		{tensor.New(tensor.FromScalar(4.5)), "float64[] [4.5]"},
		{tensor.New(tensor.WithShape(1), tensor.WithBacking([]int32{7})), "int32[1] [7]"},
		{d, "float64[3 2] [1 4 2 5 3 6]"},
		{column.(G.Value), "float64[2] [2 5]"},
	} {
		x, err := hostTensor(c.v)
		if err != nil {
			t.Errorf("%v: %v", c.v, err)
			continue
		}
		if got := fmt.Sprint(x.Type(), " ", x.Data); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	for _, v := range []G.Value{
		G.NewI32(1),
		tensor.New(tensor.WithShape(2), tensor.WithBacking([]int{1, 2})),
		tensor.New(tensor.AsFortran(back), tensor.WithShape(2, 3)),
	} {
		if x, err := hostTensor(v); err == nil {
			t.Errorf("%v becomes %v", v, x)
		}
	}
}

// Constants are as many numbers as their shape has, convert to the net's type, and have no gradient.
func TestConstants(t *testing.T) {
	build := func(c op.Tensor) (*Model, error) {
		return Architecture{Name: "own", Size: 2, Channels: 1, Classes: 2, Build: func(b *Builder, x *G.Node) *G.Node {
			x = b.Linear("fc", b.Flatten("flatten", x), 2)
			return b.Map("sum", expr.Arg(0).Add(expr.Arg(1)), x, b.Constant("two", c))
		}}.Model(Config{Batch: 3})
	}
	m, err := build(op.Tensor{Shape: op.Shape{1, 2}, Data: []float64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range m.Graph.AllNodes() {
		if x, ok := n.Op().(*Op); ok && x.Layer() == "sum" && (!slices.Equal(x.DiffWRT(2), []bool{true, false}) ||
			x.in[1].DType != op.Float32) {
			t.Errorf("gradients %v of a constant %v", x.DiffWRT(2), x.in[1])
		}
	}
	for _, c := range []op.Tensor{
		{Shape: op.Shape{1, 2}, Data: []float64{1}}, {Shape: op.Shape{1, 2}, Data: []float32{1, 2}},
		{Data: []float64{1}}, {Shape: op.Shape{2}, Data: []int32{1}},
	} {
		if _, err := build(c); err == nil || !strings.Contains(err.Error(), "constant two is a []") {
			t.Errorf("%v: %v", c, err)
		}
	}
}
