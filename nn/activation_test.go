package nn

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// activations are the layers of testdata/activations.json.
var activations = map[string]Activation{
	"hardswish":   (*Builder).Hardswish,
	"silu":        (*Builder).SiLU,
	"gelu":        (*Builder).GELU,
	"gelu_tanh":   (*Builder).GELUTanh,
	"sigmoid":     (*Builder).Sigmoid,
	"hardsigmoid": (*Builder).HardSigmoid,
}

// torchActivations are the numbers of PyTorch.
func torchActivations(t *testing.T) map[string]map[string][]float64 {
	t.Helper()
	data, err := os.ReadFile("testdata/activations.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]map[string][]float64
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// bench is a graph with an input of the given shape, followed by a layer.
func bench(t *testing.T, mode Mode, shape op.Shape, layer Activation) (b *Builder, x, y *G.Node) {
	t.Helper()
	m := &Model{Graph: G.NewGraph(), Config: Config{DType: op.Float64, Mode: mode, Seed: 11}}
	b = &Builder{model: m, names: map[string]bool{}}
	x = b.input("x", op.T(op.Float64, shape...))
	y = layer(b, "layer", x)
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b, x, y
}

// check runs a layer and its gradient and compares them with PyTorch's.
func (c torchLayer) check(t *testing.T, shape op.Shape, layer Activation) {
	t.Helper()
	b, x, y := bench(t, Train, shape, layer)
	dy := b.input("dy", op.T(op.Float64, shape...))
	wrt := G.Nodes{x}
	for _, p := range b.model.Params {
		wrt = append(wrt, p.Node)
	}
	grads, err := Grad(G.Must(G.Sum(b.Scale("weighted", y, dy))), wrt...)
	if err != nil {
		t.Fatal(err)
	}
	bind(t, x, op.Tensor{Data: c["x"]})
	bind(t, dy, op.Tensor{Data: c["dy"]})
	for _, p := range b.model.Params {
		bind(t, p.Node, op.Tensor{Data: c[strings.TrimPrefix(p.Name, "layer.")]})
	}
	runTape(t, b.model.Graph)
	equalWithin(t, "y", values(t, y), c["y"])
	equalWithin(t, "dx", values(t, grads[0]), c["dx"])
	for i, p := range b.model.Params {
		equalWithin(t, "d"+p.Name, values(t, grads[1+i]), c["d"+strings.TrimPrefix(p.Name, "layer.")])
	}
}

type torchLayer map[string][]float64

func equalWithin(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= 1e-14*max(1, math.Abs(w))) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], w)
		}
	}
}

func TestActivations(t *testing.T) {
	for name, c := range torchActivations(t) {
		if a := activations[name]; a != nil {
			t.Run(name, func(t *testing.T) { torchLayer(c).check(t, op.Shape{len(c["x"])}, a) })
		}
	}
}

func TestSqueezeExcite(t *testing.T) {
	c := torchLayer(torchActivations(t)["squeeze_excite"])
	c.check(t, op.Shape{2, 5, 3, 2}, func(b *Builder, name string, x *G.Node) *G.Node {
		return b.SqueezeExcite(name, x, 3, (*Builder).SiLU, (*Builder).Sigmoid)
	})
}

// In Train dropout keeps the right share and scales it; in Eval it is absent.
func TestDropout(t *testing.T) {
	shape := op.Shape{50, 4, 5, 5}
	for _, whole := range []bool{false, true} {
		layer := func(b *Builder, name string, x *G.Node) *G.Node {
			if whole {
				return b.StochasticDepth(name, x, .25)
			}
			return b.Dropout(name, x, .25)
		}
		if b, x, y := bench(t, Eval, shape, layer); x != y || b.model.RandomCounter != nil {
			t.Error("there is dropout in Eval")
		}
		b, x, y := bench(t, Train, shape, layer)
		again := layer(b, "again", x)
		ones := op.New(op.T(op.Float64, shape...))
		for i := range ones.Data.([]float64) {
			ones.Data.([]float64)[i] = 3
		}
		bind(t, x, ones)
		draw := func(step, first int32) []float64 {
			bind(t, b.model.RandomCounter, op.Tensor{Data: []int32{step, first}})
			runTape(t, b.model.Graph)
			return values(t, y)
		}
		one := append([]float64(nil), draw(5, 100)...)
		kept, n := 0, shape.Size()/shape[0]
		for i, v := range one {
			switch {
			case v == 4:
				kept++
			case v != 0:
				t.Fatalf("element %d of 3 is %v, want 0 or 4", i, v)
			case whole && v != one[i/n*n]:
				t.Fatalf("sample %d is kept in part", i/n)
			}
		}
		trials := float64(len(one))
		if whole {
			trials = float64(shape[0])
		}
		if share, sigma := float64(kept)/float64(len(one)), math.Sqrt(.25*.75/trials); math.Abs(share-.75) > 4*sigma {
			t.Errorf("%v of the elements are kept, want 0.75 ± %v", share, sigma)
		}
		same := func(a, b []float64) bool {
			for i := range a {
				if a[i] != b[i] {
					return false
				}
			}
			return true
		}
		if same(one, values(t, again)) {
			t.Error("two layers drop the same")
		}
		if !same(one, draw(5, 100)) || same(one, draw(6, 100)) {
			t.Error("what is dropped is no function of the step")
		}
		if !same(one[n:], draw(5, 101)[:len(one)-n]) {
			t.Error("a sample has not the same numbers in the next batch")
		}
	}
}

func TestDropoutMistakes(t *testing.T) {
	for _, p := range []float64{-.1, 1, math.NaN()} {
		b := &Builder{model: &Model{Graph: G.NewGraph(), Config: Config{DType: op.Float64}}, names: map[string]bool{}}
		b.Dropout("drop", b.input("x", op.T(op.Float64, 2)), p)
		if b.err == nil || !strings.Contains(b.err.Error(), "layer drop: probability") {
			t.Errorf("probability %v: error %v", p, b.err)
		}
	}
}
