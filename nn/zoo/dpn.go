package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	const deviation = 1 / (.0167 * 255)
	mean, std := []float64{124. / 255, 117. / 255, 104. / 255}, []float64{deviation, deviation, deviation}
	small := DPN{Small: true, Stem: 10, Inner: 128, Groups: 32, Blocks: [4]int{3, 4, 12, 3},
		Growth: [4]int{16, 32, 32, 64}}
	split := small
	split.Split = true
	for _, v := range []struct {
		name string
		net  DPN
	}{
		{"68", small},
		{"68b", split},
		{"92", DPN{Stem: 64, Inner: 96, Groups: 32, Blocks: [4]int{3, 4, 20, 3}, Growth: [4]int{16, 32, 24, 128}}},
		{"98", DPN{Stem: 96, Inner: 160, Groups: 40, Blocks: [4]int{3, 6, 20, 3}, Growth: [4]int{16, 32, 32, 128}}},
		{"131", DPN{Stem: 128, Inner: 160, Groups: 40, Blocks: [4]int{4, 8, 28, 3}, Growth: [4]int{16, 32, 32, 128}}},
		{"107", DPN{Stem: 128, Inner: 200, Groups: 50, Blocks: [4]int{4, 8, 20, 3}, Growth: [4]int{20, 64, 64, 128}}},
	} {
		a := nn.Architecture{
			Name:          "dpn" + v.name,
			Family:        "dpn",
			Summary:       "DPN-" + v.name + ", as timm's",
			Reference:     "Chen et al., Dual path networks, 2017",
			Resize:        256,
			Interpolation: bicubic,
			Mean:          mean,
			Std:           std,
			BatchNormEps:  1e-3,
			Block:         `^(features\.conv\d_\d+)\.`,
			Init:          torchInit,
			Build:         v.net.Build,
		}
		if v.name == "68b" {
			a.Resize, a.Mean, a.Std = 235, nil, nil
		}
		imageNet(a)
	}
}

// DPN are the options of a net whose blocks add to some channels, and append others.
type DPN struct {
	Small  bool   // the first convolution is 3×3, and channels are a quarter; timm's small
	Stem   int    // channels of the first convolution; timm's num_init_features
	Inner  int    // channels inside the blocks of the first stage, doubled in each further one; timm's k_r
	Groups int    // of the 3×3 convolutions
	Blocks [4]int // of the stages; timm's k_sec
	Growth [4]int // channels that a block of a stage appends; timm's inc_sec
	Split  bool   // blocks end with a convolution for each kind of channels; timm's b
}

// Build adds the layers to b.
func (o DPN) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	check := b.options("DPN", o).least(1, "Stem", "Inner", "Groups", "Blocks", "Growth").multiple("Inner", "Groups")
	if !check.ok() {
		return nil
	}
	width, stem := 256, nn.Conv{Filters: o.Stem, Kernel: 7, Stride: 2}
	if o.Small {
		width, stem.Kernel = 64, 3
	}
	x = b.bnConv("features.conv1_1", x, stem, (*nn.Builder).ReLU)
	x = b.MaxPool("features.conv1_pool", x, 3, 2, 1)
	for i, n := range o.Blocks {
		var parts []*G.Node // the channels that blocks add to, and those that they appended
		for j := range n {
			s := dpnBlock{inner: o.Inner << i, width: width << i, growth: o.Growth[i], stride: 1}
			if i > 0 && j == 0 {
				s.stride = 2
			}
			parts = o.block(b, fmt.Sprintf("features.conv%d_%d", i+2, j+1), x, parts, s)
			x = b.Concat(fmt.Sprintf("features.conv%d_%d.concat", i+2, j+1), 1, parts...)
		}
	}
	x = b.ReLU("features.conv5_bn_ac.act", b.BatchNorm("features.conv5_bn_ac.bn", x, 1))
	x = b.Dropout("dropout", b.pixel("avgpool", x), b.Config().Dropout)
	return b.Flatten("flatten", b.Conv("classifier", x, nn.Conv{Filters: b.Config().Classes, Kernel: 1, Bias: true}))
}

// dpnBlock are the options of a block.
type dpnBlock struct{ inner, width, growth, stride int }

// block adds to the first of x's parts and appends one. The first block of a stage, which has none, makes them.
func (o DPN) block(b layer, name string, x *G.Node, parts []*G.Node, s dpnBlock) []*G.Node {
	if parts == nil {
		kind := fmt.Sprintf("%s.c1x1_w_s%d", name, s.stride)
		y := b.preConv(kind, x, nn.Conv{Filters: s.width + 2*s.growth, Kernel: 1, Stride: s.stride})
		parts = b.divided(kind, y, s.width)
	}
	y := b.preConv(name+".c1x1_a", x, nn.Conv{Filters: s.inner, Kernel: 1})
	y = b.preConv(name+".c3x3_b", y, nn.Conv{Filters: s.inner, Kernel: 3, Stride: s.stride, Groups: o.Groups})
	var more []*G.Node
	if o.Split {
		y = b.ReLU(name+".c1x1_c.act", b.BatchNorm(name+".c1x1_c.bn", y, 1))
		more = []*G.Node{b.conv(name+".c1x1_c1", y, nn.Conv{Filters: s.width, Kernel: 1}),
			b.conv(name+".c1x1_c2", y, nn.Conv{Filters: s.growth, Kernel: 1})}
	} else {
		y = b.preConv(name+".c1x1_c", y, nn.Conv{Filters: s.width + s.growth, Kernel: 1})
		more = b.divided(name+".c1x1_c", y, s.width)
	}
	all := append([]*G.Node{b.Add(name+".add", parts[0], more[0])}, parts[1:]...)
	return append(all, more[1])
}

// preConv normalises x before a convolution.
func (b layer) preConv(name string, x *G.Node, c nn.Conv) *G.Node {
	return b.conv(name+".conv", b.ReLU(name+".bn.act", b.BatchNorm(name+".bn", x, 1)), c)
}

// divided are the first n channels of x, and the others.
func (b layer) divided(name string, x *G.Node, n int) []*G.Node {
	if b.Err() != nil {
		return make([]*G.Node, 2)
	}
	return []*G.Node{b.Slice(name+".first", x, 1, 0, n), b.Slice(name+".others", x, 1, n, x.Shape()[1])}
}
