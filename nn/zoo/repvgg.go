package zoo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	a, b := [4]int{2, 4, 14, 1}, [4]int{4, 6, 16, 1}
	for _, v := range []struct {
		name string
		net  RepVGG
	}{
		{"a0", RepVGG{Stem: 48, Blocks: a, Channels: [4]int{48, 96, 192, 1280}}},
		{"a1", RepVGG{Stem: 64, Blocks: a, Channels: [4]int{64, 128, 256, 1280}}},
		{"a2", RepVGG{Stem: 64, Blocks: a, Channels: [4]int{96, 192, 384, 1408}}},
		{"b0", RepVGG{Stem: 64, Blocks: b, Channels: [4]int{64, 128, 256, 1280}}},
		{"b1", RepVGG{Stem: 64, Blocks: b, Channels: [4]int{128, 256, 512, 2048}}},
		{"b1g4", RepVGG{Stem: 64, Blocks: b, Channels: [4]int{128, 256, 512, 2048}, Groups: 4}},
		{"b2", RepVGG{Stem: 64, Blocks: b, Channels: [4]int{160, 320, 640, 2560}}},
		{"b2g4", RepVGG{Stem: 64, Blocks: b, Channels: [4]int{160, 320, 640, 2560}, Groups: 4}},
		{"b3", RepVGG{Stem: 64, Blocks: b, Channels: [4]int{192, 384, 768, 2560}}},
		{"b3g4", RepVGG{Stem: 64, Blocks: b, Channels: [4]int{192, 384, 768, 2560}, Groups: 4}},
		{"d2se", RepVGG{Stem: 64, Blocks: [4]int{8, 14, 24, 1}, Channels: [4]int{160, 320, 640, 2560}, Excite: true}},
	} {
		a := nn.Architecture{
			Name:      "repvgg_" + v.name,
			Family:    "vgg",
			Summary:   "RepVGG-" + strings.ToUpper(v.name[:2]) + v.name[2:] + " in its form for training, as timm's",
			Reference: "Ding et al., RepVGG: making VGG-style ConvNets great again, 2021",
			Resize:    256,
			Block:     `^(stem|stages\.\d+\.\d+)\.`,
			Init:      v.net.initial,
			Build:     v.net.Build,
		}
		if v.net.Excite {
			a.Size, a.Resize = 320, 320
		}
		imageNet(a)
	}
}

// RepVGG are the options of a net whose blocks are the sums of a 3×3 convolution, a 1×1 one and the input.
type RepVGG struct {
	Stem     int    // channels of the first block; timm's stem_chs
	Blocks   [4]int // of the stages; timm's d
	Channels [4]int // of the stages; timm's c
	Groups   int    // of every second block's convolutions; 0 means 1; timm's gs gives their size
	Excite   bool   // a squeeze-and-excitation follows the sum; timm's attn_layer "se" with rd_ratio=1/16, rd_divisor=1
}

// Build adds the layers to b.
func (o RepVGG) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, groups := layer{builder}, cmp.Or(o.Groups, 1)
	check := b.options("RepVGG", o).least(1, "Stem", "Blocks", "Channels").least(0, "Groups").
		that(!slices.ContainsFunc(o.Channels[:], func(n int) bool { return n%max(groups, 1) != 0 }), "Channels",
			fmt.Sprintf("divisible by Groups, which is %d", o.Groups))
	if !check.ok() {
		return nil
	}
	x = o.block(b, "stem", x, nn.Conv{Filters: o.Stem, Stride: 2}, 0)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		for j := range n {
			c := nn.Conv{Filters: o.Channels[i], Stride: 1}
			if j == 0 {
				c.Stride = 2
			}
			if j%2 == 1 {
				c.Groups = groups
			}
			drop := b.Config().DropPathAt(done, all)
			x = o.block(b, fmt.Sprintf("stages.%d.%d", i, j), x, c, drop)
			done++
		}
	}
	return b.byobHead(x)
}

// block is a block of two convolutions, to which it adds the normalised input where they keep the shape.
func (o RepVGG) block(b layer, name string, x *G.Node, c nn.Conv, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	var identity *G.Node
	if c.Stride == 1 && x.Shape()[1] == c.Filters {
		identity = b.BatchNorm(name+".identity", x, 1)
	}
	c.Kernel = 3
	y := b.bnConv(name+".conv_kxk", x, c, nil)
	c.Kernel = 1
	y = b.Add(name+".sum", b.bnConv(name+".conv_1x1", x, c, nil), y)
	if identity != nil {
		y = b.residual(name, y, identity, drop)
	}
	if o.Excite {
		y = b.excited(name+".attn", y, 1)
	}
	return b.ReLU(name+".act", y)
}

// initial is the initial distribution of a parameter.
func (o RepVGG) initial(p nn.Param) nn.Init {
	var stage, block int
	_, err := fmt.Sscanf(p.Name, "stages.%d.%d.", &stage, &block)
	switch {
	case len(p.Shape) == 4 && err == nil && block%2 == 1: // of groups
		return nn.HeNormal(p.Shape[0]/cmp.Or(o.Groups, 1), p.Shape[2]*p.Shape[3])
	case strings.Contains(p.Name, ".attn."):
		return normal(.01)(p)
	case len(p.Shape) == 1 && strings.HasSuffix(p.Name, ".weight"):
		return nn.Init{Distribution: nn.Normal, Scale: .1, Mean: .1}
	case len(p.Shape) == 1 && !strings.HasPrefix(p.Name, "head."):
		return nn.Init{Distribution: nn.Normal, Scale: .1}
	}
	return normal(.01)(p)
}
