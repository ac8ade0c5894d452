package nn

import (
	"fmt"

	G "gorgonia.org/gorgonia"
)

func init() {
	for _, r := range []struct {
		depth  int
		blocks [4]int
		block  blockFunc
	}{
		{18, [4]int{2, 2, 2, 2}, basicBlock},
		{34, [4]int{3, 4, 6, 3}, basicBlock},
		{50, [4]int{3, 4, 6, 3}, bottleneck},
		{101, [4]int{3, 4, 23, 3}, bottleneck},
		{152, [4]int{3, 8, 36, 3}, bottleneck},
	} {
		Register(Architecture{
			Name:    fmt.Sprintf("resnet%d", r.depth),
			Summary: fmt.Sprintf("ResNet-%d v1.5, for ImageNet", r.depth),
			Reference: "He et al., Deep residual learning for image recognition, 2016; v1.5: the stride in the 3×3 " +
				"convolution",
			Size:     224,
			Channels: 3,
			Classes:  1000,
			Build: func(b *Builder, x *G.Node) *G.Node {
				return resnet(b, x, r.blocks, r.block)
			},
		})
	}
}

// blockFunc adds a residual block of a stage of the given width.
// drop is the probability of dropping its residual branch in Train.
type blockFunc func(b *Builder, name string, x *G.Node, width, stride int, drop float64) *G.Node

func resnet(b *Builder, x *G.Node, blocks [4]int, block blockFunc) *G.Node {
	x = b.Conv("conv1", x, Conv{Filters: 64, Kernel: 7, Stride: 2, Pad: 3})
	x = b.ReLU("relu", b.BatchNorm("bn1", x, 1))
	x = b.MaxPool("maxpool", x, 3, 2, 1)
	done, all := 0, blocks[0]+blocks[1]+blocks[2]+blocks[3]
	for i, n := range blocks {
		for j := range n {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = block(b, fmt.Sprintf("layer%d.%d", i+1, j), x, 64<<i, stride, b.dropAt(done, all))
			done++
		}
	}
	x = b.Dropout("dropout", b.GlobalAvgPool("avgpool", x), b.Config().Dropout)
	return b.Linear("fc", x, b.Config().Classes)
}

// basicBlock is relu(bn2(conv2(relu(bn1(conv1 x)))) + shortcut x), both convolutions 3×3.
func basicBlock(b *Builder, name string, x *G.Node, width, stride int, drop float64) *G.Node {
	y := b.Conv(name+".conv1", x, Conv{Filters: width, Kernel: 3, Stride: stride, Pad: 1})
	y = b.ReLU(name+".relu1", b.BatchNorm(name+".bn1", y, 1))
	y = b.Conv(name+".conv2", y, Conv{Filters: width, Kernel: 3, Pad: 1})
	y = b.StochasticDepth(name+".drop_path", b.BatchNorm(name+".bn2", y, b.lastScale()), drop)
	x = b.downsample(name, x, width, stride)
	return b.ReLU(name+".relu2", b.Add(name+".add", y, x))
}

// bottleneck reduces the channels to width by a 1×1 convolution, convolves 3×3 and expands to four times the width.
func bottleneck(b *Builder, name string, x *G.Node, width, stride int, drop float64) *G.Node {
	y := b.Conv(name+".conv1", x, Conv{Filters: width, Kernel: 1})
	y = b.ReLU(name+".relu1", b.BatchNorm(name+".bn1", y, 1))
	y = b.Conv(name+".conv2", y, Conv{Filters: width, Kernel: 3, Stride: stride, Pad: 1})
	y = b.ReLU(name+".relu2", b.BatchNorm(name+".bn2", y, 1))
	y = b.Conv(name+".conv3", y, Conv{Filters: 4 * width, Kernel: 1})
	y = b.StochasticDepth(name+".drop_path", b.BatchNorm(name+".bn3", y, b.lastScale()), drop)
	x = b.downsample(name, x, 4*width, stride)
	return b.ReLU(name+".relu3", b.Add(name+".add", y, x))
}

// downsample fits the shortcut to the block's result by a 1×1 convolution where it differs in shape.
func (b *Builder) downsample(name string, x *G.Node, channels, stride int) *G.Node {
	if s, ok := b.shape(name, x, 4); !ok || stride == 1 && s[1] == channels {
		return x
	}
	x = b.Conv(name+".downsample.0", x, Conv{Filters: channels, Kernel: 1, Stride: stride})
	return b.BatchNorm(name+".downsample.1", x, 1)
}

// dropAt is the probability of dropping residual branch i of n.
func (b *Builder) dropAt(i, n int) float64 {
	return b.model.Config.DropPath * float64(i) / float64(max(n-1, 1))
}

// lastScale is the initial scale of a block's last batch normalisation.
func (b *Builder) lastScale() float64 {
	if b.model.Config.ZeroInitResidual {
		return 0
	}
	return 1
}
