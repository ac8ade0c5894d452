package nn

import G "gorgonia.org/gorgonia"

func init() {
	Register(Architecture{
		Name:      "lenet",
		Family:    "lenet",
		Summary:   "LeNet-5 with ReLU and max-pooling, for digits",
		Reference: "LeCun et al., Gradient-based learning applied to document recognition, 1998",
		Size:      28,
		Channels:  1,
		Classes:   10,
		MinSize:   12,
		Build:     lenet,
	})
}

func lenet(b *Builder, x *G.Node) *G.Node {
	x = b.Conv("conv1", x, Conv{Filters: 6, Kernel: 5, Pad: 2, Bias: true})
	x = b.MaxPool("pool1", b.ReLU("relu1", x), 2, 2, 0)
	x = b.Conv("conv2", x, Conv{Filters: 16, Kernel: 5, Bias: true})
	x = b.MaxPool("pool2", b.ReLU("relu2", x), 2, 2, 0)
	x = b.Flatten("flatten", x)
	x = b.ReLU("relu3", b.Linear("fc1", x, 120))
	x = b.ReLU("relu4", b.Linear("fc2", x, 84))
	return b.Linear("fc3", x, b.Config().Classes)
}
