package evaluate_test

import (
	"context"
	"fmt"
	"image"
	"io"
	"log"
	"os"

	"gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/evaluate"
	"onlinerna/train/ranks"
)

// Evaluation of a run on images of the program's own, whose net takes a row of a table for each image.
func ExampleOptions_Run() {
	nn.Register(nn.Architecture{Name: "with_table", Size: 8, Channels: 1, Classes: 2,
		Build: func(b *nn.Builder, x *gorgonia.Node) *gorgonia.Node {
			x = b.ReLU("relu", b.BatchNorm("bn", b.Conv("conv", x, nn.Conv{Filters: 4, Kernel: 3}), 1))
			x = b.Concat("both", 1, b.GlobalAvgPool("avgpool", x), b.Input("table", 1))
			return b.Linear("fc", x, b.Config().Classes)
		}})
	var images []image.Image
	var labels []int
	var rows [][]float32
	for i := range 64 { // the table says the class
		images, labels = append(images, image.NewGray(image.Rect(0, 0, 8, 8))), append(labels, i%2)
		rows = append(rows, []float32{float32(i%2) - .5})
	}
	set, err := data.FromImages([]string{"low", "high"}, images, labels)
	if err == nil {
		set, err = data.WithInput(set, "table", rows)
	}
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	open := func(*ranks.Group, int) (device.Device, error) { return cpu.New(cpu.Options{Threads: 1}) }
	dev, err := open(nil, 1)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	run, err := train.New(train.Spec{Model: "with_table", Batch: 16, Epochs: 12, Out: dir + "/run"},
		train.Deps{Device: dev, Train: set, Val: set})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	if err := run.Train(context.Background()); err != nil {
		log.Fatal(err)
	}
	o := evaluate.Options{Weights: dir + "/run", Images: set, Batch: 16, Open: open}
	report, err := o.Run(context.Background(), nil, io.Discard, io.Discard)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.0f %% of %d images\n", report.Score.Top1, report.Score.Images)
	// Output: 100 % of 64 images
}
