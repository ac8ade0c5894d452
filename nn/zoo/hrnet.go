package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	small := HRNet{First: 1, FirstWidth: 32, Blocks: 2, Width: 16, Modules: [3]int{1, 1, 1}}
	small2 := HRNet{First: 2, FirstWidth: 64, Blocks: 2, Width: 18, Modules: [3]int{1, 3, 2}}
	whole := func(width int, bare bool) HRNet {
		return HRNet{First: 4, FirstWidth: 64, Blocks: 4, Width: width, Modules: [3]int{1, 4, 3}, NoHeadBias: bare}
	}
	for _, v := range []struct {
		name, summary string
		resize        int
		interpolation string
		net           HRNet
	}{
		{"w18_small", "W18-C-Small-v1", 256, bicubic, small},
		{"w18_small_v2", "W18-C-Small-v2", 256, bicubic, small2},
		{"w18", "W18-C", 235, "", whole(18, false)},
		{"w30", "W30-C", 256, "", whole(30, false)},
		{"w32", "W32-C", 256, "", whole(32, false)},
		{"w40", "W40-C", 256, "", whole(40, false)},
		{"w44", "W44-C", 256, "", whole(44, false)},
		{"w48", "W48-C", 256, "", whole(48, false)},
		{"w64", "W64-C", 256, "", whole(64, false)},
		{"w18_ssld", "W18-C without biases in the head", 235, "", whole(18, true)},
		{"w48_ssld", "W48-C without biases in the head", 235, "", whole(48, true)},
	} {
		imageNet(nn.Architecture{
			Name:          "hrnet_" + v.name,
			Family:        "hrnet",
			Summary:       "HRNet-" + v.summary + ", as timm's",
			Reference:     "Wang et al., Deep high-resolution representation learning for visual recognition, 2020",
			Resize:        v.resize,
			Interpolation: v.interpolation,
			Block:         `^(layer1\.\d+|stage\d\.\d+)\.`,
			Build:         v.net.Build,
		})
	}
}

// HRNet are the options of a net that keeps branches of several resolutions. The second has half the resolution of the
// first and twice its channels, and so forth.
type HRNet struct {
	First, FirstWidth int    // bottlenecks before the branches, and their inner channels
	Blocks            int    // of a branch in a module
	Width             int    // channels of the first branch
	Modules           [3]int // with 2, 3 and 4 branches; timm's num_modules
	NoHeadBias        bool   // convolutions behind the branches have no biases; timm's head_conv_bias=False
	Narrow            int    // divides the channels of the first convolutions and of those behind the branches; 0 means 1
}

// Build adds the layers to b.
func (o HRNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, narrow := layer{builder}, cmp.Or(o.Narrow, 1)
	b.options("HRNet", o).least(1, "First", "FirstWidth", "Blocks", "Width", "Modules").least(0, "Narrow").
		that(o.Narrow <= 32, "Narrow", "at most 32")
	if !b.multipleOf(x, 32) {
		return nil
	}
	stem := nn.Conv{Filters: 64 / narrow, Kernel: 3, Stride: 2}
	x = b.convNorm([2]string{"conv1", "bn1"}, x, stem, (*nn.Builder).ReLU)
	x = b.convNorm([2]string{"conv2", "bn2"}, x, stem, (*nn.Builder).ReLU)
	for i := range o.First {
		x = b.bottleneck(fmt.Sprintf("layer1.%d", i), x, o.FirstWidth)
	}
	branches := []*G.Node{x}
	for i, modules := range o.Modules {
		branches = o.transition(b, fmt.Sprintf("transition%d", i+1), branches, i+2)
		for j := range modules {
			branches = o.module(b, fmt.Sprintf("stage%d.%d", i+2, j), branches)
		}
	}
	for i, y := range branches {
		branches[i] = b.bottleneck(fmt.Sprintf("incre_modules.%d.0", i), y, 32<<i/narrow)
	}
	x = branches[0]
	for i, y := range branches[1:] {
		name := fmt.Sprintf("downsamp_modules.%d", i)
		c := nn.Conv{Filters: 256 << i / narrow, Kernel: 3, Stride: 2, Bias: !o.NoHeadBias}
		x = b.Add(name+".add", y, b.norm(name, x, c, (*nn.Builder).ReLU))
	}
	x = b.norm("final_layer", x, nn.Conv{Filters: 2048 / narrow, Kernel: 1, Bias: !o.NoHeadBias}, (*nn.Builder).ReLU)
	return b.Linear("classifier", b.pooled("head_drop", x), b.Config().Classes)
}

// transition makes n branches of those there are. New ones come from the last.
func (o HRNet) transition(b layer, name string, branches []*G.Node, n int) (list []*G.Node) {
	if b.Err() != nil {
		return make([]*G.Node, n)
	}
	last := branches[len(branches)-1]
	for i := range n {
		c := nn.Conv{Filters: o.Width << i, Kernel: 3}
		at := fmt.Sprintf("%s.%d", name, i)
		switch {
		case i < len(branches) && branches[i].Shape()[1] == c.Filters:
			list = append(list, branches[i])
		case i < len(branches):
			list = append(list, b.norm(at, last, c, (*nn.Builder).ReLU))
		default:
			c.Stride = 2
			list = append(list, b.norm(at+".0", last, c, (*nn.Builder).ReLU))
		}
	}
	return list
}

// module convolves each branch, and adds up the results of all for each.
func (o HRNet) module(b layer, name string, branches []*G.Node) []*G.Node {
	list := make([]*G.Node, len(branches))
	for i, x := range branches {
		for j := range o.Blocks {
			at, c := fmt.Sprintf("%s.branches.%d.%d", name, i, j), nn.Conv{Filters: o.Width << i, Kernel: 3}
			x = b.residualConvs(at, x, func() *G.Node { return x }, c, c)
		}
		list[i] = x
	}
	fused := make([]*G.Node, len(branches))
	for i := range fused {
		for j, x := range list {
			at := fmt.Sprintf("%s.fuse_layers.%d.%d", name, i, j)
			if j > i {
				x = b.norm(at, x, nn.Conv{Filters: o.Width << i, Kernel: 1}, nil)
				x = b.nearest(at+".nearest", x, list[i])
			}
			for k := range i - j {
				c, act := nn.Conv{Filters: o.Width << j, Kernel: 3, Stride: 2}, nn.Activation((*nn.Builder).ReLU)
				if k == i-j-1 {
					c.Filters, act = o.Width<<i, nil
				}
				x = b.norm(fmt.Sprintf("%s.%d", at, k), x, c, act)
			}
			if j > 0 {
				x = b.Add(at+".add", fused[i], x)
			}
			fused[i] = x
		}
		fused[i] = b.ReLU(fmt.Sprintf("%s.fuse_act.%d", name, i), fused[i])
	}
	return fused
}

// bottleneck has four times as many channels as inside.
func (b layer) bottleneck(name string, x *G.Node, inner int) *G.Node {
	shortcut := func() *G.Node {
		if b.Err() != nil || x.Shape()[1] == 4*inner {
			return x
		}
		return b.norm(name+".downsample", x, nn.Conv{Filters: 4 * inner, Kernel: 1}, nil)
	}
	return b.residualConvs(name, x, shortcut, nn.Conv{Filters: inner, Kernel: 1}, nn.Conv{Filters: inner, Kernel: 3},
		nn.Conv{Filters: 4 * inner, Kernel: 1})
}

// residualConvs adds a shortcut, which is made last, to convolutions conv1, conv2, … with a normalisation each. A ReLU
// follows the sum and all convolutions but the last.
func (b layer) residualConvs(name string, x *G.Node, shortcut func() *G.Node, convs ...nn.Conv) *G.Node {
	y := x
	for i, c := range convs {
		act := nn.Activation((*nn.Builder).ReLU)
		if i == len(convs)-1 {
			act = nil
		}
		y = b.convNorm([2]string{fmt.Sprintf("%s.conv%d", name, i+1), fmt.Sprintf("%s.bn%d", name, i+1)}, y, c, act)
	}
	return b.ReLU(name+".act", b.Add(name+".add", y, shortcut()))
}
