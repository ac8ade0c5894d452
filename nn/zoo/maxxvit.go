package zoo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	const (
		maxViT  = "Tu et al., MaxViT: multi-axis vision transformer, 2022"
		coAtNet = "Dai et al., CoAtNet: marrying convolution and attention for all data sizes, 2021"
	)
	tiny, small, medium := [4]int{32, 64, 128, 256}, [4]int{64, 128, 256, 512}, [4]int{96, 192, 384, 768}
	large, huge := [4]int{128, 256, 512, 1024}, [4]int{192, 384, 768, 1536}
	short, deep := [4]int{2, 2, 5, 2}, [4]int{2, 6, 14, 2}
	nets := []maxxViTNet{}
	for _, v := range []struct {
		name     string
		channels [4]int
		blocks   [4]int
		stem     int
	}{
		{"tiny", small, short, 64}, {"small", medium, short, 64}, {"base", medium, deep, 64},
		{"large", large, deep, 128}, {"xlarge", huge, deep, 192},
	} {
		net := MaxxViT{Channels: v.channels, Blocks: v.blocks, Stem: [2]int{v.stem, v.stem}, TF: true, Hidden: v.channels[3]}
		nets = append(nets, maxxViTNet{"maxvit_" + v.name + "_tf", maxViT, []int{224, 384, 512}, net})
	}
	stem, wide := [2]int{32, 64}, [2]int{64, 128}
	coat := func(channels, blocks [4]int, stem [2]int) MaxxViT {
		return MaxxViT{Channels: channels, Blocks: blocks, Stem: stem, CoAtNet: true, PreNormAct: true, NoConvBias: true}
	}
	max := func(channels, blocks [4]int, stem [2]int) MaxxViT {
		return MaxxViT{Channels: channels, Blocks: blocks, Stem: stem, Excite: 1. / 16, NoConvBias: true}
	}
	next := func(channels, blocks [4]int, stem [2]int) MaxxViT {
		return MaxxViT{Channels: channels, Blocks: blocks, Stem: stem, ConvNeXt: true, ConvScale: 1e-6, LayerScale: 1e-6}
	}
	byNet := func(o MaxxViT, hidden int) MaxxViT {
		o.BiasHidden, o.BiasDropout = hidden, .125
		return o
	}
	early := func(o MaxxViT) MaxxViT {
		o.ExciteReLU, o.EarlyExcite, o.NoShortcutBias = true, true, true
		return o
	}
	nano, one := [4]int{3, 4, 6, 3}, [4]int{1, 2, 3, 1}
	nanoCoat := MaxxViT{Channels: small, Blocks: nano, Stem: stem, CoAtNet: true}
	nanoPool := nanoCoat
	nanoPool.PoolStride = true
	zero := early(coat(medium, [4]int{2, 3, 7, 2}, stem))
	zero.PoolStride = true
	zeroNorm := zero
	zeroNorm.PoolStride, zeroNorm.BatchNorm = false, true
	scaled := func(o MaxxViT) MaxxViT {
		o.LayerScale = 1e-6
		return o
	}
	rmlp1 := byNet(early(coat(medium, deep, stem)), 384)
	rmlp1.PoolStride, rmlp1.MaxPool = true, true
	rmlp1rw2 := byNet(coat(medium, deep, stem), 512)
	rmlp1rw2.ExciteReLU = true
	rmlp2 := byNet(scaled(coat(large, deep, wide)), 512)
	coatNext := next(small, nano, stem)
	coatNext.CoAtNet, coatNext.Normal, coatNext.ConvScale, coatNext.LayerScale = true, true, 1e-5, 0
	base := byNet(max(medium, deep, stem), 512)
	base.Hidden = 768
	nanoNext := byNet(next(small, one, stem), 512)
	nanoNext.Normal = true
	nanoGrid := next(medium, one, [2]int{48, 96})
	nanoGrid.Normal, nanoGrid.GridOnly = true, true
	baseGrid := byNet(next(large, [4]int{2, 6, 12, 2}, wide), 512)
	baseGrid.GridOnly = true
	nets = append(nets,
		maxxViTNet{"coatnet_nano_rw", coAtNet, []int{224}, nanoPool},
		maxxViTNet{"coatnet_0_rw", coAtNet, []int{224}, zero},
		maxxViTNet{"coatnet_bn_0_rw", coAtNet, []int{224}, zeroNorm},
		maxxViTNet{"coatnet_1_rw", coAtNet, []int{224}, early(coat(medium, deep, stem))},
		maxxViTNet{"coatnet_2_rw", coAtNet, []int{224}, coat(large, deep, wide)},
		maxxViTNet{"coatnet_3_rw", coAtNet, []int{224}, scaled(coat(huge, deep, [2]int{96, 192}))},
		maxxViTNet{"coatnet_rmlp_nano_rw", coAtNet, []int{224}, byNet(nanoCoat, 384)},
		maxxViTNet{"coatnet_rmlp_1_rw", coAtNet, []int{224}, rmlp1},
		maxxViTNet{"coatnet_rmlp_1_rw2", coAtNet, []int{224}, rmlp1rw2},
		maxxViTNet{"coatnet_rmlp_2_rw", coAtNet, []int{224, 384}, rmlp2},
		maxxViTNet{"coatnext_nano_rw", coAtNet, []int{224}, coatNext},
		maxxViTNet{"maxvit_nano_rw", maxViT, []int{256}, max(small, one, stem)},
		maxxViTNet{"maxvit_tiny_rw", maxViT, []int{224}, max(small, short, stem)},
		maxxViTNet{"maxvit_rmlp_pico_rw", maxViT, []int{256}, byNet(max(tiny, short, [2]int{24, 32}), 512)},
		maxxViTNet{"maxvit_rmlp_nano_rw", maxViT, []int{256}, byNet(max(small, one, stem), 512)},
		maxxViTNet{"maxvit_rmlp_tiny_rw", maxViT, []int{256}, byNet(max(small, short, stem), 512)},
		maxxViTNet{"maxvit_rmlp_small_rw", maxViT, []int{224}, byNet(scaled(max(medium, short, stem)), 512)},
		maxxViTNet{"maxvit_rmlp_base_rw", maxViT, []int{224, 384}, base},
		maxxViTNet{"maxxvit_rmlp_nano_rw", maxViT, []int{256}, nanoNext},
		maxxViTNet{"maxxvit_rmlp_small_rw", maxViT, []int{256}, byNet(next(medium, short, [2]int{48, 96}), 512)},
		maxxViTNet{"maxxvitv2_nano_rw", maxViT, []int{256}, nanoGrid},
		maxxViTNet{"maxxvitv2_rmlp_base_rw", maxViT, []int{224, 384}, baseGrid})
	for _, n := range nets {
		for _, size := range n.sizes {
			n.register(size)
		}
	}
}

// maxxViTNet are nets for images of some sizes.
type maxxViTNet struct {
	name, reference string
	sizes           []int
	net             MaxxViT
}

// register registers the net for one size.
func (n maxxViTNet) register(size int) {
	kind, _, _ := strings.Cut(n.name, "_")
	kind = map[string]string{"maxvit": "MaxViT", "coatnet": "CoAtNet", "coatnext": "CoAtNeXt", "maxxvit": "MaxxViT",
		"maxxvitv2": "MaxxViT V2"}[kind]
	a := nn.Architecture{
		Name:          fmt.Sprintf("%s_%d", n.name, size),
		Family:        "maxvit",
		Summary:       fmt.Sprintf("%s, %s, as timm's", kind, strings.Join(strings.Split(n.name, "_")[1:], " ")),
		Reference:     n.reference,
		Size:          size,
		Resize:        size * 100 / 95,
		Interpolation: bicubic,
		Mean:          half,
		Std:           half,
		Block:         timmStage,
		Init:          n.net.Initial,
		Build:         n.net.Build,
	}
	switch {
	case size > 256:
		a.Resize = size
	case strings.Contains(n.name, "nano") && strings.HasPrefix(n.name, "coat"), n.name == "maxvit_rmlp_small_rw":
		a.Resize = size * 10 / 9
	}
	if n.net.BatchNorm {
		a.Mean, a.Std = imageNetMean, imageNetStd
	}
	if n.net.TF {
		a.BatchNormEps, a.SamePadding = .001, true
		if size == 224 && !strings.Contains(n.name, "xlarge") {
			a.Mean, a.Std = imageNetMean, imageNetStd
		}
	}
	imageNet(a)
}

// MaxxViT are the options of timm's nets of convolutional blocks and attention: its MaxViT, CoAtNet and their variants
// with blocks of ConvNeXt. Images are multiples of 32 pixels. Attention is in windows and grids of a 32nd of the image.
type MaxxViT struct {
	Channels [4]int // of each stage, multiples of Head where it attends; timm's embed_dim
	Blocks   [4]int // of each stage; timm's depths
	Stem     [2]int // channels of the first convolutions; timm's stem_width
	Head     int    // elements of a head; 0 means 32; timm's dim_head

	// CoAtNet has stages of convolutions, two, and of attention among all pixels, two: timm's block_type C, C, T and T.
	// Else each block has a convolution, attention in windows and attention over a grid: M.
	CoAtNet  bool
	GridOnly bool // there is no attention in windows; timm's no_block_attn
	ConvNeXt bool // convolutions are ConvNeXt's; timm's block_type convnext in place of mbconv

	// TF are Google's MaxViTs, with TensorFlow's padding: timm's settings of its nets with tf in their names. The
	// architecture needs SamePadding.
	TF bool

	// Of MBConvs.
	Excite      float64 // channels of the excitation for each one between; 0 means 1/4; timm's attn_ratio
	ExciteReLU  bool    // instead of SiLU; timm's attn_act_layer
	EarlyExcite bool    // before the second normalisation; timm's attn_early
	PreNormAct  bool    // SiLU follows the first normalisation; timm's pre_norm_act
	PoolStride  bool    // pooling halves the extents, not the second convolution: timm's stride_mode pool in place of dw
	NoConvBias  bool    // the shortcut's and the last convolution have none: timm's output_bias=False
	ConvScale   float64 // initial factor of each channel of a ConvNeXt's branch; 0: none; timm's init_values of conv_cfg

	// Of transformers.
	LayerScale     float64 // initial factor of each channel of a branch; 0: none; timm's init_values
	MaxPool        bool    // 3×3 max-pooling halves the extents of shortcuts, instead of 2×2 means; timm's pool_type max
	NoShortcutBias bool    // timm's shortcut_bias=False
	BatchNorm      bool    // in CoAtNet's transformers and behind them; timm's norm_layer "batchnorm2d" of transformer_cfg

	// BiasHidden is the hidden layer of nets that biases of attention come from; 0: they are a table. They are timm's
	// rel_pos_dim with the rel_pos_type mlp. BiasDropout is the probability of dropping its elements in Train.
	BiasHidden  int
	BiasDropout float64

	Hidden int  // elements of the head's hidden layer; 0: there is none; timm's head_hidden_size
	Normal bool // initial weights have a standard deviation of 0.02: timm's weight_init normal in place of vit_eff
}

// check reports whether the options are right.
func (o MaxxViT) check(b layer) bool {
	b.options("MaxxViT", o).least(1, "Channels", "Blocks", "Stem", "Head").
		least(0, "Excite", "ConvScale", "LayerScale", "BiasHidden", "Hidden").probability("BiasDropout").
		that(!o.TF || !o.CoAtNet && !o.ConvNeXt, "TF", "false with CoAtNet or ConvNeXt").
		that(!o.GridOnly || !o.CoAtNet, "GridOnly", "false with CoAtNet").
		that(!o.BatchNorm || o.CoAtNet && o.Hidden == 0, "BatchNorm", "false without CoAtNet or with Hidden").
		that(o.ConvNeXt || o.ConvScale == 0, "ConvScale", "0 without ConvNeXt")
	for i, c := range o.Channels {
		in := c
		if o.CoAtNet {
			in = o.Channels[max(i-1, 1)]
		}
		b.options("MaxxViT", o).that(in%max(o.Head, 1) == 0, "Channels",
			fmt.Sprintf("divisible by Head, which is %d", o.Head)).
			that(!o.ConvNeXt || c%o.in(i, 0) == 0, "Channels", "multiples of those before with ConvNeXt")
	}
	return b.Err() == nil
}

// in are the channels of a block's input.
func (o MaxxViT) in(stage, block int) int {
	switch {
	case block > 0:
		return o.Channels[stage]
	case stage > 0:
		return max(o.Channels[stage-1], 1)
	}
	return max(o.Stem[1], 1)
}

// Build adds the layers to b.
func (o MaxxViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Head, o.Excite = cmp.Or(o.Head, 32), cmp.Or(o.Excite, .25)
	if !o.check(b) || !b.multipleOf(x, 32) {
		return nil
	}
	partition := x.Shape()[2] / 32
	if x.Shape()[3] != x.Shape()[2] {
		b.Fail(fmt.Errorf("images of %d×%d pixels: height and width must be equal", x.Shape()[2], x.Shape()[3]))
	}
	x = b.conv("stem.conv1", x, nn.Conv{Filters: o.Stem[0], Kernel: 3, Stride: 2, Bias: o.TF})
	x = o.norm(b, "stem.norm1", x, o.act())
	x = b.conv("stem.conv2", x, nn.Conv{Filters: o.Stem[1], Kernel: 3, Bias: o.TF})
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			name := fmt.Sprintf("stages.%d.blocks.%d", i, j)
			switch {
			case !o.CoAtNet:
				x = o.convolve(b, name+".conv", x, i, j, drop)
				if !o.GridOnly {
					x = o.partitioned(b, name+".attn_block", x, partition, false, drop)
				}
				x = o.partitioned(b, name+".attn_grid", x, partition, true, drop)
			case i < 2:
				x = o.convolve(b, name, x, i, j, drop)
			default:
				x = o.transform(b, name, x, i, j, drop)
			}
			done++
		}
	}
	if o.Hidden > 0 {
		x = b.LayerNorm("head.norm", b.GlobalAvgPool("head.global_pool", x), o.eps())
		x = b.Map("head.pre_logits.act", expr.Arg(0).Tanh(), b.Linear("head.pre_logits.fc", x, o.Hidden))
	} else {
		x = b.GlobalAvgPool("head.global_pool", o.pixelNorm(b, "norm", x))
	}
	return b.Linear("head.fc", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// eps is added to the variances of layer normalisations.
func (o MaxxViT) eps() float64 {
	if o.TF {
		return 1e-5
	}
	return rowEps
}

// act is the activation of convolutional blocks.
func (o MaxxViT) act() nn.Activation {
	switch {
	case o.TF:
		return (*nn.Builder).GELUTanh
	case o.ConvNeXt:
		return (*nn.Builder).GELU
	}
	return (*nn.Builder).SiLU
}

// norm adds a normalisation of images and, unless it is nil, the activation.
func (o MaxxViT) norm(b layer, name string, x *G.Node, act nn.Activation) *G.Node {
	if o.ConvNeXt {
		x = b.pixelNorm(name, x)
	} else {
		x = b.BatchNorm(name, x, 1)
	}
	if act == nil {
		return x
	}
	return act(b.Builder, name+".act", x)
}

// pixelNorm is the normalisation of transformers, of images.
func (o MaxxViT) pixelNorm(b layer, name string, x *G.Node) *G.Node {
	if o.BatchNorm {
		return b.BatchNormEps(name, x, 1, rowEps)
	}
	return b.pixelNormBy(name, x, o.eps())
}

// down halves the extents of images x, and changes their channels by a convolution if out differs.
func (o MaxxViT) down(b layer, name string, x *G.Node, out int, largest, bias bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	if largest {
		x = b.MaxPool(name+".pool", x, 3, 2, 1)
	} else {
		x = b.AvgPool(name+".pool", x, 2, 2, 0)
	}
	if in == out {
		return x
	}
	return b.Conv(name+".expand", x, nn.Conv{Filters: out, Kernel: 1, Bias: bias})
}

// convolve adds a convolutional block.
func (o MaxxViT) convolve(b layer, name string, x *G.Node, stage, block int, drop float64) *G.Node {
	in, out, stride, shortcut := o.in(stage, block), o.Channels[stage], 1, x
	if block == 0 {
		stride = 2
		shortcut = o.down(b, name+".shortcut", x, out, o.MaxPool && !o.ConvNeXt, !o.NoConvBias)
	}
	var y *G.Node
	if o.ConvNeXt {
		y = o.next(b, name, x, in, out, stride)
	} else {
		y = o.mbConv(b, name, x, in, out, stride)
	}
	return b.pathAdd(name, y, shortcut, drop)
}

// next is the branch of a ConvNeXt's block.
func (o MaxxViT) next(b layer, name string, x *G.Node, in, out, stride int) *G.Node {
	y := b.conv(name+".conv_dw", x, nn.Conv{Filters: out, Kernel: 7, Stride: stride, Groups: in, Bias: true})
	y = b.pointPerceptron(name+".mlp", b.pixelNorm(name+".norm", y), 4*out)
	if o.ConvScale == 0 {
		return y
	}
	return b.Scale(name+".ls", y, b.vector(name+".ls.gamma", out, o.ConvScale))
}

// mbConv is the branch of an MBConv.
func (o MaxxViT) mbConv(b layer, name string, x *G.Node, in, out, stride int) *G.Node {
	wide, preAct := 4*in, nn.Activation(nil)
	if o.PreNormAct {
		preAct = o.act()
	}
	excited := wide
	if o.TF {
		wide = 4 * out
		excited = out
	}
	wide = divisible(float64(wide))
	x = o.norm(b, name+".pre_norm", x, preAct)
	if o.PoolStride && stride == 2 {
		x, stride = o.down(b, name+".down", x, in, false, false), 1
	}
	x = o.norm(b, name+".norm1", b.conv(name+".conv1_1x1", x, nn.Conv{Filters: wide, Kernel: 1}), o.act())
	x = b.conv(name+".conv2_kxk", x, nn.Conv{Filters: wide, Kernel: 3, Stride: stride, Groups: wide})
	excite := func(part string, x *G.Node) *G.Node {
		act := nn.Activation((*nn.Builder).SiLU)
		if o.ExciteReLU {
			act = (*nn.Builder).ReLU
		}
		return b.SqueezeExcite(name+part, x, max(int(float64(excited)*o.Excite), 1), act, (*nn.Builder).Sigmoid)
	}
	if o.EarlyExcite {
		x = excite(".se_early", x)
	}
	x = o.norm(b, name+".norm2", x, o.act())
	if !o.EarlyExcite {
		x = excite(".se", x)
	}
	return b.conv(name+".conv3_1x1", x, nn.Conv{Filters: out, Kernel: 1, Bias: !o.NoConvBias})
}

// partitioned is a transformer's block in windows of images x, or over a grid.
func (o MaxxViT) partitioned(b layer, name string, image *G.Node, size int, grid bool, drop float64) *G.Node {
	x := b.partition(name, image, size, grid)
	if b.Err() != nil {
		return nil
	}
	n, c := image.Shape()[0], image.Shape()[1]
	y := o.attention(b, name+".attn", b.LayerNorm(name+".norm1", x, o.eps()), size)
	x = b.rowResidual(name+".drop_path1", b.gammas(name+".ls1", y, o.LayerScale), x, n, drop)
	y = b.LayerNorm(name+".norm2", x, o.eps())
	if o.TF {
		y = b.GELUTanh(name+".mlp.act", b.Linear(name+".mlp.fc1", y, 4*c))
		y = b.Linear(name+".mlp.fc2", y, c)
	} else {
		y = b.perceptron(name+".mlp", y, 4*c)
	}
	x = b.rowResidual(name+".drop_path2", b.gammas(name+".ls2", y, o.LayerScale), x, n, drop)
	return b.join(name, x, image, size, grid)
}

// transform is a transformer's block of all pixels of images x.
func (o MaxxViT) transform(b layer, name string, x *G.Node, stage, block int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in, c := x.Shape()[1], o.Channels[stage]
	var y *G.Node
	if block == 0 {
		y = x
		x = o.down(b, name+".shortcut", x, c, o.MaxPool, !o.NoShortcutBias)
		y = o.down(b, name+".norm1.down", o.pixelNorm(b, name+".norm1.norm", y), in, o.MaxPool, false)
	} else {
		y = o.pixelNorm(b, name+".norm1", x)
	}
	y = b.gammas(name+".ls1", o.imageAttention(b, name+".attn", y, c), o.LayerScale)
	x = b.Add(name+".add1", b.StochasticDepth(name+".drop_path1", y, drop), x)
	y = b.pointPerceptron(name+".mlp", o.pixelNorm(b, name+".norm2", x), 4*c)
	y = b.gammas(name+".ls2", y, o.LayerScale)
	return b.Add(name+".add2", b.StochasticDepth(name+".drop_path2", y, drop), x)
}

// attention is that of rows x among the pixels of each window.
func (o MaxxViT) attention(b layer, name string, x *G.Node, size int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	heads := c / o.Head
	weight, bias := b.matrix(name+".qkv", 3*c, c), b.bias(name+".qkv", 3*c)
	if !o.TF {
		weight, bias = b.byPart(name+".qkv.weights", weight, heads), b.byPart(name+".qkv.biases", bias, heads)
	}
	w := window{Windows: nn.Windows{Height: size, Width: size, Rows: size, Columns: size}, heads: heads}
	scores := o.offsets(b, name+".rel_pos", w)
	qkv := b.Apply(name+".qkv", op.Linear{}, x, weight, bias)
	x = b.selfAttention(name+".attention", qkv, x.Shape()[0]/(size*size), nn.Attention{Heads: heads}, scores)
	return b.Linear(name+".proj", x, c)
}

// imageAttention is attention among the pixels of images x, with out channels.
func (o MaxxViT) imageAttention(b layer, name string, x *G.Node, out int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, c, height, width := x.Shape()[0], x.Shape()[1], x.Shape()[2], x.Shape()[3]
	heads := c / o.Head
	qkv := b.rows(name+".qkv", b.Conv(name+".qkv", x, nn.Conv{Filters: 3 * c, Kernel: 1, Bias: true}))
	qkv = b.Reshape(name+".qkv.by_head", qkv, 1, n*height*width, heads, 3, o.Head)
	qkv = b.Reshape(name+".qkv.parts", b.Permute(name+".qkv.by_part", qkv, 0, 1, 3, 2, 4), n*height*width, 3*c)
	w := window{Windows: nn.Windows{Height: height, Width: width, Rows: height, Columns: width}, heads: heads}
	scores := o.offsets(b, name+".rel_pos", w)
	y := b.selfAttention(name+".attention", qkv, n, nn.Attention{Heads: heads}, scores)
	return b.Conv(name+".proj", b.image(name, y, x), nn.Conv{Filters: out, Kernel: 1, Bias: true})
}

// offsets is the bias of scores by the offset between two tokens. timm exempts its parameters from weight decay.
func (o MaxxViT) offsets(b layer, name string, w window) *G.Node {
	rows, columns := 2*w.Rows-1, 2*w.Columns-1
	param := func(part string, init nn.Init, shape ...int) *G.Node {
		return b.AddParam(nn.Param{Name: name + part, Shape: shape, Init: init, BiasOrNorm: true})
	}
	deviation := nn.Init{Distribution: nn.Normal, Scale: .02}
	switch {
	case o.BiasHidden > 0:
		return b.logOffsets(name, w, o.BiasHidden, o.BiasDropout, true)
	case o.TF: // from keys to queries
		table := param(".relative_position_bias_table", deviation, w.heads, rows, columns)
		places := w.Offsets()
		for i, v := range places.Data.([]int32) {
			places.Data.([]int32)[i] = int32(rows*columns) - 1 - v
		}
		t := w.Rows * w.Columns
		x := b.Reshape(name+".table", table, w.heads, rows*columns)
		x = b.Gather(name+".by_pair", x, 1, b.Constant(name+".offsets", places))
		return b.Reshape(name+".bias", x, w.heads, t, t)
	}
	return b.biasByPair(name, param(".relative_position_bias_table", deviation, rows*columns, w.heads), w)
}

// pointPerceptron is perceptron of images, by convolutions 1×1.
func (b layer) pointPerceptron(name string, x *G.Node, hidden int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	y := b.Conv(name+".fc1", x, nn.Conv{Filters: hidden, Kernel: 1, Bias: true})
	return b.Conv(name+".fc2", b.GELU(name+".act", y), nn.Conv{Filters: x.Shape()[1], Kernel: 1, Bias: true})
}

// Initial is the initial distribution of a parameter, for Architecture.Init.
func (o MaxxViT) Initial(p nn.Param) nn.Init {
	var stage, block int
	stem := strings.HasPrefix(p.Name, "stem.")
	_, err := fmt.Sscanf(p.Name, "stages.%d.blocks.%d.", &stage, &block)
	conv := stem || err == nil && (o.CoAtNet && stage < 2 || strings.Contains(p.Name, ".conv."))
	norm := p.Init.Distribution == nn.Constant && p.Init.Scale != 0 // or a factor
	switch fans := func() float64 { return float64(p.Shape[0]+p.Shape[1]) * float64(p.Shape[2:].Size()) }; {
	case norm || strings.HasSuffix(p.Name, ".relative_position_bias_table") || !stem && err != nil:
		return p.Init
	case o.CoAtNet && o.ConvNeXt && conv && !stem: // timm has no function for them, and they start as PyTorch's
		switch {
		case len(p.Shape) == 4:
			return nn.FanInUniform(p.Shape[1:].Size())
		case strings.HasSuffix(p.Name, ".mlp.fc1.bias"):
			return nn.FanInUniform(o.Channels[stage])
		case strings.HasSuffix(p.Name, ".mlp.fc2.bias"):
			return nn.FanInUniform(4 * o.Channels[stage])
		}
		return p.Init
	case len(p.Shape) == 1 && !conv && !o.Normal && strings.Contains(p.Name, ".mlp."):
		return nn.Init{Distribution: nn.Normal, Scale: 1e-6}
	case len(p.Shape) == 1:
		return nn.Init{}
	case o.Normal:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case strings.HasSuffix(p.Name, ".conv_dw.weight"):
		return nn.HeNormal(o.Channels[stage]/o.in(stage, block), 49)
	case conv:
		return google(p)
	default: // Glorot's
		return nn.Init{Distribution: nn.Uniform, Scale: math.Sqrt(6 / fans())}
	}
}
