package nn

import (
	"fmt"

	G "gorgonia.org/gorgonia"
)

func init() {
	for _, depth := range []int{20, 32, 44, 56} {
		Register(Architecture{
			Name:      fmt.Sprintf("resnet%d", depth),
			Family:    "resnet",
			Summary:   fmt.Sprintf("ResNet-%d for CIFAR, shortcuts without parameters", depth),
			Reference: "He et al., Deep residual learning for image recognition, 2016, section 4.2, option A",
			Size:      32,
			Channels:  3,
			Classes:   10,
			Build: func(b *Builder, x *G.Node) *G.Node {
				return cifarResNet(b, x, (depth-2)/6)
			},
		})
	}
}

// cifarResNet has three stages of n blocks, of 16, 32 and 64 channels.
func cifarResNet(b *Builder, x *G.Node, n int) *G.Node {
	x = b.Conv("conv1", x, Conv{Filters: 16, Kernel: 3, Pad: 1})
	x = b.ReLU("relu", b.BatchNorm("bn1", x, 1))
	for i := range 3 {
		for j := range n {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = cifarBlock(b, fmt.Sprintf("layer%d.%d", i+1, j), x, 16<<i, stride, b.Config().DropPathAt(i*n+j, 3*n))
		}
	}
	x = b.Dropout("dropout", b.GlobalAvgPool("avgpool", x), b.Config().Dropout)
	return b.Linear("fc", x, b.Config().Classes)
}

func cifarBlock(b *Builder, name string, x *G.Node, channels, stride int, drop float64) *G.Node {
	y := b.Conv(name+".conv1", x, Conv{Filters: channels, Kernel: 3, Stride: stride, Pad: 1})
	y = b.ReLU(name+".relu1", b.BatchNorm(name+".bn1", y, 1))
	y = b.Conv(name+".conv2", y, Conv{Filters: channels, Kernel: 3, Pad: 1})
	y = b.StochasticDepth(name+".drop_path", b.BatchNorm(name+".bn2", y, b.lastScale()), drop)
	if stride != 1 {
		x = b.Shortcut(name+".shortcut", x, stride, channels)
	}
	return b.ReLU(name+".relu2", b.Add(name+".add", y, x))
}
