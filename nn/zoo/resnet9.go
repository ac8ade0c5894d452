package zoo

import (
	"cmp"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	cifar(nn.Architecture{
		Name:      "resnet9",
		Family:    "resnet",
		Summary:   "ResNet-9, for fast training on CIFAR",
		Reference: "Page, How to train your ResNet, 2018, whose last layer has no bias",
		MinSize:   resNet9Size,
		Build:     ResNet9{}.Build,
	})
}

// ResNet9 are the options of a net of eight convolutions, two pairs of them residual.
type ResNet9 struct {
	Width int // channels of the first convolution, doubled three times; 0 means 64
}

// resNet9Size is the smallest input's: the poolings divide its extent by 2, 2, 2 and 4.
const resNet9Size = 32

// Build adds the layers to b.
func (o ResNet9) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, width := layer{builder}, cmp.Or(o.Width, 64)
	b.options("ResNet9", o).least(0, "Width")
	if !b.atLeast(x, resNet9Size) {
		return nil
	}
	conv := func(name string, x *G.Node, filters int) *G.Node {
		x = b.conv(name+".conv", x, nn.Conv{Filters: filters, Kernel: 3})
		return b.ReLU(name+".relu", b.BatchNorm(name+".bn", x, 1))
	}
	x = conv("prep", x, width)
	for i, name := range []string{"layer1", "layer2", "layer3"} {
		filters := width << (i + 1)
		x = b.MaxPool(name+".pool", conv(name, x, filters), 2, 2, 0)
		if i != 1 {
			y := conv(name+".residual.1", conv(name+".residual.0", x, filters), filters)
			x = b.Add(name+".add", x, y)
		}
	}
	x = b.Flatten("flatten", b.MaxPool("pool", x, 4, 4, 0))
	x = b.Linear("linear", b.Dropout("dropout", x, b.Config().Dropout), b.Config().Classes)
	return b.Map("scale", expr.Arg(0).Scale(.125), x)
}
