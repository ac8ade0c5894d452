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
	const large = 6 // DownExpand
	for _, v := range []struct {
		name string
		net  LowFormer
	}{
		{"b0", LowFormer{Channels: [5]int{16, 32, 64, 128, 256}, Blocks: [5]int{0, 1, 1, 3, 4}}},
		{"b1", LowFormer{Channels: [5]int{16, 32, 64, 128, 256}, Blocks: [5]int{0, 1, 1, 5, 5}, DownExpand: large}},
		{"b15", LowFormer{Channels: [5]int{20, 40, 80, 160, 320}, Blocks: [5]int{0, 1, 1, 6, 6}, DownExpand: large,
			Head: [2]int{2304, 2560}}},
		{"b3", LowFormer{Channels: [5]int{32, 64, 128, 256, 512}, Blocks: [5]int{1, 2, 3, 6, 6}, DownExpand: large,
			StemExpand: 4}},
		{"e1", LowFormer{Channels: [5]int{20, 40, 80, 160, 320}, Blocks: [5]int{0, 1, 1, 4, 4}, DownExpand: large,
			Head: [2]int{2304, 2560}, NoAttention: true, NoMLP: true}},
		{"e2", LowFormer{Channels: [5]int{32, 64, 128, 256, 512}, Blocks: [5]int{1, 2, 3, 4, 4}, DownExpand: large,
			StemExpand: 4, NoAttention: true, NoMLP: true}},
		{"e3", LowFormer{Channels: [5]int{32, 64, 128, 256, 512}, Blocks: [5]int{1, 2, 3, 6, 6}, DownExpand: large,
			StemExpand: 4, NoMLP: true}},
	} {
		kind := strings.ToUpper(v.name)
		if v.name == "b15" {
			kind = "B1.5"
		}
		imageNet(nn.Architecture{
			Name:    "lowformer_" + v.name,
			Family:  "lowformer",
			Summary: fmt.Sprintf("LowFormer-%s, with timm's names", kind),
			Reference: "Nottebaum et al., LowFormer: hardware efficient design for convolutional transformer backbones, " +
				"2025",
			MinSize:       32,
			Resize:        235,
			Interpolation: bicubic,
			Block:         lowFormerBlock,
			Init:          truncated(.02),
			Build:         v.net.Build,
		})
	}
}

// lowFormerBlock finds the blocks of LowFormer and CPUBone.
const lowFormerBlock = `^(stem|stages\.\d\.\d+)\.`

// LowFormer are the options of a net of inverted residuals and, in the last two stages, attention among the pixels of
// smaller images.
type LowFormer struct {
	Channels [5]int // of the stem and each stage, the last two at least 2; timm's width_list
	// Blocks are those of the stem, which may have none, and of each stage. The last two stages have one more, which
	// halves images; timm's depth_list.
	Blocks [5]int
	// Head are the channels of the last convolution and of the linear layer behind it; 0 means 1536 and 1600; timm's
	// head_widths.
	Head       [2]int
	StemExpand int // hidden channels of the stem's blocks, by channel; 0 means 2; timm's stem_expand_ratio
	DownExpand int // those of blocks that halve images; 0 means 4, as others; timm's downsample_expand_ratios

	NoAttention bool    // timm's attn=False
	NoMLP       bool    // no perceptrons, nor normalisations before attention: timm's attn_mlp=False
	Dropout     float64 // probability of dropping a perceptron's results in Train; timm's proj_drop_rate

	// CPU has expanding convolutions of two groups, and in blocks of attention convolutions 2×2 and nearest neighbours in
	// place of transposed convolutions: timm's CPUBone with fused_conv, fused_downsample, small_kernels,
	// attn_mlp_ratio=4, expand_groups=2 and the attn_upsample "nearest".
	CPU bool
	// Norms are the last convolutions of a block's inverted residual, from 256 channels on, that normalisations follow; 0
	// means 1. 1 to 3 are CPUBone's local_mbconv_norm "proj", "depth_proj" and "all".
	Norms int
}

// Build adds the layers to b.
func (o LowFormer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.StemExpand, o.DownExpand, o.Norms = cmp.Or(o.StemExpand, 2), cmp.Or(o.DownExpand, 4), cmp.Or(o.Norms, 1)
	if o.Head == [2]int{} {
		o.Head = [2]int{1536, 1600}
	}
	b.options("LowFormer", o).least(1, "Channels", "Head", "StemExpand", "DownExpand", "Norms").least(0, "Blocks").
		that(min(o.Channels[3], o.Channels[4]) > 1, "Channels", "at least 2 in the last stages").
		that(min(o.Blocks[1], o.Blocks[2], o.Blocks[3], o.Blocks[4]) > 0, "Blocks", "at least 1 in each stage").
		that(o.Norms <= 3, "Norms", "at most 3").
		that(o.CPU || o.Norms == 1, "Norms", "0 without CPU").
		that(!o.CPU || !o.NoAttention && !o.NoMLP, "CPU", "false with NoAttention or NoMLP").
		probability("Dropout")
	if o.CPU {
		for _, c := range o.Channels {
			b.options("LowFormer", o).that(c%2 == 0, "Channels", "even, with CPU")
		}
	}
	if !b.atLeast(x, 32) {
		return nil
	}
	c := o.Channels[0]
	x = b.normAct("stem.0", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2})
	done, all := 0, sum(o.Blocks[:])
	for j := range o.Blocks[0] {
		name := fmt.Sprintf("stem.%d", j+1)
		y := o.fused(b, name+".main", x, c, o.StemExpand*c, 3, 1, false)
		x = b.pathAdd(name, y, x, b.Config().DropPathAt(done, all))
		done++
	}
	for i, n := range o.Blocks[1:] {
		stage, out := fmt.Sprintf("stages.%d", i), o.Channels[i+1]
		x = o.fused(b, stage+".0.main", x, out, o.DownExpand*c, 3, 2, false)
		c = out
		first, attends := 1, i >= 2
		if !attends { // the block that halves images is one of Blocks
			n--
			done++
		}
		for j := range n {
			name, drop := fmt.Sprintf("%s.%d", stage, first+j), b.Config().DropPathAt(done, all)
			if attends {
				x = o.block(b, name, x, 4-i, drop)
			} else {
				x = b.pathAdd(name, o.fused(b, name+".main", x, c, 4*c, 3, 1, false), x, drop)
			}
			done++
		}
	}
	return o.head(b, x)
}

// head makes the logits.
func (o LowFormer) head(b layer, x *G.Node) *G.Node {
	names := [...]string{"in_conv", "pre_classifier.0", "pre_classifier.1", "dropout", "classifier"}
	if o.CPU {
		names = [...]string{"head.in_conv", "head.pre_classifier.linear", "head.pre_classifier.norm",
			"head.classifier.dropout", "head.classifier.linear"}
	}
	x = b.GlobalAvgPool("pool", b.normAct(names[0], x, nn.Conv{Filters: o.Head[0], Kernel: 1}))
	x = b.unbiased(names[1], x, o.Head[1])
	x = b.Hardswish("pre_classifier.act", b.LayerNorm(names[2], x, branchEps))
	return b.Linear(names[4], b.Dropout(names[3], x, b.Config().Dropout), b.Config().Classes)
}

// normAct is a convolution, a normalisation and an activation.
func (b layer) normAct(name string, x *G.Node, c nn.Conv) *G.Node {
	return b.Hardswish(name+".act", b.convNormed(name, x, c))
}

// fused is a convolution of wide filters, and one 1×1 of out filters.
func (o LowFormer) fused(b layer, name string, x *G.Node, out, wide, kernel, stride int, bias bool) *G.Node {
	c := nn.Conv{Filters: wide, Kernel: kernel, Stride: stride, Groups: 1, Bias: bias}
	if o.CPU {
		c.Groups = 2
	}
	x = b.aheadConv(name+".spatial_conv.conv", x, c)
	x = b.Hardswish(name+".spatial_conv.act", b.BatchNorm(name+".spatial_conv.norm", x, 1))
	return b.convNormed(name+".point_conv", x, nn.Conv{Filters: out, Kernel: 1})
}

// aheadConv is a convolution that keeps the extent, unless it has a stride. One of an even kernel is padded ahead of
// each row and column, and its name ends with .1.
func (b layer) aheadConv(name string, x *G.Node, c nn.Conv) *G.Node {
	switch {
	case c.Kernel%2 == 1:
		return b.conv(name, x, c)
	case c.Stride > 1:
		return b.Conv(name, x, c)
	}
	x = b.Pad(name+".0", x, []int{0, 0, c.Kernel / 2, c.Kernel / 2}, make([]int, 4))
	return b.Conv(name+".1", x, c)
}

// block has attention among the pixels of images that are smaller by stride, a perceptron and an inverted residual.
func (o LowFormer) block(b layer, name string, x *G.Node, stride int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	parts := [...]string{".attn", ".mlp", ".local"}
	if o.CPU {
		parts = [...]string{".total.0.0", ".total.0.1", ".total.1"}
	}
	if !o.NoAttention {
		main, y := name+parts[0]+".main", x
		if !o.NoMLP {
			y = b.GroupNorm(main+".0", x, 1, groupEps)
			main += ".1"
		}
		x = b.pathAdd(name+parts[0], o.attention(b, main, y, stride), x, drop)
	}
	if !o.NoMLP {
		main := name + parts[1] + ".main"
		y := b.GroupNorm(main+".0", x, 1, groupEps)
		y = b.GELU(main+".2", b.Conv(main+".1", y, nn.Conv{Filters: 4 * c, Kernel: 1, Bias: true}))
		y = b.Conv(main+".3", y, nn.Conv{Filters: c, Kernel: 1, Bias: true})
		x = b.pathAdd(name+parts[1], b.Dropout(main+".4", y, o.Dropout), x, drop)
	}
	return b.pathAdd(name+parts[2], o.local(b, name+parts[2]+".main", x), x, drop)
}

// local is the inverted residual of a block of attention. From 256 channels on its convolutions are separable.
func (o LowFormer) local(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, kernel, groups := x.Shape()[1], 3, 1
	if o.CPU {
		kernel, groups = 2, 2
	}
	if c < 256 {
		return o.fused(b, name, x, c, 4*c, kernel, 1, true)
	}
	for i, part := range []string{".inverted_conv", ".depth_conv", ".point_conv"} {
		by := nn.Conv{Filters: 4 * c, Kernel: 1, Groups: groups, Bias: i < 3-o.Norms}
		switch i {
		case 1:
			by.Kernel, by.Groups = kernel, 4*c
		case 2:
			by.Filters, by.Groups = c, 1
		}
		if x = b.aheadConv(name+part+".conv", x, by); !by.Bias {
			x = b.BatchNorm(name+part+".norm", x, 1)
		}
		if i < 2 {
			x = b.Hardswish(name+part+".act", x)
		}
	}
	return x
}

// attention is attention among the pixels of a depthwise convolution of a stride, resized to the images x.
func (o LowFormer) attention(b layer, name string, x *G.Node, stride int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	c := s[1]
	heads := max(1, c/2/30)
	d := c / heads / 2
	by := nn.Conv{Filters: c, Kernel: 1 + 2*stride, Stride: stride, Groups: c}
	y := x
	if o.CPU {
		by.Kernel = 2
		if odd := []int{0, 0, s[2] % stride, s[3] % stride}; odd[2]+odd[3] > 0 {
			y = b.Pad(name+".pad", x, make([]int, 4), odd)
		}
	}
	y = b.BatchNorm(name+".conv_proj.norm", b.aheadConv(name+".conv_proj.conv", y, by), 1)
	like := b.Conv(name+".pwise", y, nn.Conv{Filters: 3 * heads * d, Kernel: 1})
	qkv := b.headParts(name, b.rows(name, like), heads, d, d, d)
	y = b.image(name, b.Attention(name+".attention", qkv[0], qkv[1], qkv[2], s[0], nn.Attention{Heads: heads}), like)
	if o.CPU {
		y = b.Conv(name+".upsampling.0", y, nn.Conv{Filters: c, Kernel: 1, Bias: true})
		return b.nearest(name+".upsampling.1", y, x)
	}
	y = b.transposed(name+".upsampling", y, c, stride)
	if b.Err() == nil && (y.Shape()[2] > s[2] || y.Shape()[3] > s[3]) {
		y = b.Apply(name+".crop", op.Slice{From: make([]int, 4), To: []int{s[0], c, s[2], s[3]}}, y)
	}
	return y
}

// transposed is a transposed convolution [C,out,K,K] with biases. Stride 1 goes with a kernel 3×3, and stride 2, which
// doubles the extent, with 4×4; both keep one pixel less at each side.
//
// It is a convolution. With stride 2 its result has the four pixels of each 2×2 as channels: an even row takes the
// kernel's rows 3 and 1 of the input's rows before and at half its number, an odd one the rows 2 and 0 of those at and
// behind it.
func (b layer) transposed(name string, x *G.Node, out, stride int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	n, c, height, width := s[0], s[1], s[2], s[3]
	kernel := 2 + stride
	if stride == 1 {
		kernel = 3
	}
	taps := kernel * kernel
	init := nn.FanInUniform(out * taps)
	weight := b.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{c, out * taps},
		Stored: op.Shape{c, out, kernel, kernel}, Groups: 1, Init: init})
	bias := b.AddParam(nn.Param{Name: name + ".bias", Shape: op.Shape{out}, Groups: 1, BiasOrNorm: true, Init: init})
	each := kernel / stride // rows of taps for one row of the result
	var places []int32
	for parity := range stride * stride {
		for tap := range each * each {
			row := (each-1-tap/each)*stride + (stride - 1 - parity/stride)
			column := (each-1-tap%each)*stride + (stride - 1 - parity%stride)
			places = append(places, int32(row*kernel+column))
		}
	}
	phases := stride * stride
	w := b.Gather(name+".taps", b.Reshape(name+".matrix", weight, c, out, taps), 2,
		b.Constant(name+".places", op.Tensor{Shape: op.Shape{taps}, Data: places}))
	w = b.Permute(name+".filters", b.Reshape(name+".phases", w, c, out, phases, each*each), 2, 1, 3, 0)
	w = b.Reshape(name+".filter_rows", w, 1, phases*out, each*each, c)
	o := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	w = b.Apply(name+".kernel", op.Filters{Height: each, Width: each}, w)
	if stride == 1 {
		return b.Apply(name, o, x, w, bias)
	}
	x = b.Apply(name, o, x, w) // (height+1)×(width+1) pixels
	var parts []*G.Node
	for phase := range phases {
		part := fmt.Sprintf("%s.phase%d", name, phase)
		down, right := phase/stride, phase%stride
		y := b.Apply(part, op.Slice{From: []int{0, phase * out, down, right},
			To: []int{n, (phase + 1) * out, down + height, right + width}}, x)
		parts = append(parts, y)
	}
	x = b.Reshape(name+".apart", b.Concat(name+".joined", 1, parts...), n, stride, stride, out, height, width)
	x = b.Reshape(name+".image", b.Permute(name+".shuffled", x, 0, 3, 4, 1, 5, 2), n, out, stride*height, stride*width)
	return b.Map(name+".sum", expr.Arg(0).Add(expr.Arg(1)), x, bias)
}
