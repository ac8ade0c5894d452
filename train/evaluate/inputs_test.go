package evaluate_test

import (
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op/expr"
	"onlinerna/train/evaluate"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/serve"
)

func init() {
	nn.Register(nn.Architecture{
		Name: "with_prior", Size: 28, Channels: 1, Classes: 10,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.ReLU("relu", b.BatchNorm("bn", b.Conv("conv", x, nn.Conv{Filters: 4, Kernel: 3, Stride: 2}), 1))
			x = b.Linear("fc", b.GlobalAvgPool("mean", x), b.Config().Classes)
			return b.Map("logits", expr.Arg(0).Add(expr.Arg(1)), x, b.Input("prior", b.Config().Classes))
		},
	})
}

// priorWeights writes weights of the net above, and returns glyphs whose prior says their label for the first images.
func priorWeights(t *testing.T) (weights string, set data.Dataset) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	set, err = data.OpenEval("glyphs", nil, data.Classification)
	if err != nil {
		t.Fatal(err)
	}
	net, err := network.New(dev, "with_prior", nn.Config{Mean: []float64{.25}, Std: []float64{.25}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	weights = filepath.Join(t.TempDir(), "w.safetensors")
	if err := net.SaveWeights(weights, net.Params, net.Stats, network.Meta{Model: "with_prior", ImageSize: 28,
		Mean: []float64{.25}, Std: []float64{.25}, Kind: network.SGD, Classes: set.Classes()}); err != nil {
		t.Fatal(err)
	}
	return weights, set
}

// told is a set whose images have the prior 50 for their label, and for the last class if wrong.
func told(t *testing.T, set data.Dataset, wrong func(i int) bool) data.Dataset {
	rows := make([][]float32, set.Len())
	for i := range rows {
		rows[i] = make([]float32, len(set.Classes()))
		k := set.Label(i)
		if wrong(i) {
			k = (k + 1) % len(set.Classes())
		}
		rows[i][k] = 50
	}
	with, err := data.WithInput(set, "prior", rows)
	if err != nil {
		t.Fatal(err)
	}
	return with
}

func options(weights string, images data.Dataset) *evaluate.Options {
	return &evaluate.Options{Weights: weights, Images: images, Batch: 37, Workers: 1, Threads: 1,
		Open: func(*ranks.Group, int) (device.Device, error) { return cpu.New(cpu.Options{Threads: 1}) }}
}

// A program's images with a further input are evaluated, predicted, judged and recalibrated on.
func TestFurtherInputs(t *testing.T) {
	weights, set := priorWeights(t)
	images := told(t, set, func(i int) bool { return i%4 == 0 })
	o := options(weights, images)
	r, err := o.Run(context.Background(), nil, io.Discard, io.Discard)
	if err != nil || math.Abs(r.Score.Top1-75) > .2 || r.Score.Images != set.Len() {
		t.Fatalf("%+v, %v", r, err)
	}

	p, err := options(weights, nil).OpenPredictor(io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	list, bad, err := p.Predict(context.Background(), images, 1, data.LoaderOptions{Batch: 16}, io.Discard,
		func(int, evaluate.Prediction) {})
	if err != nil || bad != 0 || len(list) != set.Len() || list[1].Guesses[0].Class != set.Label(1) ||
		list[4].Guesses[0].Class == set.Label(4) {
		t.Errorf("%d predictions, %d bad, %v", len(list), bad, err)
	}

	j, err := options("", images).NewJudge(weights, evaluate.JudgeOptions{Training: told(t, set, func(int) bool { return false }),
		Augment: "none", BNBatches: 2}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Load(context.Background(), weights); err != nil {
		t.Fatal(err)
	}
	losses, err := j.Losses(context.Background())
	if err != nil || len(losses) != set.Len() || losses[0] < 20 || losses[1] > 1 {
		t.Errorf("%d losses, %v", len(losses), err)
	}
}

// Images without the input, and images of other classes or tasks, are refused before any batch.
func TestInputsAreMissing(t *testing.T) {
	weights, set := priorWeights(t)
	const lacks = "with_prior takes the input prior [10] for each image, which the images lack"
	is := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want …%s…", what, err, want)
		}
	}
	run := func(o *evaluate.Options) error {
		_, err := o.Run(context.Background(), nil, io.Discard, io.Discard)
		return err
	}
	is("a program's images", run(options(weights, set)), lacks)
	o := options(weights, nil)
	o.Data = "glyphs"
	is("images at a place", run(o), lacks)
	_, err := options("", told(t, set, func(int) bool { return false })).NewJudge(weights,
		evaluate.JudgeOptions{Data: "glyphs", Augment: "none", BNBatches: 1}, io.Discard)
	is("training images", err, lacks)
	p, err := options(weights, nil).OpenPredictor(io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, _, err = p.Predict(context.Background(), set, 1, data.LoaderOptions{Batch: 16}, io.Discard,
		func(int, evaluate.Prediction) {})
	is("prediction", err, lacks)
	_, err = serve.New(p, serve.Options{})
	is("a server", err, lacks)

	o = options(weights, told(t, set, func(int) bool { return false }))
	o.Data = "glyphs"
	is("two sets", run(o), "images in glyphs beside Options.Images")
	o.Data, o.Classes = "", filepath.Join(t.TempDir(), "classes.txt")
	if err := os.WriteFile(o.Classes, []byte(strings.Join(set.Classes()[:9], "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	is("fewer classes", run(o), "Options.Images have 10 classes, and "+weights+" has 9")
	if err := os.WriteFile(o.Classes, []byte(strings.Join(append(set.Classes()[:9:9], "else"), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	is("another class", run(o), "class 9 of Options.Images is ")
}
