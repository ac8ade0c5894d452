package network

import (
	"bytes"
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/data/random"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	nn.Register(nn.Architecture{
		Name: "further_inputs", Size: 8, Channels: 3, Classes: 2,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			size := b.Config().Size
			sum := expr.Arg(0).Add(expr.Arg(1))
			x = b.Conv("conv", x, nn.Conv{Filters: 4, Kernel: 3, Pad: 1})
			x = b.Map("masked", expr.Arg(0).Mul(expr.Arg(1)), x, b.Input("mask", 1, size, size))
			x = b.Dropout("drop", b.ReLU("relu", b.BatchNorm("bn", x, 1)), .25)
			x = b.Map("both", sum, b.Linear("fc1", b.GlobalAvgPool("mean", x), 5), b.Linear("fc2", b.Input("table", 3), 5))
			return b.Map("logits", sum, b.Linear("fc", x, 2), b.Input("prior", 2))
		},
	})
}

// further is a batch for the net above.
func further(n int, seed uint64) *data.Batch {
	b, r := noise(n, 8, seed), random.New(seed, 1)
	b.First, b.Inputs = 5*n, map[string][]float32{}
	for _, in := range []data.Input{{Name: "mask", Len: 64}, {Name: "table", Len: 3}, {Name: "prior", Len: 2}} {
		v := make([]float32, n*in.Len)
		for i := range v {
			v[i] = float32(r.Normal())
		}
		b.Inputs[in.Name] = v
	}
	return b
}

func newFurther(t *testing.T, dev device.Device) *Network {
	t.Helper()
	n, err := New(dev, "further_inputs", nn.Config{Mean: []float64{.5}, Std: []float64{.25}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// Batches of a net with further inputs have the losses, gradients, statistics and logits on each device that they have
// by definition, whatever batches came before.
func TestFurtherInputs(t *testing.T) {
	run := func(dev device.Device) (all []float64) {
		n := newFurther(t, dev)
		for i, images := range []int{4, 3, 4, 9, 4} {
			loss, _, err := n.Gradient(further(images, uint64(i)), .1)
			if err == nil {
				err = n.UpdateStats(further(images, uint64(10+i)), .5)
			}
			if err != nil {
				t.Fatal(err)
			}
			logits := make([]float32, 2*images)
			score, err := n.Evaluate(further(images, uint64(20+i)), logits)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, loss, score.Loss)
			add := func(list ...float32) {
				for _, x := range list {
					all = append(all, float64(x))
				}
			}
			add(logits...)
			for _, e := range n.model.StateDict() { // in PyTorch's order of elements
				switch v, err := n.entry(e, n.Grads, n.Stats); x := v.(type) {
				case []float32:
					add(x...)
				case []float64:
					all = append(all, x...)
				default:
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		return all
	}
	want := run(reference(op.Float64))
	for _, dev := range []device.Device{reference(op.Float32), cpuDevice(t, 1), cpuDevice(t, 3)} {
		for i, x := range run(dev) {
			if !(math.Abs(x-want[i]) < 1e-4) {
				t.Fatalf("%s: number %d is %g, want %g", dev.Name(), i, x, want[i])
			}
		}
	}
}

// The values of an input reach the rows of its images: those added to the logits are in them.
func TestInputValues(t *testing.T) {
	n := newFurther(t, cpuDevice(t, 2))
	b := further(4, 1)
	logits := func() []float32 {
		x := make([]float32, 8)
		if _, err := n.Evaluate(b, x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	with := logits()
	prior := b.Inputs["prior"]
	b.Inputs["prior"] = make([]float32, 8)
	for i, x := range logits() {
		if math.Abs(float64(x+prior[i]-with[i])) > 1e-5 {
			t.Errorf("logit %d is %g with and %g without %g", i, with[i], x, prior[i])
		}
	}
	var file bytes.Buffer
	if err := n.WriteONNX(&file, Meta{}, 0); err != nil {
		t.Error(err)
	}
}

// A batch or a set without an input, or with one of another size, is an error that names it.
func TestInputErrors(t *testing.T) {
	n := newFurther(t, cpuDevice(t, 1))
	b := further(4, 1)
	b.Inputs["table"] = b.Inputs["table"][:11]
	_, _, err := n.Gradient(b, .1)
	if err == nil || !strings.Contains(err.Error(), "the input table [4 3], and the batch has 11 numbers") {
		t.Error(err)
	}
	set, err := data.OpenEval("glyphs", nil, data.Classification)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, k int) {
		rows := make([][]float32, set.Len())
		for i := range rows {
			rows[i] = make([]float32, k)
		}
		if set, err = data.WithInput(set, name, rows); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		if err := n.CheckInputs(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	check("the input mask [64] for each image, which the images lack")
	with("mask", 63)
	check("which is of 64 numbers: the images have 63")
}
