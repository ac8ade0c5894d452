package nn

import (
	"math"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// everyLayer is a small network that has each kind of layer.
var everyLayer = Architecture{
	Name: "every-layer", Size: 9, Channels: 2, Classes: 4,
	Build: func(b *Builder, x *G.Node) *G.Node {
		x = b.Conv("conv1", x, Conv{Filters: 4, Kernel: 3, Pad: 1, Groups: 2, Bias: true})
		x = b.ReLU("relu1", b.BatchNorm("bn1", x, 1))
		x = b.MaxPool("maxpool", x, 3, 2, 1)
		x = cifarBlock(b, "a", x, 8, 2, 0)
		y := ResNet{AntiAlias: "blur"}.basicBlock(b, "b", x, 6, 2)
		x = b.ReLU("relu2", b.Add("add1", y, ResNet{}.downsample(b, "b", x, 6, 2)))
		x = b.SqueezeExcite("se", b.Hardswish("hardswish", b.SiLU("silu", x)), 2, (*Builder).GELU,
			(*Builder).HardSigmoid)
		x = b.ECA("eca", x)
		x = b.StochasticDepth("depth", b.Dropout("dropout", x, .2), .4)
		x = b.Conv("conv2", x, Conv{Filters: 3, Kernel: 2, Width: 3, Pad: 1, PadWidth: 2, Dilation: 2, StdEps: 1e-3,
			Gain: 1.5})
		x = b.AvgPool("avgpool", x, 2, 1, 1)
		y = b.GlobalAvgPool("global", x)
		x = b.Map("rows", x0.Mul(x1), x, b.Param("row", Init{Distribution: Uniform, Scale: 1}, 1, 1, 1, x.Shape()[3]))
		x = b.Map("planes", x0.Add(x1.Square()),
			b.Param("plane", Init{Distribution: Uniform, Scale: 1}, 1, 3, x.Shape()[2], 1), x)
		s := b.Map("grid", x0.Mul(x1), b.Param("column", Init{Distribution: Uniform, Scale: 1}, 1, 3, 1, 1),
			b.Reduce("line", x, op.Mean, 1, 3))
		x = b.Scale("scaled", x, s)
		x = b.Linear("fc1", b.Flatten("flatten", x), 3)
		return b.Linear("fc2", b.Add("add", x, y), b.Config().Classes)
	},
}

func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	for _, mode := range []Mode{Train, Eval} {
		m, err := everyLayer.Model(Config{Batch: 3, Mode: mode, FloatInput: true, DType: op.Float64, Smoothing: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		wrt := G.Nodes{m.Input}
		for _, p := range m.Params {
			wrt = append(wrt, p.Node)
		}
		var grads G.Nodes
		if mode == Train {
			grads = append(grads, m.InputGrad)
			for _, p := range m.Params {
				grads = append(grads, p.Grad)
			}
		} else if grads, err = Grad(m.Loss, wrt...); err != nil { // with batch normalisation frozen
			t.Fatal(err)
		}
		bindModel(t, m, 5)
		runTape(t, m.Graph)
		want := make([][]float64, len(grads))
		for i, g := range grads {
			want[i] = append([]float64(nil), values(t, g)...)
		}
		worst := 0.
		for i, n := range wrt {
			x := values(t, n)
			for j := 0; j < len(x); j += 1 + len(x)/6 {
				const h = 1e-5
				at := func(v float64) float64 {
					old := x[j]
					defer func() { x[j] = old }()
					x[j] = v
					runTape(t, m.Graph)
					return values(t, m.Loss)[0]
				}
				slope := (at(x[j]+h) - at(x[j]-h)) / (2 * h)
				e := math.Abs(slope - want[i][j])
				worst = max(worst, e)
				if e > 1e-7 || math.IsNaN(e) {
					t.Errorf("%v: the gradient of %s[%d] is %g, by differences %g", mode, n.Name(), j, want[i][j],
						slope)
				}
			}
		}
		t.Logf("%v: largest deviation %.1g", mode, worst)
	}
}

// If two layers read one node, or one layer reads it twice, Gorgonia adds up the gradients.
func TestGradientOfSharedOperand(t *testing.T) {
	g := G.NewGraph()
	x := newInput(g, "x", op.T(op.Float64, 2, 2))
	sum, err := Apply("add", op.Add{}, x, x)
	if err != nil {
		t.Fatal(err)
	}
	relu, err := Apply("relu", op.ReLU{}, x)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Apply("all", op.Add{}, sum, relu)
	if err != nil {
		t.Fatal(err)
	}
	grads, err := Grad(G.Must(G.Sum(all)), x)
	if err != nil {
		t.Fatal(err)
	}
	bind(t, x, op.Tensor{Data: []float64{1, -1, 2, -2}})
	runTape(t, g)
	for i, want := range []float64{3, 2, 3, 2} {
		if got := values(t, grads[0])[i]; got != want {
			t.Errorf("gradient %d is %g, want %g", i, got, want)
		}
	}
}

func TestSmallResNetOnTheTapeMachine(t *testing.T) {
	a := Architecture{Name: "small", Size: 32, Channels: 3, Classes: 5, Build: func(b *Builder, x *G.Node) *G.Node {
		return cifarResNet(b, x, 1)
	}}
	for _, mode := range []Mode{Train, Eval} {
		m, err := a.Model(Config{
			Batch: 2, Size: 12, ImageHeight: 14, ImageWidth: 13, Mode: mode, Mean: []float64{0.5}, Std: []float64{0.25},
		})
		if err != nil {
			t.Fatal(err)
		}
		bindModel(t, m, 1)
		runTape(t, m.Graph)
		check := G.Nodes{m.Loss, m.Logits, m.Score}
		for _, p := range m.Params {
			if p.Grad != nil {
				check = append(check, p.Grad)
			}
		}
		for _, n := range append(check, m.Updates...) {
			x, err := hostTensor(n.Value())
			if err != nil {
				t.Fatal(err)
			}
			nonzero := false
			for _, v := range x.Data.([]float32) {
				if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
					t.Fatalf("%v in %v: %v", n, mode, v)
				}
				nonzero = nonzero || v != 0
			}
			if !nonzero && n != m.Score {
				t.Errorf("%v in %v is 0", n, mode)
			}
		}
	}
}
