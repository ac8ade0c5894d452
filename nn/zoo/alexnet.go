package zoo

import (
	"cmp"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	imageNet(nn.Architecture{
		Name:      "alexnet",
		Family:    "alexnet",
		Summary:   "AlexNet in one tower",
		Reference: "Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014",
		MinSize:   AlexNet{}.minSize(),
		Dropout:   .5,
		Init: func(p nn.Param) nn.Init {
			if len(p.Shape) == 4 { // PyTorch's default
				return nn.FanInUniform(p.Shape[1] * p.Shape[2] * p.Shape[3])
			}
			return p.Init
		},
		Build: AlexNet{}.Build,
	})
}

// AlexNet are the options of a net with five convolutions.
type AlexNet struct {
	Narrow int // divides all channels; 0 means 1
	Pool   int // height and width before the linear layers; 0 means 6
}

// minSize is the smallest input that leaves Pool×Pool pixels: a kernel of 11 has stride 4, three of 3 stride 2.
func (o AlexNet) minSize() int { return 32*cmp.Or(o.Pool, 6) + 31 }

// Build adds the layers to b.
func (o AlexNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("AlexNet", o).least(0, "Narrow", "Pool").that(o.Narrow <= 64, "Narrow", "at most 64")
	if !b.atLeast(x, o.minSize()) {
		return nil
	}
	narrow := cmp.Or(o.Narrow, 1)
	conv := func(name, relu string, filters, kernel, stride int) {
		c := nn.Conv{Filters: filters / narrow, Kernel: kernel, Stride: stride, Pad: min(2, kernel/2), Bias: true}
		x = b.ReLU(relu, b.Conv(name, x, c))
	}
	conv("features.0", "features.1", 64, 11, 4)
	x = b.MaxPool("features.2", x, 3, 2, 0)
	conv("features.3", "features.4", 192, 5, 1)
	x = b.MaxPool("features.5", x, 3, 2, 0)
	conv("features.6", "features.7", 384, 3, 1)
	conv("features.8", "features.9", 256, 3, 1)
	conv("features.10", "features.11", 256, 3, 1)
	x = b.meanTo("avgpool", b.MaxPool("features.12", x, 3, 2, 0), cmp.Or(o.Pool, 6), o.minSize())
	p, hidden := b.Config().Dropout, 4096/narrow
	x = b.Dropout("classifier.0", b.Flatten("flatten", x), p)
	x = b.ReLU("classifier.2", b.Linear("classifier.1", x, hidden))
	x = b.Dropout("classifier.3", x, p)
	x = b.ReLU("classifier.5", b.Linear("classifier.4", x, hidden))
	return b.Linear("classifier.6", x, b.Config().Classes)
}
