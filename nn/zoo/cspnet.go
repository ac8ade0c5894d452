package zoo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	focus := CspNet{Block: "dark", StemKernel: 6}
	for _, v := range []struct {
		name, summary string
		resize        int
		interpolation string
		net           CspNet
	}{
		{"cspresnet50", "CSPResNet-50", 288, "", cspResNet(1, 2, .5, 1, [4]int{128, 256, 512, 1024})},
		{"cspresnext50", "CSPResNeXt-50", 288, "", cspResNet(32, 1, 1, .5, [4]int{256, 512, 1024, 2048})},
		{"cspdarknet53", "CSPDarkNet-53", 288, "", darkNet(CspNet{Kind: "csp", DownGrowth: true})},
		{"darknet53", "DarkNet-53", 288, bicubic, darkNet(CspNet{Kind: "dark"})},
		{"darknetaa53", "DarkNet-53 with poolings between stages", 288, "", darkNet(CspNet{Kind: "dark", AvgDown: true})},
		{"cs3darknet_m", "CS3-DarkNet-M", 288, bicubic, cs3Net(.75, .67, 1, CspNet{Block: "dark"})},
		{"cs3darknet_l", "CS3-DarkNet-L", 288, bicubic, cs3Net(1, 1, 1, CspNet{Block: "dark"})},
		{"cs3darknet_x", "CS3-DarkNet-X", 269, bicubic, cs3Net(1.25, 1.33, 1, CspNet{Block: "dark"})},
		{"cs3darknet_focus_s", "CS3-DarkNet-S, large stem", 288, bicubic, cs3Net(.5, .5, 1, focus)},
		{"cs3darknet_focus_m", "CS3-DarkNet-M, large stem", 288, bicubic, cs3Net(.75, .67, 1, focus)},
		{"cs3darknet_focus_l", "CS3-DarkNet-L, large stem", 288, bicubic, cs3Net(1, 1, 1, focus)},
		{"cs3sedarknet_l", "CS3-SE-DarkNet-L", 288, bicubic, cs3Net(1, 1, 1, CspNet{Block: "dark", Excite: .25})},
		{"cs3sedarknet_x", "CS3-SE-DarkNet-X", 288, bicubic, cs3Net(1.25, 1.33, 1, CspNet{Block: "dark", Excite: 1. / 16})},
		{"cs3edgenet_x", "CS3-EdgeNet-X", 288, bicubic, cs3Net(1.25, 1.33, 1.5, CspNet{Block: "edge"})},
		{"cs3se_edgenet_x", "CS3-SE-EdgeNet-X", 269, bicubic, cs3Net(1.25, 1.33, 1.5, CspNet{Block: "edge", Excite: .25})},
	} {
		a := nn.Architecture{
			Name:          v.name,
			Family:        "cspnet",
			Summary:       v.summary + ", as timm's",
			Reference:     "Wang et al., CSPNet: a new backbone that can enhance learning capability of CNN, 2020",
			Size:          256,
			Resize:        v.resize,
			Interpolation: v.interpolation,
			Block:         timmStage,
			Init:          cspNetInit(v.net.Block),
			Build:         v.net.Build,
		}
		if v.name == "cs3darknet_focus_s" {
			a.Mean, a.Std = half, half
		}
		imageNet(a)
	}
}

// cspNetInit are the initial values: blocks begin as their inputs.
func cspNetInit(block string) func(p nn.Param) nn.Init {
	last := cspNetLast[block]
	return func(p nn.Param) nn.Init {
		if strings.Contains(p.Name, ".blocks.") && strings.HasSuffix(p.Name, last) {
			return nn.Init{}
		}
		return normal(.01)(p)
	}
}

// cspNetLast are the ends of the names of factors of a block's last normalisation.
var cspNetLast = map[string]string{"bottle": ".conv3.bn.weight", "dark": ".conv2.bn.weight", "edge": ".conv2.bn.weight"}

// CspNet are the options of a net whose stages split channels in two, and have blocks for one half alone.
type CspNet struct {
	Stem       []int // channels of the first convolutions; timm's out_chs of the stem
	StemKernel int   // 0 means 3; timm's kernel_size
	StemStride int   // 1, 2, or 4 with a pooling
	// Kind is that of the stages: "csp", "cs3" without a convolution behind the blocks, or "dark" without halves: timm's
	// stage_type.
	Kind string
	// Block is "bottle" for 1×1, 3×3 and 1×1 convolutions, "dark" for 1×1 and 3×3, "edge" for 3×3 and 1×1: timm's
	// block_type.
	Block       string
	Stages      []CspStage
	CrossLinear bool    // no activation goes before the halves; timm's cross_linear
	DownGrowth  bool    // the convolution with the stride has the stage's channels, else its input's; timm's down_growth
	AvgDown     bool    // a pooling before a 1×1 convolution takes the stride; timm's avg_down
	Excite      float64 // the share of a block's inner channels of squeeze-and-excitation; 0: none; timm's rd_ratio
	SiLU        bool    // activations, else ReLU that lets a hundredth of negative numbers through; timm's act_layer
}

// CspStage are the options of a stage.
type CspStage struct {
	Blocks, Out, Stride int
	Groups              int     // of blocks' 3×3 convolutions, and of that with the stride; 0 means 1
	Block               float64 // channels of blocks by the stage's; timm's block_ratio
	Bottle              float64 // channels inside blocks by theirs; timm's bottle_ratio
	Expand              float64 // channels of both halves by the stage's; 0 means 1; timm's expand_ratio
}

func cspResNet(groups int, expand, bottle, block float64, out [4]int) CspNet {
	o := CspNet{Stem: []int{64}, StemKernel: 7, StemStride: 4, Kind: "csp", Block: "bottle", CrossLinear: true}
	for i, n := range []int{3, 3, 5, 2} {
		o.Stages = append(o.Stages, CspStage{Blocks: n, Out: out[i], Stride: min(i+1, 2), Groups: groups, Block: block,
			Bottle: bottle, Expand: expand})
	}
	return o
}

func darkNet(o CspNet) CspNet {
	o.Stem, o.StemStride, o.Block = []int{32}, 1, "dark"
	for i, n := range []int{1, 2, 8, 8, 4} {
		s := CspStage{Blocks: n, Out: 64 << i, Stride: 2, Block: 1, Bottle: .5}
		switch {
		case o.Kind == "csp" && i == 0:
			s.Expand = 2
		case o.Kind == "csp":
			s.Block, s.Bottle = .5, 1
		}
		o.Stages = append(o.Stages, s)
	}
	return o
}

func cs3Net(width, depth, bottle float64, o CspNet) CspNet {
	o.Kind, o.StemStride, o.SiLU = "cs3", 2, true
	if o.Stem = []int{divisible(64 * width)}; o.StemKernel == 0 {
		o.Stem = []int{divisible(32 * width), divisible(64 * width)}
	}
	for i, n := range []int{3, 6, 9, 3} {
		out := divisible(float64(int(128)<<i) * width)
		o.Stages = append(o.Stages, CspStage{Blocks: int(float64(n) * depth), Out: out, Stride: 2, Block: .5, Bottle: bottle})
	}
	return o
}

// check reports whether the options are right.
func (o CspNet) check(b layer) bool {
	one := func(s string, of ...string) bool { return slices.Contains(of, s) }
	b.options("CspNet", o).least(1, "Stem").least(0, "StemKernel", "Excite").
		that(o.StemKernel <= 32, "StemKernel", "at most 32").
		that(o.StemStride == 1 || o.StemStride == 2 || o.StemStride == 4, "StemStride", "1, 2 or 4").
		that(one(o.Kind, "csp", "cs3", "dark"), "Kind", `"csp", "cs3" or "dark"`).
		that(one(o.Block, "bottle", "dark", "edge"), "Block", `"bottle", "dark" or "edge"`).
		that(o.Excite <= 1, "Excite", "at most 1").that(len(o.Stages) > 0, "Stages", "at least one")
	for i, s := range o.Stages {
		b.options(fmt.Sprintf("CspNet.Stages[%d]", i), s).least(1, "Blocks", "Out", "Stride").
			least(0, "Groups", "Block", "Bottle", "Expand").that(s.Stride <= 2, "Stride", "1 or 2").
			that(s.Block > 0, "Block", "above 0").that(s.Bottle > 0, "Bottle", "above 0")
	}
	return b.Err() == nil
}

// Build adds the layers to b.
func (o CspNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !o.check(b) {
		return nil
	}
	kernel := cmp.Or(o.StemKernel, 3)
	c := nn.Conv{Kernel: kernel, Stride: min(o.StemStride, 2), Pad: (kernel - 1) / 2}
	for i, n := range o.Stem {
		name := fmt.Sprintf("stem.conv%d", i+1)
		c.Filters = n
		x = o.act(b, name, b.BatchNorm(name+".bn", b.Conv(name+".conv", x, c), 1))
		c.Stride = 1
	}
	if o.StemStride == 4 {
		x = b.MaxPool("stem.pool", x, 3, 2, 1)
	}
	done, all := 0, 0
	for _, s := range o.Stages {
		all += s.Blocks
	}
	for i, s := range o.Stages {
		x = o.stage(b, fmt.Sprintf("stages.%d", i), x, s, done, all)
		done += s.Blocks
	}
	return b.byobHead(x)
}

// act is the activation of the layer name.
func (o CspNet) act(b layer, name string, x *G.Node) *G.Node {
	if o.SiLU {
		return b.SiLU(name+".act", x)
	}
	return leakyReLU(b.Builder, name+".act", x)
}

// leakyReLU lets a hundredth of negative numbers through.
var leakyReLU nn.Activation = func(b *nn.Builder, name string, x *G.Node) *G.Node {
	return b.Map(name, expr.Arg(0).Max(expr.Arg(0).Scale(.01)), x)
}

// conv is a convolution, its normalisation and an activation.
func (o CspNet) conv(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	return o.act(b, name, b.bnConv(name, x, c, nil))
}

// share is a part of a number of channels.
func share(channels int, ratio float64) int { return int(math.RoundToEven(float64(channels) * ratio)) }

// stage are the blocks of a stage, of which all in the net are known and those before it.
func (o CspNet) stage(b layer, name string, x *G.Node, s CspStage, done, all int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	down := nn.Conv{Filters: s.Out, Kernel: 3, Stride: s.Stride, Groups: s.Groups}
	if o.Kind != "dark" && !o.DownGrowth {
		down.Filters = x.Shape()[1]
	}
	switch {
	case o.AvgDown:
		x = b.AvgPool(name+".conv_down.0", x, s.Stride, s.Stride, 0)
		x = o.conv(b, name+".conv_down.1", x, nn.Conv{Filters: s.Out, Kernel: 1, Groups: s.Groups})
	case s.Stride > 1 || o.Kind == "dark":
		x = o.conv(b, name+".conv_down", x, down)
	}
	wide, width := share(s.Out, cmp.Or(s.Expand, 1)), share(s.Out, s.Block)
	blocks := func(x *G.Node) *G.Node {
		for i := range s.Blocks {
			x = o.block(b, fmt.Sprintf("%s.blocks.%d", name, i), x, s, width, b.Config().DropPathAt(done+i, all))
		}
		return x
	}
	if o.Kind == "dark" {
		return blocks(x)
	}
	x = b.bnConv(name+".conv_exp", x, nn.Conv{Filters: wide, Kernel: 1}, nil)
	if !o.CrossLinear {
		x = o.act(b, name+".conv_exp", x)
	}
	halves := b.divided(name+".split", x, wide/2)
	if o.Kind == "cs3" {
		halves[0] = blocks(halves[0])
	} else {
		halves[1] = o.conv(b, name+".conv_transition_b", blocks(halves[1]), nn.Conv{Filters: wide / 2, Kernel: 1})
	}
	return o.conv(b, name+".conv_transition", b.Concat(name+".concat", 1, halves...), nn.Conv{Filters: s.Out, Kernel: 1})
}

// block adds to x convolutions of it.
func (o CspNet) block(b layer, name string, x *G.Node, s CspStage, width int, drop float64) *G.Node {
	inner := share(width, s.Bottle)
	one, three := nn.Conv{Filters: inner, Kernel: 1}, nn.Conv{Filters: inner, Kernel: 3, Groups: s.Groups}
	last := nn.Conv{Filters: width, Kernel: 1}
	if o.Block == "bottle" {
		y := o.conv(b, name+".conv2", o.conv(b, name+".conv1", x, one), three)
		y = b.bnConv(name+".conv3", o.excite(b, name+".attn2", y), last, nil)
		return o.act(b, name, b.pathAdd(name, y, x, drop))
	}
	first := three
	if o.Block == "dark" {
		first, last = one, nn.Conv{Filters: width, Kernel: 3, Groups: s.Groups}
	}
	y := o.excite(b, name+".attn", o.conv(b, name+".conv1", x, first))
	y = b.StochasticDepth(name+".drop_path", o.conv(b, name+".conv2", y, last), drop)
	return b.Add(name+".add", y, x)
}

// excite is the squeeze-and-excitation of a block.
func (o CspNet) excite(b layer, name string, x *G.Node) *G.Node {
	if o.Excite == 0 || b.Err() != nil {
		return x
	}
	act := leakyReLU
	if o.SiLU {
		act = (*nn.Builder).SiLU
	}
	return b.SqueezeExcite(name, x, eights(float64(x.Shape()[1])*o.Excite), act, (*nn.Builder).Sigmoid)
}
