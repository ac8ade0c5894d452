package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	wide, narrow := [6]int{16, 32, 128, 256, 512, 1024}, [6]int{16, 32, 64, 64, 128, 256}
	short, long := [6]int{1, 1, 1, 2, 2, 1}, [6]int{1, 1, 1, 2, 3, 1}
	deep := [6]int{1, 1, 1, 3, 4, 1}
	for _, v := range []struct {
		name, summary string
		net           DLA
	}{
		{"34", "DLA-34", DLA{Levels: short, Channels: [6]int{16, 32, 64, 128, 256, 512}, Basic: true}},
		{"46_c", "DLA-46-C", DLA{Levels: short, Channels: narrow}},
		{"46x_c", "DLA-X-46-C", DLA{Levels: short, Channels: narrow, Groups: 32, GroupWidth: 4}},
		{"60", "DLA-60", DLA{Levels: long, Channels: wide}},
		{"60x", "DLA-X-60", DLA{Levels: long, Channels: wide, Groups: 32, GroupWidth: 4}},
		{"60x_c", "DLA-X-60-C", DLA{Levels: long, Channels: narrow, Groups: 32, GroupWidth: 4}},
		{"60_res2net", "Res2Net-DLA-60", DLA{Levels: long, Channels: wide, GroupWidth: 28, Scale: 4}},
		{"60_res2next", "Res2NeXt-DLA-60", DLA{Levels: long, Channels: wide, Groups: 8, GroupWidth: 4, Scale: 4}},
		{"102", "DLA-102", DLA{Levels: deep, Channels: wide, RootShortcut: true}},
		{"102x", "DLA-X-102", DLA{Levels: deep, Channels: wide, Groups: 32, GroupWidth: 4, RootShortcut: true}},
		{"102x2", "DLA-X-102 64", DLA{Levels: deep, Channels: wide, Groups: 64, GroupWidth: 4, RootShortcut: true}},
		{"169", "DLA-169", DLA{Levels: [6]int{1, 1, 2, 3, 5, 1}, Channels: wide, RootShortcut: true}},
	} {
		imageNet(nn.Architecture{
			Name:      "dla" + v.name,
			Family:    "dla",
			Summary:   v.summary + ", as timm's",
			Reference: "Yu et al., Deep layer aggregation, 2018",
			MinSize:   dlaSize,
			Resize:    256,
			Block:     `^(level[2-5](?:\.tree\d)*)\.`,
			Build:     v.net.Build,
		})
	}
}

// dlaSize is the smallest input's: five strides halve it.
const dlaSize = 32

// DLA are the options of a net whose stages are trees of residual blocks. A root joins the results of its blocks and of
// the trees before it.
type DLA struct {
	Levels   [6]int // convolutions of the first two stages, depths of the trees of the others; timm's levels
	Channels [6]int // of the stages; timm's channels
	Basic    bool   // blocks of two 3×3 convolutions in place of bottlenecks
	Groups   int    // of the 3×3 convolutions of bottlenecks; 0 means 1; timm's cardinality
	// GroupWidth is the number of channels of such a group for 64 of the block's, twice; 0 means 64: timm's base_width.
	GroupWidth   int
	Scale        int  // parts of a bottleneck's inner channels, as nn.ResNet's; 0 means one convolution for all
	RootShortcut bool // a root adds the result of the last block; timm's shortcut_root
}

// Build adds the layers to b.
func (o DLA) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, c := layer{builder}, o.Channels
	b.options("DLA", o).least(1, "Levels", "Channels").least(0, "Groups", "GroupWidth", "Scale").
		that(o.Levels[2] <= 8 && o.Levels[3] <= 8 && o.Levels[4] <= 8 && o.Levels[5] <= 8, "Levels", "at most 8 for trees").
		that(o.Scale != 1 && o.Scale <= 64, "Scale", "0, or from 2 to 64").
		that(!o.Basic || o.Scale == 0, "Scale", "0 with Basic")
	if !b.atLeast(x, dlaSize) {
		return nil
	}
	x = b.norm("base_layer", x, nn.Conv{Filters: c[0], Kernel: 7}, (*nn.Builder).ReLU)
	for i := range 2 {
		for j := range o.Levels[i] {
			conv := nn.Conv{Filters: c[i], Kernel: 3}
			if i == 1 && j == 0 {
				conv.Stride = 2
			}
			names := [2]string{fmt.Sprintf("level%d.%d", i, 3*j), fmt.Sprintf("level%d.%d", i, 3*j+1)}
			x = b.convNorm(names, x, conv, (*nn.Builder).ReLU)
		}
	}
	for i := 2; i < 6; i++ {
		x = o.tree(b, fmt.Sprintf("level%d", i), x, dlaTree{levels: o.Levels[i], out: c[i], stride: 2, root: i > 2}, nil)
	}
	x = b.Dropout("head_drop", b.pixel("avgpool", x), b.Config().Dropout)
	return b.Flatten("flatten", b.Conv("fc", x, nn.Conv{Filters: b.Config().Classes, Kernel: 1, Bias: true}))
}

// dlaTree are the options of a tree of so many levels.
type dlaTree struct {
	levels, out, stride int
	root                bool // the root takes the pooled input, too; timm's level_root
}

// tree is a tree of x. Its root takes the results of others, too.
func (o DLA) tree(b layer, name string, x *G.Node, t dlaTree, others []*G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	bottom := x
	if t.stride > 1 && (t.root || t.levels == 1) {
		bottom = b.MaxPool(name+".downsample", x, t.stride, t.stride, 0)
	}
	if t.root {
		others = append(others, bottom)
	}
	if t.levels > 1 {
		t.levels, t.root = t.levels-1, false
		y := o.tree(b, name+".tree1", x, t, nil)
		t.stride = 1
		return o.tree(b, name+".tree2", y, t, append(others, y))
	}
	shortcut := bottom
	if x.Shape()[1] != t.out {
		shortcut = b.norm(name+".project", bottom, nn.Conv{Filters: t.out, Kernel: 1}, nil)
	}
	first := o.block(b, name+".tree1", x, shortcut, t.out, t.stride)
	second := o.block(b, name+".tree2", first, first, t.out, 1)
	y := b.Concat(name+".root.concat", 1, append([]*G.Node{second, first}, others...)...)
	y = b.bnConv(name+".root", y, nn.Conv{Filters: t.out, Kernel: 1}, nil)
	if o.RootShortcut {
		y = b.Add(name+".root.add", y, second)
	}
	return b.ReLU(name+".root.relu", y)
}

// block adds a shortcut to convolutions of x.
func (o DLA) block(b layer, name string, x, shortcut *G.Node, out, stride int) *G.Node {
	add := func() *G.Node { return shortcut }
	if o.Basic {
		first := nn.Conv{Filters: out, Kernel: 3, Stride: stride}
		return b.residualConvs(name, x, add, first, nn.Conv{Filters: out, Kernel: 3})
	}
	groups := cmp.Or(o.Groups, 1)
	inner := out * cmp.Or(o.GroupWidth, 64) / 64 * groups / 2
	c := nn.Conv{Filters: inner, Kernel: 3, Stride: stride, Groups: groups}
	if o.Scale == 0 {
		return b.residualConvs(name, x, add, nn.Conv{Filters: inner, Kernel: 1}, c, nn.Conv{Filters: out, Kernel: 1})
	}
	y := b.convNorm([2]string{name + ".conv1", name + ".bn1"}, x, nn.Conv{Filters: inner * o.Scale, Kernel: 1},
		(*nn.Builder).ReLU)
	y = o.parts(b, name, y, c)
	y = b.convNorm([2]string{name + ".conv3", name + ".bn3"}, y, nn.Conv{Filters: out, Kernel: 1}, nil)
	return b.ReLU(name+".act", b.Add(name+".add", y, shortcut))
}

// parts convolves all parts of y's channels but the last, as nn.ResNet does.
func (o DLA) parts(b layer, name string, y *G.Node, c nn.Conv) *G.Node {
	c.Pad = 1
	convs := make([]func(*G.Node) *G.Node, o.Scale-1) // all are before the normalisations in the state dict
	for i := range convs {
		convs[i] = b.ConvLater(fmt.Sprintf("%s.convs.%d", name, i), c.Filters, c)
	}
	var done []*G.Node
	for i := range o.Scale {
		part := b.Slice(fmt.Sprintf("%s.part%d", name, i), y, 1, i*c.Filters, (i+1)*c.Filters)
		switch {
		case i == len(convs) && c.Stride > 1:
			part = b.AvgPool(name+".pool", part, 3, c.Stride, 1)
		case i < len(convs):
			if i > 0 && c.Stride == 1 {
				part = b.Add(fmt.Sprintf("%s.add%d", name, i), done[i-1], part)
			}
			part = b.BatchNorm(fmt.Sprintf("%s.bns.%d", name, i), convs[i](part), 1)
			part = b.ReLU(fmt.Sprintf("%s.relu.%d", name, i), part)
		}
		done = append(done, part)
	}
	return b.Concat(name+".concat", 1, done...)
}
