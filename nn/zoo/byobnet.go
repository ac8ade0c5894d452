package zoo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// ByobNet are the options of timm's nets that are put together from blocks: its ByoModelCfg.
type ByobNet struct {
	// Stem are the channels of the first 3×3 convolutions, whose strides are 4 in all, or 2 of one alone: timm's stem_chs.
	Stem      []int
	StemPlain int    // the first convolutions that have no normalisation and no activation: 2 of timm's "quad2"
	StemPool  string // behind them, in place of a stride: "maxpool" of 3×3 pixels, "avg2" of 2×2, or ""; timm's stem_pool
	Stages    []ByobStage
	Last      int  // channels of a last convolution; 0: there is none; timm's num_features
	SiLU      bool // activations, else ReLU; timm's act_layer

	Shortcut  string  // of blocks that change the shape: "conv1x1", "avg" with a pooling, or ""; timm's downsample
	Pool      bool    // a pooling behind 3×3 convolutions takes their stride; timm's aa_layer "avg"
	Attention string  // of channels before the last convolution: "se", "gca", "eca" or ""; timm's attn_layer
	Excite    float64 // the share of channels that "se" has; 0 means 1/16; timm's rd_ratio
	BottleIn  bool    // Ratio is of the input's channels; timm's bottle_in
	Linear    bool    // no activation follows the sum; timm's linear_out
	Extra     bool    // bottlenecks have a second 3×3 convolution; timm's extra_conv
	// EvoNorm is the number of channels of a group whose deviation normalises them, with gates in place of activations;
	// 0: batch normalisation; the group_size of timm's EvoNorm2dS0a.
	EvoNorm int

	// AttentionPool is attention of the mean to the pixels and itself in place of the mean, with places for a grid of the
	// image's size by 32: timm's head_type "attn_abs".
	AttentionPool bool
}

// ByobStage are the blocks of a stage.
type ByobStage struct {
	Kind   string  // "bottle": 1×1, 3×3 and 1×1 convolutions; "basic": 3×3 and 3×3; "edge": 3×3 and 1×1; timm's type
	Blocks int     // timm's d
	Out    int     // channels; timm's c
	Stride int     // of the first block; timm's s
	Group  int     // channels of a group of the 3×3 convolutions; 0: all are one; timm's gs
	Ratio  float64 // channels inside by those of the block; timm's br

	Attention ByobAttention // of some of the blocks
}

// byobNetInit are the initial values: fans are of a group, whose convolutions have as many outputs as inputs.
func byobNetInit(p nn.Param) nn.Init {
	if len(p.Shape) == 4 && strings.HasPrefix(p.Name, "stages.") && strings.Contains(p.Name, ".conv2") {
		return nn.HeNormal(p.Shape[1], p.Shape[2]*p.Shape[3])
	}
	switch {
	case strings.Contains(p.Name, ".self_attn."):
		return p.Init
	case strings.HasSuffix(p.Name, ".mlp_add.fc2.weight"):
		return nn.Init{}
	case strings.HasSuffix(p.Name, ".conv_attn.weight"):
		return nn.Init{Distribution: nn.Normal, Scale: math.Sqrt(2 / float64(p.Shape[1]))}
	case strings.HasPrefix(p.Name, "head.") && len(p.Shape) == 2 && !strings.HasPrefix(p.Name, "head.fc.") &&
		!strings.HasPrefix(p.Name, "head.proj."):
		return nn.Init{Distribution: nn.Normal, Scale: 1 / math.Sqrt(float64(p.Shape[1]))}
	case len(p.Shape) == 3: // along channels
		return p.Init
	}
	return byobInit(p)
}

// check reports whether the options are right.
func (o ByobNet) check(b layer) bool {
	one := func(s string, of ...string) bool { return slices.Contains(of, s) }
	b.options("ByobNet", o).least(1, "Stem").least(0, "StemPlain", "Last", "Excite", "EvoNorm").
		that(o.StemPlain < len(o.Stem), "StemPlain", "below the number of convolutions").
		that(one(o.StemPool, "", "maxpool", "avg2"), "StemPool", `"maxpool", "avg2" or ""`).
		that(one(o.Shortcut, "", "conv1x1", "avg"), "Shortcut", `"conv1x1", "avg" or ""`).
		that(one(o.Attention, "", "se", "gca", "eca"), "Attention", `"se", "gca", "eca" or ""`).
		that(o.Excite <= 1, "Excite", "at most 1").that(len(o.Stages) > 0, "Stages", "at least one")
	for i, s := range o.Stages {
		b.options(fmt.Sprintf("ByobNet.Stages[%d]", i), s).least(1, "Blocks", "Out", "Stride").least(0, "Group", "Ratio").
			that(one(s.Kind, "bottle", "basic", "edge"), "Kind", `"bottle", "basic" or "edge"`).
			that(s.Stride <= 2, "Stride", "1 or 2").that(s.Ratio > 0, "Ratio", "above 0").
			that(s.Attention.Kind == "" || s.Kind == "bottle" && !o.Extra && !o.Pool, "Kind",
				`"bottle", and Extra and Pool false, with Attention`)
		s.Attention.check(b, fmt.Sprintf("ByobNet.Stages[%d]", i), s.Blocks)
	}
	return b.Err() == nil
}

// Build adds the layers to b.
func (o ByobNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !o.check(b) || (o.Shortcut == "avg" || o.AttentionPool) && !b.multipleOf(x, 32) {
		return nil
	}
	x = o.stem(b, x)
	done, all := 0, 0
	for _, s := range o.Stages {
		all += s.Blocks
	}
	for i, s := range o.Stages {
		for j := range s.Blocks {
			if j > 0 {
				s.Stride = 1
			}
			x = o.block(b, fmt.Sprintf("stages.%d.%d", i, j), x, s, s.Attention.has(j), b.Config().DropPathAt(done, all))
			done++
		}
	}
	if o.Last > 0 {
		x = o.convNorm(b, "final_conv", x, nn.Conv{Filters: o.Last, Kernel: 1}, o.act())
	}
	if o.AttentionPool {
		return b.attentionPool("head", x)
	}
	return b.byobHead(x)
}

// act is the activation.
func (o ByobNet) act() nn.Activation {
	if o.SiLU {
		return (*nn.Builder).SiLU
	}
	return (*nn.Builder).ReLU
}

// norm is a normalisation, which starts with a scale, and, unless it is nil, the activation.
func (o ByobNet) norm(b layer, name string, x *G.Node, scale float64, act nn.Activation) *G.Node {
	if o.EvoNorm > 0 && b.Err() == nil {
		b.options("ByobNet", o).that(x.Shape()[1]%o.EvoNorm == 0, "EvoNorm", "a divisor of all channels")
		return b.evoNorm(name, x, x.Shape()[1]/o.EvoNorm, 1e-3, scale, act != nil)
	}
	return b.normThen(name, x, scale, act)
}

// convNorm is a convolution, its normalisation and, unless it is nil, the activation.
func (o ByobNet) convNorm(b layer, name string, x *G.Node, c nn.Conv, act nn.Activation) *G.Node {
	return o.norm(b, name+".bn", b.conv(name+".conv", x, c), 1, act)
}

// stem are the first convolutions.
func (o ByobNet) stem(b layer, x *G.Node) *G.Node {
	c := nn.Conv{Filters: o.Stem[0], Kernel: 3, Stride: 2}
	if len(o.Stem) == 1 {
		return o.convNorm(b, "stem", x, c, o.act())
	}
	for i, n := range o.Stem {
		name := fmt.Sprintf("stem.conv%d", i+1)
		if c.Filters = n; i == len(o.Stem)-1 && o.StemPool == "" {
			c.Stride = 2
		}
		if i < o.StemPlain {
			x = b.conv(name, x, c)
		} else {
			x = o.convNorm(b, name, x, c, o.act())
		}
		c.Stride = 1
	}
	switch o.StemPool {
	case "maxpool":
		x = b.MaxPool("stem.pool", x, 3, 2, 1)
	case "avg2":
		x = b.AvgPool("stem.pool", x, 2, 2, 0)
	}
	return x
}

// block is a block, which begins as its shortcut if it has one. Without one it is never dropped: timm's drop_path would
// leave zeros of a sample.
func (o ByobNet) block(b layer, name string, x *G.Node, s ByobStage, attends bool, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	of := s.Out
	if o.BottleIn {
		of = in
	}
	inner, groups := divisible(float64(of)*s.Ratio), 1
	if s.Group > 0 {
		b.options("ByobNet.Stages", s).that(inner%s.Group == 0, "Group", fmt.Sprintf("a divisor of %d channels", inner))
		groups = inner / s.Group
	}
	shortcut, scale := x, 0.
	if in != s.Out || s.Stride > 1 {
		shortcut, scale = o.shortcut(b, name+".shortcut", x, s)
	}
	wide := nn.Conv{Filters: inner, Kernel: 3, Stride: s.Stride, Groups: groups}
	var last nn.Conv
	switch y := x; s.Kind {
	case "bottle":
		y = o.convNorm(b, name+".conv1_1x1", y, nn.Conv{Filters: inner, Kernel: 1}, o.act())
		last = nn.Conv{Filters: s.Out, Kernel: 1}
		if attends {
			x = o.norm(b, name+".post_attn", s.Attention.add(b, name+".self_attn", y, s.Stride), 1, o.act())
			break
		}
		y = o.pooled(b, name+".conv2_kxk", y, wide)
		if wide.Stride = 1; o.Extra {
			y = o.convNorm(b, name+".conv2b_kxk", y, wide, o.act())
		}
		x = o.attention(b, name+".attn", y)
	case "basic":
		x = o.pooled(b, name+".conv1_kxk", y, nn.Conv{Filters: inner, Kernel: 3, Stride: s.Stride})
		last = nn.Conv{Filters: s.Out, Kernel: 3, Groups: groups}
	default:
		x = o.attention(b, name+".attn", o.pooled(b, name+".conv1_kxk", y, wide))
		last = nn.Conv{Filters: s.Out, Kernel: 1}
	}
	end := name + map[string]string{"bottle": ".conv3_1x1", "basic": ".conv2_kxk", "edge": ".conv2_1x1"}[s.Kind]
	x = o.norm(b, end+".bn", b.conv(end+".conv", x, last), scale, nil)
	if shortcut != nil {
		x = b.residual(name, x, shortcut, drop)
	}
	if o.Linear {
		return x
	}
	return o.act()(b.Builder, name+".act", x)
}

// shortcut fits x to the result of a block, which starts with the scale. It is nil where there is none.
func (o ByobNet) shortcut(b layer, name string, x *G.Node, s ByobStage) (shortcut *G.Node, scale float64) {
	c := nn.Conv{Filters: s.Out, Kernel: 1, Stride: s.Stride}
	switch o.Shortcut {
	case "":
		return nil, 1
	case "avg":
		if s.Stride > 1 {
			x = b.AvgPool(name+".pool", x, 2, 2, 0)
		}
		c.Stride, name = 1, name+".conv"
	}
	return o.convNorm(b, name, x, c, nil), 0
}

// pooled is a convolution with an activation, whose stride a pooling may take.
func (o ByobNet) pooled(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	pool := o.Pool && c.Stride > 1
	if pool {
		c.Stride = 1
	}
	if x = o.convNorm(b, name, x, c, o.act()); pool {
		x = b.AvgPool(name+".aa", x, 2, 2, 0)
	}
	return x
}

// attention scales the channels of x.
func (o ByobNet) attention(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	switch o.Attention {
	case "se":
		narrow := eights(float64(x.Shape()[1]) * cmp.Or(o.Excite, 1./16))
		return b.SqueezeExcite(name, x, narrow, (*nn.Builder).ReLU, (*nn.Builder).Sigmoid)
	case "gca":
		return b.globalContext(name, x, max(1, int(float64(x.Shape()[1])/8+.5)), (*nn.Builder).ReLU, nil)
	case "eca":
		return b.ECA(name, x)
	}
	return x
}

// globalContext adds layers of a weighted mean of the pixels to x, or scales its channels by their gate unless that is
// nil (Cao et al. 2019).
func (b layer) globalContext(name string, x *G.Node, between int, act, gate nn.Activation) *G.Node {
	weights := b.Conv(name+".conv_attn", x, nn.Conv{Filters: 1, Kernel: 1, Bias: true})
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	weights = b.Softmax(name+".softmax", b.Reshape(name+".weights", weights, s[0], s[2]*s[3]))
	weights = b.Reshape(name+".row", weights, s[0], 1, s[2]*s[3])
	m := b.MatMul(name+".context", weights, b.Apply(name+".tokens", op.Tokens{}, x), false)
	m = b.Reshape(name+".pixel", m, s[0], s[1], 1, 1)
	mlp := name + ".mlp_add"
	if gate != nil {
		mlp = name + ".mlp_scale"
	}
	m = b.Conv(mlp+".fc1", m, nn.Conv{Filters: between, Kernel: 1, Bias: true})
	m = b.perPixel(mlp+".norm", m, func(x *G.Node) *G.Node { return b.LayerNorm(mlp+".norm", x, rowEps) })
	m = b.Conv(mlp+".fc2", act(b.Builder, mlp+".act", m), nn.Conv{Filters: s[1], Kernel: 1, Bias: true})
	if gate != nil {
		return b.Scale(name+".scale", x, gate(b.Builder, name+".gate", m))
	}
	return b.Map(name+".add", expr.Arg(0).Add(expr.Arg(1)), x, m)
}

// attentionPool is attention of the mean of the pixels to themselves and the mean, and the last layer.
func (b layer) attentionPool(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	const head = 64 // elements
	s := x.Shape()
	n, c, tokens := s[0], s[1], s[2]*s[3]+1
	if c%head != 0 {
		b.Fail(fmt.Errorf("layer %s: %d channels are not divisible by %d, the elements of a head", name, c, head))
		return nil
	}
	places := b.AddParam(nn.Param{Name: name + ".pos_embed", Shape: op.Shape{tokens, c}})
	x = b.Apply(name+".tokens", op.Tokens{}, x)
	x = b.Concat(name+".all", 1, b.Reduce(name+".mean", x, op.Mean, 1), x)
	x = b.Map(name+".placed", expr.Arg(0).Add(expr.Arg(1)), x, b.Reshape(name+".places", places, 1, tokens, c))
	first := b.Reshape(name+".first", b.Slice(name+".token", x, 1, 0, 1), n, c)
	rows := b.Reshape(name+".rows", x, n*tokens, c)
	q, k, v := b.Linear(name+".q", first, c), b.Linear(name+".k", rows, c), b.Linear(name+".v", rows, c)
	x = b.Attention(name+".attention", q, k, v, n, nn.Attention{Heads: c / head})
	return b.Linear(name+".proj", b.Dropout(name+".drop", x, b.Config().Dropout), b.Config().Classes)
}
