package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name, summary string
		net           TResNet
	}{
		{"m", "M", TResNet{Blocks: [4]int{3, 4, 11, 3}}},
		{"l", "L", TResNet{Blocks: [4]int{4, 5, 18, 3}, Width: 1.2}},
		{"xl", "XL", TResNet{Blocks: [4]int{4, 5, 24, 3}, Width: 1.3}},
		{"v2_l", "V2-L", TResNet{Blocks: [4]int{3, 4, 23, 3}, V2: true}},
	} {
		imageNet(nn.Architecture{
			Name:      "tresnet_" + v.name,
			Family:    "tresnet",
			Summary:   "TResNet-" + v.summary + ", with timm's names",
			Reference: "Ridnik et al., TResNet: high performance GPU-dedicated architecture, 2021",
			MinSize:   32,
			Mean:      []float64{0, 0, 0},
			Std:       []float64{1, 1, 1},
			Block:     `^(body\.conv1|body\.layer\d\.\d+)\.`,
			Init:      tResNetInit,
			Build:     v.net.Build,
		})
	}
}

// tResNetInit are the initial values.
func tResNetInit(p nn.Param) nn.Init {
	if len(p.Shape) == 2 {
		return nn.Init{Distribution: nn.Normal, Scale: .01}
	}
	return p.Init
}

// TResNet are the options of a ResNet with blurs in place of strides, whose stem has the pixels of a square of 4×4 as
// channels.
type TResNet struct {
	Blocks [4]int  // of each stage; timm's layers
	Width  float64 // factor of 64 channels within the first stage's blocks, which later stages double; 0 means 1
	V2     bool    // all stages have bottlenecks, else the last two; channels are multiples of 8; timm's v2
}

// Build adds the layers to b.
func (o TResNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	width := int(64 * cmp.Or(o.Width, 1))
	if o.V2 {
		width = width / 8 * 8
	}
	b.options("TResNet", o).least(1, "Blocks").least(0, "Width").
		that(width > 0, "Width", "0, or such that there are channels")
	if !b.atLeast(x, 32) || !b.multipleOf(x, 4) {
		return nil
	}
	s := x.Shape()
	n, c, height, across := s[0], s[1], s[2]/4, s[3]/4
	x = b.Permute("body.s2d", b.Reshape("body.s2d.squares", x, n, c, height, 4, across, 4), 0, 3, 5, 1, 2, 4)
	x = b.Reshape("body.s2d.channels", x, n, 16*c, height, across)
	x = b.bnConv("body.conv1", x, nn.Conv{Filters: width, Kernel: 3}, leakyReLU)
	done, all := 0, sum(o.Blocks[:])
	for i, blocks := range o.Blocks {
		t := tResNetBlock{width: width << i, basic: i < 2 && !o.V2, excite: i < 3, stride: min(i+1, 2)}
		for j := range blocks {
			x = t.add(b, fmt.Sprintf("body.layer%d.%d", i+1, j), x, b.Config().DropPathAt(done, all))
			t.stride = 1
			done++
		}
	}
	return b.byobHead(x)
}

// tResNetBlock is a block.
type tResNetBlock struct {
	width  int // channels within
	basic  bool
	excite bool
	stride int
}

// tResNetLeaky lets a thousandth of negative numbers through.
var tResNetLeaky nn.Activation = func(b *nn.Builder, name string, x *G.Node) *G.Node {
	return b.Map(name, expr.Arg(0).Max(expr.Arg(0).Scale(1e-3)), x)
}

// add adds the block. drop is the probability of dropping its branch in Train.
func (t tResNetBlock) add(b layer, name string, x *G.Node, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	out, share := t.width, 4
	if !t.basic {
		out, share = 4*t.width, 2
	}
	shortcut := x
	if t.stride > 1 {
		shortcut = b.bnConv(name+".downsample.1", b.Pairs(name+".downsample.0", x), nn.Conv{Filters: out, Kernel: 1}, nil)
	} else if x.Shape()[1] != out {
		shortcut = b.bnConv(name+".downsample.0", x, nn.Conv{Filters: out, Kernel: 1}, nil)
	}
	last, three := name+".conv2", nn.Conv{Filters: t.width, Kernel: 3}
	strided := func(conv string, x *G.Node) *G.Node {
		if x = b.bnConv(name+conv, x, three, tResNetLeaky); t.stride > 1 {
			x = b.BlurHalf(name+conv+".aa", x)
		}
		return x
	}
	excited := func(x *G.Node) *G.Node {
		if !t.excite {
			return x
		}
		return b.SqueezeExcite(name+".se", x, max(t.width/share, 64), (*nn.Builder).ReLU,
			(*nn.Builder).Sigmoid)
	}
	y := x
	if t.basic {
		y = b.conv(last+".conv", strided(".conv1", y), three)
		y = excited(b.BatchNorm(last+".bn", y, 0))
	} else {
		last = name + ".conv3"
		y = strided(".conv2", b.bnConv(name+".conv1", y, nn.Conv{Filters: t.width, Kernel: 1}, tResNetLeaky))
		y = b.BatchNorm(last+".bn", b.conv(last+".conv", excited(y), nn.Conv{Filters: out, Kernel: 1}), 0)
	}
	return b.ReLU(name+".act", b.pathAdd(name, y, shortcut, drop))
}
