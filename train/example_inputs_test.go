package train_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"log"

	"gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
)

// twoInputs is a net for images with a row of a table each: it joins the features of both.
func twoInputs(b *nn.Builder, x *gorgonia.Node) *gorgonia.Node {
	x = b.ReLU("relu1", b.BatchNorm("bn", b.Conv("conv", x, nn.Conv{Filters: 8, Kernel: 3, Stride: 2, Pad: 1}), 1))
	table := b.ReLU("relu2", b.Linear("fc1", b.Input("table", 2), 8))
	x = b.Concat("both", 1, b.GlobalAvgPool("avgpool", x), table)
	return b.Linear("fc3", b.ReLU("relu3", b.Linear("fc2", x, 16)), b.Config().Classes)
}

// Training of a net with a further input: images and a table. Neither alone determines the class.
func Example_inputs() {
	nn.Register(nn.Architecture{Name: "two_inputs", Size: 8, Channels: 1, Classes: 2, Build: twoInputs})
	var images []image.Image
	var rows [][]float32
	var labels []int
	for i := range 128 {
		bright, positive := i%2, i/2%2
		img := image.NewGray(image.Rect(0, 0, 8, 8))
		for p := range img.Pix {
			img.Pix[p] = color.Gray{uint8(180*bright + (i*7+p*5)%50)}.Y
		}
		images, labels = append(images, img), append(labels, bright^positive)
		rows = append(rows, []float32{float32(2*positive - 1), float32(i%5) / 5})
	}
	set, err := data.FromImages([]string{"equal", "different"}, images, labels)
	if err == nil {
		set, err = data.WithInput(set, "table", rows)
	}
	if err != nil {
		log.Fatal(err)
	}
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	run, err := train.New(train.Spec{Model: "two_inputs", Batch: 16, Epochs: 12}, train.Deps{Device: dev, Train: set,
		Val: set})
	if err == nil {
		err = run.Train(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
	p, err := run.Net.Predict(images[1], map[string][]float32{"table": {-1, 0}})
	q, err2 := run.Net.Predict(images[1], map[string][]float32{"table": {1, 0}})
	fmt.Println("different:", p[1] > 0.9, q[1] > 0.9, err, err2)
	// Output: different: true false <nil> <nil>
}
