package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for i, v := range []struct {
		resize   int
		channels [4]int
		net      MobileOne
	}{
		{256, [4]int{48, 128, 256, 1024}, MobileOne{Stem: 48, First: 48, Branches: 4}},
		{248, [4]int{96, 192, 512, 1280}, MobileOne{Stem: 64, First: 64}},
		{248, [4]int{96, 256, 640, 2048}, MobileOne{Stem: 64, First: 64}},
		{248, [4]int{128, 320, 768, 2048}, MobileOne{Stem: 64, First: 64}},
		{248, [4]int{192, 448, 896, 2048}, MobileOne{Stem: 64, First: 64, Excite: [4]int{0, 0, 5, 1}}},
	} {
		v.net.Blocks, v.net.Channels = [4]int{2, 8, 10, 1}, v.channels
		imageNet(nn.Architecture{
			Name:      fmt.Sprintf("mobileone_s%d", i),
			Family:    "mobileone",
			Summary:   fmt.Sprintf("MobileOne-S%d in its form for training, as timm's", i),
			Reference: "Vasu et al., MobileOne: an improved one millisecond mobile backbone, 2023",
			Resize:    v.resize,
			Block:     `^(stem|stages\.\d+\.\d+)\.`,
			Init:      byobInit,
			Build:     v.net.Build,
		})
	}
}

// MobileOne are the options of a net of depthwise convolutions, each followed by one of 1×1. Both are sums of branches.
type MobileOne struct {
	Stem     int    // channels of the first block; timm's stem_chs
	First    int    // of the first depthwise convolution
	Blocks   [4]int // pairs of convolutions of the stages
	Channels [4]int // of the stages
	Branches int    // convolutions that a block adds up; 0 means 1; timm's num_conv_branches
	Excite   [4]int // the last pairs of a stage that have squeeze-and-excitation; timm's se_blocks
}

// Build adds the layers to b.
func (o MobileOne) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	check := b.options("MobileOne", o).least(1, "Stem", "First", "Blocks", "Channels").least(0, "Branches", "Excite").
		that(o.Branches <= 64, "Branches", "at most 64")
	if !check.ok() {
		return nil
	}
	x = o.block(b, "stem", x, nn.Conv{Filters: o.Stem, Kernel: 3, Stride: 2}, 1, false, 0)
	in, done, all := o.First, 0, 2*sum(o.Blocks[:])
	for i, n := range o.Blocks {
		for j := range n {
			depthwise := nn.Conv{Filters: in, Kernel: 3, Stride: 1, Groups: in}
			if j == 0 {
				depthwise.Stride = 2
			}
			for k, c := range []nn.Conv{depthwise, {Filters: o.Channels[i], Kernel: 1, Stride: 1}} {
				name, drop := fmt.Sprintf("stages.%d.%d", i, 2*j+k), b.Config().DropPathAt(done, all)
				x = o.block(b, name, x, c, max(o.Branches, 1), j >= n-o.Excite[i], drop)
				done++
			}
			in = o.Channels[i]
		}
	}
	return b.byobHead(x)
}

// block is the sum of convolutions, of a 1×1 one if they are larger, and of the normalised input where they keep the
// shape, each with a normalisation.
func (o MobileOne) block(b layer, name string, x *G.Node, c nn.Conv, branches int, excite bool, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	var identity, y *G.Node
	if c.Stride == 1 && x.Shape()[1] == c.Filters {
		identity = b.BatchNorm(name+".identity", x, 1)
	}
	for k := range branches {
		branch := fmt.Sprintf("%s.conv_kxk.%d", name, k)
		z := b.bnConv(branch, x, c, nil)
		if k > 0 {
			z = b.Add(branch+".add", y, z)
		}
		y = z
	}
	if c.Kernel > 1 {
		c.Kernel = 1
		y = b.Add(name+".conv_scale.add", y, b.bnConv(name+".conv_scale", x, c, nil))
	}
	if identity != nil {
		y = b.residual(name, y, identity, drop)
	}
	if excite {
		y = b.excited(name+".attn", y, 8)
	}
	return b.ReLU(name+".act", y)
}

// excited is a squeeze-and-excitation by a sixteenth of the channels, rounded to a multiple of a divisor.
func (b layer) excited(name string, x *G.Node, divisor int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	narrow := max(divisor, int(float64(x.Shape()[1])/16+float64(divisor)/2)/divisor*divisor)
	return b.SqueezeExcite(name, x, narrow, (*nn.Builder).ReLU, (*nn.Builder).Sigmoid)
}
