package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	cifar(nn.Architecture{
		Name:      "wrn28_10",
		Family:    "resnet",
		Summary:   "Wide ResNet-28-10, for CIFAR",
		Reference: "Zagoruyko, Komodakis, Wide residual networks, 2016",
		Build:     WideResNet{Depth: 28, Width: 10}.Build,
	})
}

// WideResNet are the options of a residual net for CIFAR whose blocks normalise first.
type WideResNet struct {
	Depth int // 6n + 4: three stages of n blocks
	Width int // factor of the channels 16, 32, 64; 0 means 1
}

// Build adds the layers to b.
func (o WideResNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, in, n := layer{builder}, 16, (o.Depth-4)/6
	if !b.options("WideResNet", o).least(0, "Depth", "Width").
		that(o.Depth == 6*n+4 && n > 0, "Depth", "6n + 4: 10, 16, 22, …").ok() {
		return nil
	}
	x = b.conv("conv1", x, nn.Conv{Filters: in, Kernel: 3})
	for i := range 3 {
		out := 16 << i * cmp.Or(o.Width, 1)
		for j := range n {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = b.wideBlock(fmt.Sprintf("layer%d.%d", i+1, j), x, in, out, stride)
			in = out
		}
	}
	x = b.GlobalAvgPool("avgpool", b.ReLU("relu", b.BatchNorm("bn1", x, 1)))
	return b.Linear("fc", x, b.Config().Classes)
}

// wideBlock is conv2(dropout(relu(bn2(conv1 a)))) with a = relu(bn1 x), plus x, or a convolution of a where shapes
// differ.
func (b layer) wideBlock(name string, x *G.Node, in, out, stride int) *G.Node {
	a := b.ReLU(name+".relu1", b.BatchNorm(name+".bn1", x, 1))
	y := b.conv(name+".conv1", a, nn.Conv{Filters: out, Kernel: 3, Stride: stride})
	y = b.ReLU(name+".relu2", b.BatchNorm(name+".bn2", y, 1))
	y = b.conv(name+".conv2", b.Dropout(name+".dropout", y, b.Config().Dropout), nn.Conv{Filters: out, Kernel: 3})
	if in != out || stride != 1 {
		x = b.conv(name+".shortcut", a, nn.Conv{Filters: out, Kernel: 1, Stride: stride})
	}
	return b.Add(name+".add", y, x)
}
