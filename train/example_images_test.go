package train_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"log"

	"gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
)

// colours is a net with two convolutions.
func colours(b *nn.Builder, x *gorgonia.Node) *gorgonia.Node {
	for i, filters := range []int{16, 32} {
		x = b.Conv(fmt.Sprint("conv", i), x, nn.Conv{Filters: filters, Kernel: 3, Stride: 2, Pad: 1})
		x = b.ReLU(fmt.Sprint("relu", i), b.BatchNorm(fmt.Sprint("bn", i), x, 1))
	}
	return b.Linear("fc", b.GlobalAvgPool("avgpool", x), b.Config().Classes)
}

// Training on images in memory with a custom net, and the net's prediction for an image.
func Example_images() {
	nn.Register(nn.Architecture{Name: "colours", Size: 16, Channels: 3, Classes: 2, Build: colours})
	var images []image.Image
	var labels []int
	for i := range 64 {
		colour := color.RGBA{uint8(200 * (i % 2)), uint8(i), 60, 255}
		img := image.NewRGBA(image.Rect(0, 0, 16, 16))
		draw.Draw(img, img.Bounds(), image.NewUniform(colour), image.Point{}, draw.Src)
		images, labels = append(images, img), append(labels, i%2)
	}
	set, err := data.FromImages([]string{"blue", "red"}, images, labels)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	run, err := train.New(train.Spec{Model: "colours", Batch: 16, Epochs: 4}, train.Deps{Device: dev, Train: set,
		Val: set})
	if err == nil {
		err = run.Train(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
	p, err := run.Net.Predict(images[1], nil)
	fmt.Println("red:", p[1] > 0.9, err)
	// Output: red: true <nil>
}
