package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for depth, blocks := range map[int][5]int{
		11: {1, 1, 2, 2, 2}, 13: {2, 2, 2, 2, 2}, 16: {2, 2, 3, 3, 3}, 19: {2, 2, 4, 4, 4},
	} {
		a := nn.Architecture{
			Name:      fmt.Sprintf("vgg%d", depth),
			Family:    "vgg",
			Summary:   fmt.Sprintf("VGG-%d", depth),
			Reference: "Simonyan, Zisserman, Very deep convolutional networks for large-scale image recognition, 2015",
			MinSize:   VGG{}.minSize(),
			Dropout:   .5,
			Init:      normal(.01),
			Build:     VGG{Blocks: blocks}.Build,
		}
		imageNet(a)
		a.Name, a.Summary = a.Name+"_bn", a.Summary+" with batch normalisation"
		a.Build = VGG{Blocks: blocks, BatchNorm: true}.Build
		imageNet(a)
	}
	cifar(nn.Architecture{
		Name:      "vgg16_bn_cifar",
		Family:    "vgg",
		Summary:   "VGG-16 with batch normalisation and 512 hidden units, for CIFAR",
		Reference: "Simonyan, Zisserman, Very deep convolutional networks for large-scale image recognition, 2015",
		MinSize:   VGG{Pool: 1}.minSize(),
		Dropout:   .5,
		Init:      normal(.01),
		Build:     VGG{Blocks: [5]int{2, 2, 3, 3, 3}, BatchNorm: true, Hidden: 512, Pool: 1}.Build,
	})
}

// VGG are the options of a net of 3×3 convolutions in five stages, each ended by pooling.
type VGG struct {
	Blocks    [5]int // convolutions of the stages
	BatchNorm bool
	Width     int // channels of the first stage, doubled up to the fourth; 0 means 64
	Hidden    int // units of the two hidden layers; 0 means 4096
	Pool      int // height and width before them; 0 means 7
}

// minSize is the smallest input's: five poolings halve it, Pool×Pool pixels stay.
func (o VGG) minSize() int { return 32 * cmp.Or(o.Pool, 7) }

// Build adds the layers to b.
func (o VGG) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("VGG", o).least(1, "Blocks").least(0, "Width", "Hidden", "Pool")
	if !b.atLeast(x, o.minSize()) {
		return nil
	}
	at := -1
	next := func() string { at++; return fmt.Sprintf("features.%d", at) }
	for stage, n := range o.Blocks {
		for range n {
			c := nn.Conv{Filters: cmp.Or(o.Width, 64) << min(stage, 3), Kernel: 3, Pad: 1, Bias: true}
			x = b.Conv(next(), x, c)
			if o.BatchNorm {
				x = b.BatchNorm(next(), x, 1)
			}
			x = b.ReLU(next(), x)
		}
		x = b.MaxPool(next(), x, 2, 2, 0)
	}
	x = b.Flatten("flatten", b.meanTo("avgpool", x, cmp.Or(o.Pool, 7), o.minSize()))
	p, hidden := b.Config().Dropout, cmp.Or(o.Hidden, 4096)
	x = b.ReLU("classifier.1", b.Linear("classifier.0", x, hidden))
	x = b.Dropout("classifier.2", x, p)
	x = b.ReLU("classifier.4", b.Linear("classifier.3", x, hidden))
	x = b.Dropout("classifier.5", x, p)
	return b.Linear("classifier.6", x, b.Config().Classes)
}
