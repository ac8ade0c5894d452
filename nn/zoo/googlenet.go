package zoo

import (
	"cmp"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	imageNet(nn.Architecture{
		Name:         "googlenet",
		Family:       "googlenet",
		Summary:      "GoogLeNet (Inception v1), without auxiliary heads",
		Reference:    "Szegedy et al., Going deeper with convolutions, 2015",
		BatchNormEps: .001,
		Dropout:      .2,
		MinSize:      googLeNetSize,
		Mean:         half, // torchvision's transform_input
		Std:          half,
		Block:        `^(inception\d[a-e])\.`,
		Init:         spread(.01),
		Build:        GoogLeNet{}.Build,
	})
}

// GoogLeNet are the options of a net of modules whose branches convolve with kernels of several sizes. It has no
// auxiliary heads, torchvision's aux_logits: files of weights may have theirs, which are not read.
type GoogLeNet struct {
	Narrow int // divides all channels; 0 means 1
}

// googLeNetSize is the smallest input's, which the fourth pooling takes as one pixel.
const googLeNetSize = 15

// Build adds the layers to b.
func (o GoogLeNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, narrow := layer{builder}, cmp.Or(o.Narrow, 1)
	b.options("GoogLeNet", o).least(0, "Narrow").that(o.Narrow <= 16, "Narrow", "at most 16")
	if !b.atLeast(x, googLeNetSize) {
		return nil
	}
	x = b.basic("conv1", x, nn.Conv{Filters: 64 / narrow, Kernel: 7, Stride: 2})
	x = b.poolUp("maxpool1", x, 3)
	x = b.basic("conv2", x, nn.Conv{Filters: 64 / narrow, Kernel: 1})
	x = b.basic("conv3", x, nn.Conv{Filters: 192 / narrow, Kernel: 3})
	x = b.poolUp("maxpool2", x, 3)
	for _, m := range []struct {
		name     string
		channels [6]int
		pool     string // behind it
		kernel   int
	}{
		{"3a", [6]int{64, 96, 128, 16, 32, 32}, "", 0},
		{"3b", [6]int{128, 128, 192, 32, 96, 64}, "maxpool3", 3},
		{"4a", [6]int{192, 96, 208, 16, 48, 64}, "", 0},
		{"4b", [6]int{160, 112, 224, 24, 64, 64}, "", 0},
		{"4c", [6]int{128, 128, 256, 24, 64, 64}, "", 0},
		{"4d", [6]int{112, 144, 288, 32, 64, 64}, "", 0},
		{"4e", [6]int{256, 160, 320, 32, 128, 128}, "maxpool4", 2},
		{"5a", [6]int{256, 160, 320, 32, 128, 128}, "", 0},
		{"5b", [6]int{384, 192, 384, 48, 128, 128}, "", 0},
	} {
		for i := range m.channels {
			m.channels[i] /= narrow
		}
		x = b.inception("inception"+m.name, x, m.channels)
		if m.pool != "" {
			x = b.poolUp(m.pool, x, m.kernel)
		}
	}
	return b.Linear("fc", b.pooled("dropout", x), b.Config().Classes)
}

// inception joins a 1×1 convolution of x, two chains of a 1×1 and a 3×3 one, and a max-pooling with a 1×1 one, of these
// channels. torchvision's third branch has a 3×3 convolution, too, in place of the paper's 5×5.
func (b layer) inception(name string, x *G.Node, channels [6]int) *G.Node {
	conv := func(branch string, x *G.Node, filters, kernel int) *G.Node {
		return b.basic(name+".branch"+branch, x, nn.Conv{Filters: filters, Kernel: kernel})
	}
	one := conv("1", x, channels[0], 1)
	three := conv("2.1", conv("2.0", x, channels[1], 1), channels[2], 3)
	five := conv("3.1", conv("3.0", x, channels[3], 1), channels[4], 3)
	pool := conv("4.1", b.MaxPool(name+".branch4.0", x, 3, 1, 1), channels[5], 1)
	return b.Concat(name+".concat", 1, one, three, five, pool)
}

// basic is torchvision's BasicConv2d: the convolution name.conv, the batch normalisation name.bn and a ReLU.
func (b layer) basic(name string, x *G.Node, c nn.Conv) *G.Node {
	return b.bnConv(name, x, c, (*nn.Builder).ReLU)
}

// spread gives convolutions and linear layers weights of a standard deviation. Biases are as nn's. torchvision cuts the
// distribution off at ±2, which is 20 standard deviations or more.
func spread(deviation float64) func(p nn.Param) nn.Init {
	return func(p nn.Param) nn.Init {
		if p.BiasOrNorm {
			return p.Init
		}
		return nn.Init{Distribution: nn.Normal, Scale: deviation}
	}
}
