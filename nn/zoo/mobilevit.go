package zoo

import (
	"cmp"
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name      string
		expansion int
		channels  [5]int
		tokens    [3]int // elements
		last      int
	}{
		{"xxs", 2, [5]int{16, 24, 48, 64, 80}, [3]int{64, 80, 96}, 320},
		{"xs", 4, [5]int{32, 48, 64, 80, 96}, [3]int{96, 120, 144}, 384},
		{"s", 4, [5]int{32, 64, 96, 128, 160}, [3]int{144, 192, 240}, 640},
	} {
		o := MobileViT{Stem: 16, Last: v.last}
		for i, c := range v.channels {
			s := MobileViTStage{Stride: 2, Blocks: 1, Expansion: v.expansion, Out: c}
			switch {
			case i == 0:
				s.Stride = 1
			case i == 1:
				s.Blocks = 3
			default:
				s.Depth, s.Width = []int{2, 4, 3}[i-2], v.tokens[i-2]
			}
			o.Stages = append(o.Stages, s)
		}
		imageNet(o.of(nn.Architecture{
			Name:    "mobilevit_" + v.name,
			Summary: "MobileViT-" + strings.ToUpper(v.name),
			Reference: "Mehta, Rastegari, MobileViT: light-weight, general-purpose, and mobile-friendly vision " +
				"transformer, 2022",
			Resize: 284,
		}))
	}
	for _, percent := range []int{50, 75, 100, 125, 150, 175, 200} {
		o := MobileViT{Stem: 32 * percent / 100, Separable: true}
		for i, c := range []int{64, 128, 256, 384, 512} {
			s := MobileViTStage{Stride: 2, Blocks: 1, Expansion: 2, Out: c * percent / 100}
			switch {
			case i == 0:
				s.Stride = 1
			case i == 1:
				s.Blocks = 2
			default:
				s.Depth, s.Width = []int{2, 4, 3}[i-2], divisible(float64(s.Out)/2)
			}
			o.Stages = append(o.Stages, s)
		}
		imageNet(o.of(nn.Architecture{
			Name:      fmt.Sprintf("mobilevitv2_%03d", percent),
			Summary:   fmt.Sprintf("MobileViT V2, width %g", float64(percent)/100),
			Reference: "Mehta, Rastegari, Separable self-attention for mobile vision transformers, 2022",
			Resize:    288,
		}))
	}
}

// of completes the architecture of the net.
func (o MobileViT) of(a nn.Architecture) nn.Architecture {
	a.Family, a.Summary = "mobilevit", a.Summary+", as timm's"
	a.Size, a.Interpolation = 256, bicubic
	a.Mean, a.Std = []float64{0, 0, 0}, []float64{1, 1, 1}
	a.Block = `^(stages\.\d+\.\d+)\.`
	a.Init, a.Build = byobInit, o.Build
	return a
}

// MobileViT are the options of a net of inverted residuals and of attention among the pixels that have the same place
// in patches of 2×2. Images whose pixels do not fill the patches are resized to those that do.
type MobileViT struct {
	Stem   int // channels of the first convolution; timm's stem_chs
	Stages []MobileViTStage
	Last   int // channels of a last convolution; 0: there is none; timm's num_features
	Heads  int // of attention; 0 means 4; timm's num_heads

	// Separable weighs the keys of a patch's place by one softmax, as MobileViT V2 does, in place of attention with heads,
	// and leaves out the convolution that fuses its result with its input: timm's mobilevit2 in place of its mobilevit.
	Separable bool
}

// MobileViTStage are inverted residuals and, unless Depth is 0, a block of attention behind them.
type MobileViTStage struct {
	Stride    int // of the first residual, 1 or 2; timm's s
	Blocks    int // residuals; timm's d
	Expansion int // channels between by those of the input; timm's br
	Out       int // channels; timm's c
	Depth     int // transformer's blocks; timm's transformer_depth
	Width     int // elements of a token, divided equally among the heads; timm's transformer_dim
}

// mobileViTEps is added to the variances of layer and group normalisations.
const mobileViTEps = 1e-5

// check reports whether the options are right.
func (o MobileViT) check(b layer) bool {
	b.options("MobileViT", o).least(1, "Stem").least(0, "Last", "Heads").
		that(len(o.Stages) > 0, "Stages", "at least one")
	for i, s := range o.Stages {
		b.options(fmt.Sprintf("MobileViT.Stages[%d]", i), s).least(1, "Stride", "Blocks", "Expansion", "Out").
			least(0, "Depth", "Width").that(s.Stride <= 2, "Stride", "1 or 2").
			that((s.Depth > 0) == (s.Width > 0), "Width", "at least 1 with Depth, else 0").
			that(o.Separable || s.Width%max(o.Heads, 1) == 0, "Width", fmt.Sprintf("divisible by Heads, which is %d", o.Heads))
	}
	return b.Err() == nil
}

// Build adds the layers to b.
func (o MobileViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Heads = cmp.Or(o.Heads, 4)
	if !o.check(b) {
		return nil
	}
	x = b.bnConv("stem", x, nn.Conv{Filters: o.Stem, Kernel: 3, Stride: 2}, (*nn.Builder).SiLU)
	in, done, all := o.Stem, 0, 0
	for _, s := range o.Stages {
		all += s.Blocks + min(s.Depth, 1)
	}
	next := func() float64 { // the probability of dropping the next block's branches
		done++
		return b.Config().DropPathAt(done-1, all)
	}
	for i, s := range o.Stages {
		for j := range s.Blocks {
			x = o.residual(b, fmt.Sprintf("stages.%d.%d", i, j), x, in, s, next())
			in, s.Stride = s.Out, 1
		}
		name := fmt.Sprintf("stages.%d.%d", i, s.Blocks)
		switch {
		case s.Depth > 0 && o.Separable:
			x = o.separable(b, name, x, s, next())
		case s.Depth > 0:
			x = o.attention(b, name, x, s, next())
		}
	}
	if o.Last > 0 {
		x = b.bnConv("final_conv", x, nn.Conv{Filters: o.Last, Kernel: 1}, (*nn.Builder).SiLU)
	}
	return b.byobHead(x)
}

// residual is an inverted residual. It adds x where it keeps the shape, and begins as x there.
func (o MobileViT) residual(b layer, name string, x *G.Node, in int, s MobileViTStage, drop float64) *G.Node {
	wide, scale := divisible(float64(in*s.Expansion)), 1.
	adds := s.Stride == 1 && in == s.Out
	if adds {
		scale = 0
	}
	y := b.bnConv(name+".conv1_1x1", x, nn.Conv{Filters: wide, Kernel: 1}, (*nn.Builder).SiLU)
	deep := nn.Conv{Filters: wide, Kernel: 3, Stride: s.Stride, Groups: wide}
	y = b.bnConv(name+".conv2_kxk", y, deep, (*nn.Builder).SiLU)
	y = b.BatchNorm(name+".conv3_1x1.bn", b.conv(name+".conv3_1x1.conv", y, nn.Conv{Filters: s.Out, Kernel: 1}), scale)
	if !adds {
		return y
	}
	return b.residual(name, y, x, drop)
}

// attention is a transformer between convolutions, the last of which takes x, too.
func (o MobileViT) attention(b layer, name string, x *G.Node, s MobileViTStage, drop float64) *G.Node {
	y := b.bnConv(name+".conv_kxk", x, nn.Conv{Filters: s.Out, Kernel: 3}, (*nn.Builder).SiLU)
	y = b.conv(name+".conv_1x1", y, nn.Conv{Filters: s.Width, Kernel: 1})
	if b.Err() != nil {
		return nil
	}
	before := y.Shape()
	y = b.bilinear(name+".fill", y, even(before[2]), even(before[3]), false)
	if b.Err() != nil {
		return nil
	}
	n, height, width := before[0], y.Shape()[2], y.Shape()[3]
	y = b.apart(name, y)
	for k := range s.Depth {
		y = o.block(b, fmt.Sprintf("%s.transformer.%d", name, k), y, n, s.Width, drop)
	}
	y = b.together(name, b.LayerNorm(name+".norm", y, mobileViTEps), n, height, width)
	y = b.bilinear(name+".restore", y, before[2], before[3], false)
	y = b.bnConv(name+".conv_proj", y, nn.Conv{Filters: s.Out, Kernel: 1}, (*nn.Builder).SiLU)
	y = b.Concat(name+".concat", 1, x, y)
	return b.bnConv(name+".conv_fusion", y, nn.Conv{Filters: s.Out, Kernel: 3}, (*nn.Builder).SiLU)
}

// block is a transformer's for the rows x of n images, which are four sequences each. It drops whole images.
func (o MobileViT) block(b layer, name string, x *G.Node, n, width int, drop float64) *G.Node {
	y := b.Linear(name+".attn.qkv", b.LayerNorm(name+".norm1", x, mobileViTEps), 3*width)
	y = b.Linear(name+".attn.proj", b.SelfAttention(name+".attention", y, 4*n, o.Heads), width)
	x = b.rowResidual(name+".drop_path1", y, x, n, drop)
	y = b.Linear(name+".mlp.fc1", b.LayerNorm(name+".norm2", x, mobileViTEps), 2*width)
	y = b.Linear(name+".mlp.fc2", b.SiLU(name+".mlp.act", y), width)
	return b.rowResidual(name+".drop_path2", y, x, n, drop)
}

// separable is a transformer of separable attention between convolutions. Its images are four rows of pixels, one for
// each place in a patch.
func (o MobileViT) separable(b layer, name string, x *G.Node, s MobileViTStage, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	x = b.bilinear(name+".fill", x, even(x.Shape()[2]), even(x.Shape()[3]), true)
	deep := nn.Conv{Filters: s.Out, Kernel: 3, Groups: s.Out}
	x = b.bnConv(name+".conv_kxk", x, deep, (*nn.Builder).SiLU)
	x = b.conv(name+".conv_1x1", x, nn.Conv{Filters: s.Width, Kernel: 1})
	if b.Err() != nil {
		return nil
	}
	n, height, width := x.Shape()[0], x.Shape()[2], x.Shape()[3]
	x = b.Reshape(name+".sequences", b.apart(name, x), n, height*width, s.Width)
	x = b.Apply(name+".places", op.Planes{Height: 4, Width: height * width / 4}, x)
	point := func(name string, x *G.Node, out int) *G.Node {
		return b.Conv(name, x, nn.Conv{Filters: out, Kernel: 1, Bias: true})
	}
	for k := range s.Depth {
		name := fmt.Sprintf("%s.transformer.%d", name, k)
		y := point(name+".attn.qkv_proj", b.GroupNorm(name+".norm1", x, 1, mobileViTEps), 1+2*s.Width)
		y = point(name+".attn.out_proj", b.weighed(name+".attn", y), s.Width)
		x = b.Add(name+".add1", b.StochasticDepth(name+".drop_path1", y, drop), x)
		y = point(name+".mlp.fc1", b.GroupNorm(name+".norm2", x, 1, mobileViTEps), 2*s.Width)
		y = point(name+".mlp.fc2", b.SiLU(name+".mlp.act", y), s.Width)
		x = b.Add(name+".add2", b.StochasticDepth(name+".drop_path2", y, drop), x)
	}
	x = b.together(name, b.rows(name+".norm", b.GroupNorm(name+".norm", x, 1, mobileViTEps)), n, height, width)
	return b.bnConv(name+".conv_proj", x, nn.Conv{Filters: s.Out, Kernel: 1}, nil)
}

// weighed multiplies values above 0 by the mean of a row's keys, whose weights are the softmax of its queries:
// [N,1+2C,4,T] holds queries of one channel, keys and values.
func (b layer) weighed(name string, qkv *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := qkv.Shape()
	n, c, rows, t := s[0], s[1]/2, s[2], s[3]
	w := b.Reshape(name+".scores", b.Slice(name+".queries", qkv, 1, 0, 1), n*rows, t)
	w = b.Reshape(name+".weights", b.Softmax(name+".softmax", w), n, 1, rows, t)
	keys := b.Scale(name+".weighed", b.Slice(name+".keys", qkv, 1, 1, 1+c), w)
	mean := b.Reduce(name+".mean", keys, op.Sum, 3)
	values := b.ReLU(name+".relu", b.Slice(name+".values", qkv, 1, 1+c, 1+2*c))
	return b.Map(name+".scale", expr.Arg(0).Mul(expr.Arg(1)), values, mean)
}

// apart are rows of the pixels of x [N,C,H,W]: an image's are those of the first place of all its patches of 2×2
// pixels, then those of the second, and so on.
func (b layer) apart(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	x = b.Apply(name+".tokens", op.Tokens{}, x)
	x = b.Reshape(name+".patches", x, s[0], s[2]/2, 2, s[3]/2, 2, s[1])
	return b.Reshape(name+".rows", b.Permute(name+".apart", x, 0, 2, 4, 1, 3, 5), s[0]*s[2]*s[3], s[1])
}

// together is the reverse of apart, for n images.
func (b layer) together(name string, rows *G.Node, n, height, width int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := rows.Shape()[1]
	x := b.Reshape(name+".unstacked", rows, n, 2, 2, height/2, width/2, c)
	x = b.Reshape(name+".pixels", b.Permute(name+".together", x, 0, 3, 1, 4, 2, 5), n, height*width, c)
	return b.Apply(name+".planes", op.Planes{Height: height, Width: width}, x)
}

// even is n or the number behind it.
func even(n int) int { return n + n%2 }
