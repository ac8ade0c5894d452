package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name, summary string
		size, resize  int
		mean          []float64
		net           VoVNet
	}{
		{"19b_dw", "19-DW", 224, 256, nil, VoVNet{Stem: [3]int{64, 64, 64}, Blocks: [4]int{1, 1, 1, 1}, Layers: 3,
			Depthwise: true}},
		{"39b", "39", 224, 256, nil, VoVNet{Stem: [3]int{64, 64, 128}, Blocks: [4]int{1, 1, 2, 2}, Layers: 5}},
		{"57b", "57", 256, 269, half, VoVNet{Stem: [3]int{64, 64, 128}, Blocks: [4]int{1, 1, 4, 3}, Layers: 5}},
	} {
		v.net.Inner, v.net.Channels = [4]int{128, 160, 192, 224}, [4]int{256, 512, 768, 1024}
		imageNet(nn.Architecture{
			Name:          "ese_vovnet" + v.name,
			Family:        "vovnet",
			Summary:       "VoVNetV2-" + v.summary + ", as timm's",
			Reference:     "Lee, Park, CenterMask: real-time anchor-free instance segmentation, 2020",
			Size:          v.size,
			MinSize:       vovNetSize,
			Resize:        v.resize,
			Interpolation: bicubic,
			Mean:          v.mean,
			Std:           v.mean,
			Block:         timmStage,
			Init:          zeroHeadBias,
			Build:         v.net.Build,
		})
	}
}

// vovNetSize is the smallest input's: three poolings take 2 pixels or more, and halve them at least.
const vovNetSize = 29

// zeroHeadBias lets the biases of the last layer start as 0.
func zeroHeadBias(p nn.Param) nn.Init {
	if p.Name == "head.fc.bias" {
		return nn.Init{}
	}
	return p.Init
}

// VoVNet are the options of a net whose blocks join the results of all their layers.
type VoVNet struct {
	Stem      [3]int // channels of the first convolutions; timm's stem_chs
	Inner     [4]int // channels of the layers of each stage; timm's stage_conv_chs
	Channels  [4]int // of the blocks of each stage; timm's stage_out_chs
	Blocks    [4]int // of each stage; timm's block_per_stage
	Layers    int    // of a block; timm's layer_per_block
	Depthwise bool   // layers are a depthwise convolution and one of 1×1; timm's depthwise
}

// Build adds the layers to b.
func (o VoVNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("VoVNet", o).least(1, "Stem", "Inner", "Channels", "Blocks", "Layers")
	if !b.atLeast(x, vovNetSize) {
		return nil
	}
	x = b.bnConv("stem.0", x, nn.Conv{Filters: o.Stem[0], Kernel: 3, Stride: 2}, (*nn.Builder).ReLU)
	x = o.layer(b, "stem.1", x, nn.Conv{Filters: o.Stem[1], Kernel: 3})
	x = o.layer(b, "stem.2", x, nn.Conv{Filters: o.Stem[2], Kernel: 3, Stride: 2})
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		if i > 0 {
			x = b.poolUp(fmt.Sprintf("stages.%d.pool", i), x, 3)
		}
		for j := range n {
			name, drop := fmt.Sprintf("stages.%d.blocks.%d", i, j), b.Config().DropPathAt(done, all)
			y := o.block(b, name, x, i)
			if j == n-1 {
				y = b.selfExcite(name+".attn", ".fc", y, (*nn.Builder).HardSigmoid)
			}
			y = b.StochasticDepth(name+".drop_path", y, drop)
			if j > 0 {
				y = b.Add(name+".add", y, x)
			}
			x = y
			done++
		}
	}
	return b.byobHead(x)
}

// layer is a convolution, or a depthwise one and one of 1×1, with one normalisation.
func (o VoVNet) layer(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	if !o.Depthwise || b.Err() != nil {
		return b.bnConv(name, x, c, (*nn.Builder).ReLU)
	}
	in := x.Shape()[1]
	x = b.conv(name+".conv_dw", x, nn.Conv{Filters: in, Kernel: c.Kernel, Stride: c.Stride, Groups: in})
	return b.convNorm([2]string{name + ".conv_pw", name + ".bn"}, x, nn.Conv{Filters: c.Filters, Kernel: 1},
		(*nn.Builder).ReLU)
}

// block joins x and the results of its layers, and convolves them by 1×1.
func (o VoVNet) block(b layer, name string, x *G.Node, stage int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	all, inner := []*G.Node{x}, o.Inner[stage]
	if o.Depthwise && x.Shape()[1] != inner {
		x = b.bnConv(name+".conv_reduction", x, nn.Conv{Filters: inner, Kernel: 1}, (*nn.Builder).ReLU)
	}
	for k := range o.Layers {
		x = o.layer(b, fmt.Sprintf("%s.conv_mid.%d", name, k), x, nn.Conv{Filters: inner, Kernel: 3})
		all = append(all, x)
	}
	x = b.Concat(name+".concat", 1, all...)
	return b.bnConv(name+".conv_concat", x, nn.Conv{Filters: o.Channels[stage], Kernel: 1}, (*nn.Builder).ReLU)
}

// selfExcite scales channels by one layer of their means, whose name ends with conv.
func (b layer) selfExcite(name, conv string, x *G.Node, gate nn.Activation) *G.Node {
	if b.Err() != nil {
		return nil
	}
	m := b.Conv(name+conv, b.pixel(name+".mean", x), nn.Conv{Filters: x.Shape()[1], Kernel: 1, Bias: true})
	return b.Scale(name+".scale", x, gate(b.Builder, name+".gate", m))
}
