package main

import (
	"fmt"
	"image/color"
	"path/filepath"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/network"
)

// The commands, whose images come alone, refuse a net with a further input by one line; it exports.
func TestFurtherInputsAreRefused(t *testing.T) {
	nn.Register(nn.Architecture{
		Name: "tabular", Family: "tabular", Summary: "a test's", Reference: "none", Size: 28, Channels: 1, Classes: 10,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.ReLU("relu", b.BatchNorm("bn", b.Conv("conv", x, nn.Conv{Filters: 4, Kernel: 3, Stride: 2}), 1))
			x = b.Concat("both", 1, b.GlobalAvgPool("mean", x), b.Input("table", 3))
			return b.Linear("fc", x, b.Config().Classes)
		},
	})
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	dir := t.TempDir()
	var row []string
	for seed := range uint64(3) {
		net, err := network.New(dev, "tabular", nn.Config{Mean: []float64{.25}, Std: []float64{.25}}, seed)
		if err != nil {
			t.Fatal(err)
		}
		defer net.Close()
		row = append(row, filepath.Join(dir, fmt.Sprintf("w%d.safetensors", seed)))
		if err := net.SaveWeights(row[seed], net.Params, net.Stats, network.Meta{Model: "tabular", ImageSize: 28,
			Mean: []float64{.25}, Std: []float64{.25}}); err != nil {
			t.Fatal(err)
		}
	}
	weights := row[0]
	shot := filepath.Join(dir, "shot.png")
	picture(t, shot, color.Gray{90}, 28)
	const want = "tabular takes the input table [3] for each image, which the images lack: a program adds it"
	for _, args := range [][]string{
		{"train", "--model", "tabular", "--epochs", "1"},
		{"lr-find", "--model", "tabular"},
		{"eval", weights, "--data", "glyphs"},
		{"predict", shot, "--weights", weights},
		{"serve", weights, "--listen", "127.0.0.1:0"},
		{"extrapolate", row[0], row[1], row[2], "-o", filepath.Join(dir, "out.safetensors"), "--auto", "--eval", "glyphs"},
	} {
		fails(t, args, want)
	}
	mustRun(t, "models", "tabular")
	mustRun(t, "export", weights, "-o", filepath.Join(dir, "net.onnx"))
}
