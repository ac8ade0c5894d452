package zoo

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for depth, o := range map[int]DenseNet{
		121: {Growth: 32, Blocks: []int{6, 12, 24, 16}, Stem: 64},
		161: {Growth: 48, Blocks: []int{6, 12, 36, 24}, Stem: 96},
		169: {Growth: 32, Blocks: []int{6, 12, 32, 32}, Stem: 64},
		201: {Growth: 32, Blocks: []int{6, 12, 48, 32}, Stem: 64},
	} {
		a := denseNet(o)
		a.Name, a.Summary = fmt.Sprintf("densenet%d", depth), fmt.Sprintf("DenseNet-%d", depth)
		imageNet(a)
	}
	blurred := denseNet(DenseNet{Growth: 32, Blocks: []int{6, 12, 24, 16}, Stem: 64, Deep: true})
	blurred.Name, blurred.Summary = "densenetblur121d", "DenseNet-121 with three first convolutions and a blur, as timm's"
	blurred.Interpolation = bicubic
	imageNet(blurred)
	a := denseNet(DenseNet{Growth: 12, Blocks: []int{16, 16, 16}, Stem: 24, Small: true})
	a.Name, a.Summary = "densenet100_12", "DenseNet-BC-100 of growth 12, for CIFAR"
	cifar(a)
}

func denseNet(o DenseNet) nn.Architecture {
	return nn.Architecture{
		Family:    "densenet",
		Reference: "Huang et al., Densely connected convolutional networks, 2017",
		MinSize:   o.minSize(),
		Block:     `^(features(?:\.denseblock\d+\.denselayer\d+)?)\.(?:conv|norm)[012]\.`, // the stem is one
		Init: func(p nn.Param) nn.Init {
			switch {
			case len(p.Shape) == 4:
				return nn.Init{Distribution: nn.Normal, Scale: math.Sqrt(2 / float64(p.Shape[1:].Size()))}
			case p.Name == "classifier.bias":
				return nn.Init{}
			}
			return p.Init
		},
		Build: o.Build,
	}
}

// DenseNet are the options of a net whose layers see the results of all layers before them in their block. Dropout
// follows a layer's second convolution.
type DenseNet struct {
	Growth int   // channels that a layer makes
	Blocks []int // layers of the blocks
	Stem   int   // channels of the first convolution
	Small  bool  // the first convolution is 3×3 and nothing follows it, for images of CIFAR
	// Deep has three 3×3 convolutions in place of the first, a blur in place of the first pooling's stride, and dropout
	// before the last layer in place of that in blocks: timm's stem_type "deep" with aa_layer BlurPool2d.
	Deep bool
	// Bottleneck is the number of channels that a layer's first convolution makes, divided by Growth; 0 means 4:
	// torchvision's bn_size.
	Bottleneck int
}

// minSize is the smallest input that leaves a pixel: poolings between blocks halve, a large stem rounds quarters up.
func (o DenseNet) minSize() int {
	n := 1 << len(o.Blocks) / 2
	if o.Small {
		return n
	}
	return 4*n - 3
}

// Build adds the layers to b.
func (o DenseNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, channels := layer{builder}, o.Stem
	b.options("DenseNet", o).least(1, "Growth", "Blocks", "Stem").least(0, "Bottleneck").
		that(!o.Small || !o.Deep, "Deep", "false with Small")
	if !b.atLeast(x, o.minSize()) {
		return nil
	}
	switch {
	case o.Small:
		x = b.conv("features.conv0", x, nn.Conv{Filters: channels, Kernel: 3})
	case o.Deep:
		for i, c := range []nn.Conv{{Filters: o.Growth, Kernel: 3, Stride: 2}, {Filters: o.Growth, Kernel: 3},
			{Filters: channels, Kernel: 3}} {
			x = b.conv(fmt.Sprintf("features.conv%d", i), x, c)
			x = b.ReLU(fmt.Sprintf("features.relu%d", i), b.BatchNorm(fmt.Sprintf("features.norm%d", i), x, 1))
		}
		x = b.BlurHalf("features.pool0.1", b.MaxPool("features.pool0.0", x, 3, 1, 1))
	default:
		x = b.conv("features.conv0", x, nn.Conv{Filters: channels, Kernel: 7, Stride: 2})
		x = b.ReLU("features.relu0", b.BatchNorm("features.norm0", x, 1))
		x = b.MaxPool("features.pool0", x, 3, 2, 1)
	}
	for i, n := range o.Blocks {
		for j := range n {
			x = o.layer(b, fmt.Sprintf("features.denseblock%d.denselayer%d", i+1, j+1), x)
		}
		if channels += n * o.Growth; i < len(o.Blocks)-1 {
			channels /= 2
			name := fmt.Sprintf("features.transition%d", i+1)
			x = b.ReLU(name+".relu", b.BatchNorm(name+".norm", x, 1))
			x = b.AvgPool(name+".pool", b.conv(name+".conv", x, nn.Conv{Filters: channels, Kernel: 1}), 2, 2, 0)
		}
	}
	x = b.ReLU("relu", b.BatchNorm("features.norm5", x, 1))
	x = b.GlobalAvgPool("avgpool", x)
	if o.Deep {
		x = b.Dropout("head_drop", x, b.Config().Dropout)
	}
	return b.Linear("classifier", x, b.Config().Classes)
}

// layer adds Growth channels to x.
func (o DenseNet) layer(b layer, name string, x *G.Node) *G.Node {
	y := b.ReLU(name+".relu1", b.BatchNorm(name+".norm1", x, 1))
	y = b.conv(name+".conv1", y, nn.Conv{Filters: cmp.Or(o.Bottleneck, 4) * o.Growth, Kernel: 1})
	y = b.ReLU(name+".relu2", b.BatchNorm(name+".norm2", y, 1))
	y = b.conv(name+".conv2", y, nn.Conv{Filters: o.Growth, Kernel: 3})
	if !o.Deep {
		y = b.Dropout(name+".dropout", y, b.Config().Dropout)
	}
	return b.Concat(name+".concat", 1, x, y)
}
