package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

// xceptionSize is the smallest input's: the first two convolutions have no padding.
const xceptionSize = 7

func init() {
	imageNet(nn.Architecture{
		Name:          "legacy_xception",
		Family:        "inception",
		Summary:       "Xception, as timm's",
		Reference:     "Chollet, Xception: deep learning with depthwise separable convolutions, 2017",
		Size:          299,
		MinSize:       xceptionSize,
		Resize:        333,
		Interpolation: bicubic,
		Mean:          half,
		Std:           half,
		Block:         `^(block\d+)\.`,
		Build:         Xception{}.Build,
	})
}

// Xception are the options of a net of depthwise convolutions, each followed by one of 1×1, in residual blocks.
type Xception struct {
	Narrow int // divides all channels; 0 means 1
}

// Build adds the layers to b.
func (o Xception) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, narrow := layer{builder}, cmp.Or(o.Narrow, 1)
	b.options("Xception", o).least(0, "Narrow").that(o.Narrow <= 32, "Narrow", "at most 32")
	if !b.atLeast(x, xceptionSize) {
		return nil
	}
	x = b.Conv("conv1", x, nn.Conv{Filters: 32 / narrow, Kernel: 3, Stride: 2})
	x = b.ReLU("act1", b.BatchNorm("bn1", x, 1))
	x = b.Conv("conv2", x, nn.Conv{Filters: 64 / narrow, Kernel: 3})
	x = b.ReLU("act2", b.BatchNorm("bn2", x, 1))
	for i := range 12 {
		s := xceptionBlock{between: 728 / narrow, out: 728 / narrow, convolutions: 3, stride: 1}
		switch {
		case i < 2:
			s = xceptionBlock{between: 128 << i / narrow, out: 128 << i / narrow, convolutions: 2, stride: 2, bare: i == 0}
		case i == 2:
			s.convolutions, s.stride = 2, 2
		case i == 11:
			s.out, s.convolutions, s.stride = 1024/narrow, 2, 2
		}
		x = b.xception(fmt.Sprintf("block%d", i+1), x, s)
	}
	x = b.ReLU("act3", b.BatchNorm("bn3", b.separated("conv3", x, 1536/narrow), 1))
	x = b.ReLU("act4", b.BatchNorm("bn4", b.separated("conv4", x, 2048/narrow), 1))
	return b.Linear("fc", b.pooled("dropout", x), b.Config().Classes)
}

// xceptionBlock are the options of a block.
type xceptionBlock struct {
	between, out int // channels of its convolutions and of the last
	convolutions int
	stride       int  // of the pooling behind them; 1: there is none
	bare         bool // it starts without a ReLU
}

// xception adds x to the result of a block's convolutions, by a 1×1 convolution where shapes differ.
func (b layer) xception(name string, x *G.Node, s xceptionBlock) *G.Node {
	if b.Err() != nil {
		return nil
	}
	skip, y, at := x, x, 0
	if s.stride > 1 || x.Shape()[1] != s.out {
		skip = b.conv(name+".skip", x, nn.Conv{Filters: s.out, Kernel: 1, Stride: s.stride})
		skip = b.BatchNorm(name+".skipbn", skip, 1)
	}
	next := func() string {
		at++
		return fmt.Sprintf("%s.rep.%d", name, at-1)
	}
	for i := range s.convolutions {
		if i > 0 || !s.bare {
			y = b.ReLU(next(), y)
		}
		channels := s.between
		if i == s.convolutions-1 {
			channels = s.out
		}
		y = b.separated(next(), y, channels)
		y = b.BatchNorm(next(), y, 1)
	}
	if s.stride > 1 {
		y = b.MaxPool(next(), y, 3, s.stride, 1)
	}
	return b.Add(name+".add", y, skip)
}

// separated is a depthwise convolution of 3×3 and one of 1×1.
func (b layer) separated(name string, x *G.Node, channels int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	x = b.conv(name+".conv1", x, nn.Conv{Filters: in, Kernel: 3, Groups: in})
	return b.conv(name+".pointwise", x, nn.Conv{Filters: channels, Kernel: 1})
}
