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
)

// Mobile are the options of a net of mobile blocks, as timm's EfficientNet and MobileNetV3 are.
type Mobile struct {
	// Stages are the blocks as timm's arch_def writes them, those of a stage with blanks between:
	// "ir_r1_k3_s2_e6_c24 ir_r2_k3_s1_e3_c24_se0.25". The kinds are ds, dsa, ir, er, cn, uir and mqa; r and s may miss,
	// which means 1. A ds with d1 and those behind it have four times the channels of half the extent, until a stride of
	// 2, which is left out: timm's space2depth.
	Stages []string

	Width float64 // factor of the channels; 0 means 1; timm's channel_multiplier
	// Depth are factors of the blocks, one of each stage or one of all; nil means 1; timm's depth_multiplier.
	Depth      []float64
	RoundDepth bool // numbers of blocks are rounded to the nearest, else up: timm's depth_trunc
	// Limit is the least share of channels that rounding them to a multiple of 8 leaves; 0 means 0.9; timm's round_limit.
	Limit float64

	Act        nn.Activation // of blocks that name none; nil means ReLU; timm's act_layer
	Stem       int           // channels of the first convolution; timm's stem_size
	StemKernel int           // its extent, odd; 0 means 3; timm's stem_kernel_size
	FixStem    bool          // Width leaves Stem as it is: timm's fix_stem

	Last int // channels of the last convolution; 0: there is none; timm's num_features
	// Late convolves the mean of the pixels last, as timm's MobileNetV3 does, else the pixels, as its EfficientNet.
	Late       bool
	Bias, Norm bool // of Late's convolution; timm's head_bias and head_norm

	ExciteWide    bool // se counts from the expanded channels, else from the input's: timm's se_from_exp
	ExciteEight   bool // channels between are multiples of 8: timm's rd_round_fn=round_channels
	ExciteReLU    bool // the activation between is ReLU, else the block's: timm's force_act_layer
	HardGate      bool // the excitation's last activation is the hard sigmoid: timm's gate_layer
	GlobalContext bool // a softmax weighs the excitation's pixels: timm's se_layer="gc"

	// AntiAlias follows convolutions in place of their stride: "avg" is the mean of 2×2 pixels, "blurpc" a blur by 1 2 1
	// in both directions; timm's aa_layer.
	AntiAlias string
	// LayerScale is the initial factor of branches of uir and mqa; 0: they have none; timm's layer_scale_init_value.
	LayerScale float64
	// Fuse is the extent of the last images, of Last channels, which are made of those of the last two stages. Pixels are
	// normalised, and the stem has biases: timm's MobileNetV5 and its msfa_output_resolution. 0: there are none.
	Fuse int
}

// stages reads Stages, each with its number of blocks.
func (o Mobile) stages(b layer) (list [][]mobileSpec) {
	b.options("Mobile", o).least(0, "Width", "Limit", "StemKernel", "Last", "LayerScale", "Fuse").least(1, "Stem").
		that(len(o.Stages) > 0, "Stages", "at least one").
		that(o.Depth == nil || len(o.Depth) == 1 || len(o.Depth) == len(o.Stages), "Depth", "of each stage, or one").
		that(!slices.ContainsFunc(o.Depth, func(d float64) bool { return !(d > 0 && d <= mostFactor) }), "Depth",
			fmt.Sprintf("above 0 and at most %d", mostFactor)).
		that(o.Limit <= 1, "Limit", "at most 1").
		that(o.StemKernel == 0 || o.StemKernel%2 == 1, "StemKernel", "odd, or 0").
		that(o.Late || !o.Bias, "Bias", "false without Late").that(o.Late || !o.Norm, "Norm", "false without Late").
		that(!o.Late && o.Fuse == 0 || o.Last > 0, "Last", "at least 1 with Late or Fuse").
		that(o.Fuse == 0 || !o.Late && len(o.Stages) > 1, "Fuse", "0 with Late, or with one stage").
		that(o.Fuse <= 1024, "Fuse", "at most 1024").
		that(o.AntiAlias == "" || o.AntiAlias == "avg" || o.AntiAlias == "blurpc", "AntiAlias", `"", "avg" or "blurpc"`)
	for i, text := range o.Stages {
		var stage []mobileSpec
		for _, block := range strings.Fields(text) {
			s, err := parseMobile(block)
			if err != nil {
				b.options("Mobile", o).that(false, "Stages", fmt.Sprintf("blocks %v: %q is none", err, block))
			}
			stage = append(stage, s)
		}
		b.options("Mobile", o).that(len(stage) > 0, "Stages", fmt.Sprintf("stages of blocks, but stage %d has none", i))
		if b.Err() != nil {
			return nil
		}
		if o.Depth != nil {
			deepen(stage, o.Depth[i%len(o.Depth)], o.RoundDepth)
		}
		list = append(list, stage)
	}
	return list
}

// channels rounds a number of channels.
func (o Mobile) channels(n float64) int {
	v := eights(n)
	if float64(v) < cmp.Or(o.Limit, .9)*n {
		v += 8
	}
	return v
}

// Build adds the layers to b.
func (o Mobile) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	stages := o.stages(b)
	if b.Err() != nil {
		return nil
	}
	width := cmp.Or(o.Width, 1)
	if o.Act == nil {
		o.Act = (*nn.Builder).ReLU
	}
	in := o.channels(float64(o.Stem) * width)
	if o.FixStem {
		in = o.Stem
	}
	all, done, routed := 0, 0, false
	for _, stage := range stages {
		for _, s := range stage {
			all += s.repeats
		}
	}
	stem := nn.Conv{Filters: in, Kernel: cmp.Or(o.StemKernel, 3), Stride: 2}
	if o.Fuse > 0 {
		stem.Bias = true
		x = o.Act(builder, "conv_stem.act", o.norm(b, "conv_stem.bn", b.conv("conv_stem.conv", x, stem)))
	} else {
		x = b.convNorm([2]string{"conv_stem", "bn1"}, x, stem, o.Act)
	}
	space, before := 0, x
	for i, stage := range stages {
		at := 0
		before = x
		for _, s := range stage {
			s.out = o.channels(float64(s.out) * width)
			if s.from > 0 {
				s.from = o.channels(float64(s.from) * width)
			}
			if s.act == nil {
				s.act = o.Act
			}
			for range s.repeats {
				if at > 0 {
					s.stride = 1
				}
				routed = routed || s.experts > 0
				own := s
				own.toChannels(&space)
				p := mobileBlock{layer: b, net: &o, mobileSpec: own, name: fmt.Sprintf("blocks.%d.%d", i, at), in: in}
				x = p.add(x, b.Config().DropPath*float64(done)/float64(all))
				in, at, done = own.out, at+1, done+1
			}
		}
	}
	if routed {
		b.Order(routingLast)
	}
	switch {
	case o.Fuse > 0:
		x = o.fuse(b, before, x)
	case o.Last > 0 && !o.Late:
		x = b.convNorm([2]string{"conv_head", "bn2"}, x, nn.Conv{Filters: o.Last, Kernel: 1}, o.Act)
	}
	if !o.Late {
		return b.Linear("classifier", b.pooled("dropout", x), b.Config().Classes)
	}
	last := nn.Conv{Filters: o.Last, Kernel: 1, Bias: o.Bias && !o.Norm}
	if x = b.pixel("pool", x); o.Norm {
		x = b.convNorm([2]string{"conv_head", "norm_head"}, x, last, o.Act)
	} else {
		x = o.Act(b.Builder, "act2", b.Conv("conv_head", x, last))
	}
	x = b.Dropout("dropout", b.Flatten("flatten", x), b.Config().Dropout)
	return b.Linear("classifier", x, b.Config().Classes)
}

// norm is a normalisation of channels, or of pixels with Fuse.
func (o Mobile) norm(b layer, name string, x *G.Node) *G.Node {
	if o.Fuse == 0 {
		return b.BatchNorm(name, x, 1)
	}
	return b.perPixel(name, x, func(x *G.Node) *G.Node { return b.RMSNorm(name, x, rowEps) })
}

// fuse joins the images of the last two stages as Fuse says.
func (o Mobile) fuse(b layer, large, small *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	const name = "msfa"
	x := b.Concat(name+".joined", 1, large, b.nearest(name+".nearest", small, large))
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	wide, act := divisible(2*float64(in)), name+".ffn.pw_exp.act"
	x = o.Act(b.Builder, act, o.norm(b, name+".ffn.pw_exp.bn", b.Conv(name+".ffn.pw_exp.conv", x,
		nn.Conv{Filters: wide, Kernel: 1})))
	x = o.norm(b, name+".ffn.pw_proj.bn", b.Conv(name+".ffn.pw_proj.conv", x, nn.Conv{Filters: o.Last, Kernel: 1}))
	if b.Err() != nil {
		return nil
	}
	if s := x.Shape(); s[2]%o.Fuse == 0 && s[3]%o.Fuse == 0 {
		by := [2]int{s[2] / o.Fuse, s[3] / o.Fuse}
		x = b.Apply(name+".pool", op.AvgPool{Kernel: by, Stride: by}, x)
	} else {
		x = b.bilinear(name+".resized", x, o.Fuse, o.Fuse, false)
	}
	return o.norm(b, name+".norm", x)
}

// mobileBlock is a block that is built.
type mobileBlock struct {
	layer
	mobileSpec
	net  *Mobile
	name string
	in   int // channels
}

// add adds the block. Its branch, if it has a shortcut beside it, is dropped with probability drop in Train.
func (p mobileBlock) add(x *G.Node, drop float64) *G.Node {
	if p.Err() != nil {
		return nil
	}
	y := x
	count := float64(cmp.Or(p.from, p.in))
	wide := divisible(count * p.expansion)
	none, one := nn.Activation(nil), []int{1}
	shortcut := p.stride == 1 && p.in == p.out && !p.noskip
	switch p.kind {
	case "cn":
		y = p.part("conv", "bn1", y, p.kernel, nn.Conv{Filters: p.out, Stride: p.stride, Groups: p.groups(p.in, 1)}, p.act)
		shortcut = shortcut && p.skip
	case "ds", "dsa":
		in := p.in
		if p.space == 1 {
			in *= 4
			y = p.part("conv_s2d", "bn_s2d", p.behind("conv_s2d", y, y.Shape()[2]%2, y.Shape()[3]%2), []int{2},
				nn.Conv{Filters: in, Stride: 2}, p.act)
			p.kernel = []int{(p.kernel[0] + 1) / 2}
			if p.kernel[0] == 2 {
				y = p.behind("conv_dw", y, 1, 1)
			}
		}
		c := nn.Conv{Filters: in, Stride: p.stride, Groups: p.groups(in, in)}
		y = p.part("conv_dw", "bn1", y, p.kernel, c, p.act)
		y = p.exciting(y, in)
		act := none
		if p.kind == "dsa" {
			act, shortcut = p.act, false
		}
		y = p.part("conv_pw", "bn2", y, p.end, nn.Conv{Filters: p.out}, act)
	case "ir":
		if p.experts > 0 {
			y = p.conditional(y, wide)
			break
		}
		left := cmp.Or(p.wide, wide)
		y = p.part("conv_pw", "bn1", y, p.start, nn.Conv{Filters: left}, p.act)
		c := nn.Conv{Filters: left, Stride: p.stride, Groups: p.groups(left, left)}
		y = p.part("conv_dw", "bn2", y, p.kernel, c, p.act)
		y = p.part("conv_pwl", "bn3", p.exciting(y, wide), p.end, nn.Conv{Filters: cmp.Or(p.left, p.out)}, none)
	case "er":
		y = p.part("conv_exp", "bn1", y, p.kernel, nn.Conv{Filters: wide, Stride: p.stride, Groups: p.groups(wide, 1)}, p.act)
		y = p.part("conv_pwl", "bn2", p.exciting(y, wide), p.end, nn.Conv{Filters: p.out}, none)
	case "uir":
		if p.start[0] > 0 {
			c := nn.Conv{Filters: p.in, Groups: p.groups(p.in, p.in)}
			if p.kernel[0] == 0 {
				c.Stride = p.stride
			}
			y = p.part("dw_start.conv", "dw_start.bn", y, p.start, c, none)
		}
		y = p.part("pw_exp.conv", "pw_exp.bn", y, one, nn.Conv{Filters: wide}, p.act)
		if p.kernel[0] > 0 {
			c := nn.Conv{Filters: wide, Stride: p.stride, Groups: p.groups(wide, wide)}
			y = p.part("dw_mid.conv", "dw_mid.bn", y, p.kernel, c, p.act)
		}
		y = p.part("pw_proj.conv", "pw_proj.bn", p.exciting(y, wide), one, nn.Conv{Filters: p.out}, none)
		y = p.scaled(y)
	case "mqa":
		y = p.scaled(p.multiQuery(p.net.norm(p.layer, p.name+".norm", x)))
	}
	if !shortcut {
		return y
	}
	return p.residual(p.name, y, x, drop)
}

// behind adds zeros behind the rows and columns of x.
func (p mobileBlock) behind(name string, x *G.Node, rows, columns int) *G.Node {
	if rows+columns == 0 {
		return x
	}
	return p.Pad(p.name+"."+name+".pad", x, make([]int, 4), []int{0, 0, rows, columns})
}

// groups is the number of groups of a convolution: the block's own, if it says their channels, or the usual one.
func (p mobileBlock) groups(channels, usual int) int {
	if p.group == 0 {
		return usual
	}
	if channels%p.group != 0 {
		p.Fail(fmt.Errorf("layer %s: %d channels are no multiple of gs, which is %d", p.name, channels, p.group))
	}
	return channels / p.group
}

// part is a convolution with a kernel of each extent, its normalisation and the activation, unless it is nil. What
// AntiAlias names takes the place of a stride.
func (p mobileBlock) part(conv, norm string, x *G.Node, kernels []int, c nn.Conv, act nn.Activation) *G.Node {
	alias := p.net.AntiAlias
	if c.Stride < 2 {
		alias = ""
	}
	if alias != "" {
		c.Stride = 1
	}
	conv, norm = p.name+"."+conv, p.name+"."+norm
	x = p.net.norm(p.layer, norm, p.mixed(conv, x, kernels, c))
	if act != nil {
		x = act(p.Builder, norm+".activation", x)
	}
	switch alias {
	case "avg":
		return p.AvgPool(conv+".aa", x, 2, 2, 0)
	case "blurpc": // the mean of two and two again
		return p.AvgPool(conv+".aa", p.AvgPool(conv+".aa.first", x, 2, 1, 1), 2, 2, 0)
	}
	return x
}

// mixed is a convolution, or one of each extent for equal parts of the channels, the first with those that remain:
// timm's MixedConv2d. With several groups all are depthwise.
func (p mobileBlock) mixed(name string, x *G.Node, kernels []int, c nn.Conv) *G.Node {
	if len(kernels) == 1 {
		c.Kernel = kernels[0]
		return p.conv(name, x, c)
	}
	if p.Err() != nil {
		return nil
	}
	n, all, from := len(kernels), x.Shape()[1], 0
	var list []*G.Node
	for i, kernel := range kernels {
		in, own := all/n, c
		own.Kernel, own.Filters = kernel, c.Filters/n
		if i == 0 {
			in, own.Filters = all-(n-1)*in, c.Filters-(n-1)*own.Filters
		}
		if c.Groups > 1 {
			own.Groups = in
		}
		part := fmt.Sprintf("%s.%d", name, i)
		list = append(list, p.conv(part, p.Slice(part+".slice", x, 1, from, from+in), own))
		from += in
	}
	return p.Concat(name+".concat", 1, list...)
}

// exciting is squeeze-and-excitation of x, of the given number of channels before pruning, if the block has some.
func (p mobileBlock) exciting(x *G.Node, channels int) *G.Node {
	if p.se == 0 {
		return x
	}
	share, o := p.se, p.net
	if !o.ExciteWide && p.expansion > 0 && p.kind != "ds" && p.kind != "dsa" {
		share /= p.expansion
	}
	if p.space == 1 {
		share /= 4
	}
	act, gate := p.act, nn.Activation((*nn.Builder).Sigmoid)
	if o.ExciteReLU {
		act = (*nn.Builder).ReLU
	}
	if o.HardGate {
		gate = (*nn.Builder).HardSigmoid
	}
	between := float64(channels) * share
	switch {
	case o.GlobalContext:
		return p.globalContext(p.name+".se", x, max(1, int(between+.5)), act, gate)
	case o.ExciteEight:
		between = float64(o.channels(between))
	}
	names := [2]string{p.name + ".se.conv_reduce", p.name + ".se.conv_expand"}
	return p.excite(names, x, cmp.Or(p.between, max(1, int(math.RoundToEven(between)))), act, gate)
}

// multiQuery is attention among the pixels of x, whose heads share keys and values. These are of fewer pixels if
// keysStride is 2.
func (p mobileBlock) multiQuery(x *G.Node) *G.Node {
	name := p.name + ".attn"
	project := func(name string, x *G.Node, channels int) *G.Node {
		return p.conv(name+".proj", x, nn.Conv{Filters: channels, Kernel: 1})
	}
	shared := func(name string) *G.Node {
		y := x
		if p.keysStride > 1 {
			by := nn.Conv{Filters: p.in, Kernel: p.kernel[0], Stride: p.keysStride, Groups: p.in}
			y = p.net.norm(p.layer, name+".norm", p.conv(name+".down_conv", y, by))
		}
		return p.rows(name, project(name, y, p.width))
	}
	q := project(name+".query", x, p.heads*p.width)
	k, v := shared(name+".key"), shared(name+".value")
	rows := p.rows(name+".query", q)
	if p.Err() != nil {
		return nil
	}
	n, all := x.Shape()[0], rows.Shape()[0]
	// The queries of all heads are those of one sequence.
	rows = p.Reshape(name+".heads", rows, all*p.heads, p.width)
	rows = p.Attention(name+".attention", rows, k, v, n, nn.Attention{Heads: 1})
	return project(name+".output", p.image(name, p.Reshape(name+".joined", rows, all, p.heads*p.width), x), p.out)
}

// scaled multiplies the channels of a branch by LayerScale's factors.
func (p mobileBlock) scaled(x *G.Node) *G.Node {
	name := p.name + ".layer_scale"
	if p.net.LayerScale == 0 {
		return x
	}
	return p.Scale(name, x, p.vector(name+".gamma", p.out, p.net.LayerScale))
}

// mobileInit are the initial values of timm's mobile nets: google's, but for attention Glorot's.
func mobileInit(p nn.Param) nn.Init {
	if len(p.Shape) == 2 && strings.HasPrefix(p.Name, "blocks.") { // of experts and their gates
		return p.Init
	}
	if len(p.Shape) == 4 && strings.Contains(p.Name, ".attn.") {
		in, out := p.Shape[1:].Size(), p.Shape[0]*p.Shape[2]*p.Shape[3]
		return nn.Init{Distribution: nn.Uniform, Scale: math.Sqrt(6 / float64(in+out))}
	}
	return google(p)
}
